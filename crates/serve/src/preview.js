// Loads the page again when the site has been rebuilt.
const version = async (after) => Number(await (await fetch(`/preview/version?after=${after}`)).text());
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
let known = -1;
for (;;) {
  try {
    const now = await version(known);
    if (known >= 0 && now !== known) location.reload();
    known = now;
  } catch {
    await wait(1000);
  }
}
