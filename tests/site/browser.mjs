// The published site in a real browser. Run by crates/publish/tests/browser.rs:
//   node browser.mjs SITE TOOLS [SCREENSHOTS]
// SITE is a released sample site (crates/publish/tests/common), TOOLS what data/setup-browser.sh made.

import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { host } from "./serve.mjs";

const [folder, tools, shots] = process.argv.slice(2);
const tool = createRequire(join(tools, "package.json"));
const { chromium } = tool("playwright-core");
const { HtmlValidate, FileSystemConfigLoader } = tool("html-validate");
const axe = await readFile(tool.resolve("axe-core/axe.min.js"), "utf8");

const site = await host(folder);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"],
});
const faults = [];

async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && faults.push(`${path}: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`${path}: ${error}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(site.address)) faults.push(`${path} asks for ${request.url()}`);
  });
  await page.goto(site.address + path, { waitUntil: "networkidle" });
  return page;
}

let passed = 0;
async function test(name, body) {
  faults.length = 0;
  const begun = Date.now();
  try {
    await body();
    assert.deepEqual(faults, []);
    passed++;
    if (process.env.VERBOSE) console.log(`${Date.now() - begun} ms  ${name}`);
  } catch (error) {
    console.log(`FAILED ${name}\n${error.stack}`);
    process.exitCode = 1;
  }
  site.change = null;
  for (const context of browser.contexts()) await context.close();
}

// One of each kind of page, in every language that has it.
const KINDS = [
  "/", "/en/", "/fr/", "/el/", "/en/questions/", "/el/t/", "/en/t/garden/", "/fr/c/", "/en/c/gardens-en/",
  "/en/how-it-works.html", "/fr/how-it-works.html", "/el/how-it-works.html", "/en/q/prune-roses/",
  "/fr/q/arroser/", "/el/q/elia/", "/en/q/moon/", "/en/q/withdrawn/", "/en/q/right-to-left/", "/no/such/page",
];
const passages = [];
for (const language of ["en", "fr", "el"]) {
  const texts = join(folder, language, "s");
  for (const text of await readdir(texts)) {
    for (const passage of await readdir(join(texts, text))) passages.push(`/${language}/s/${text}/${passage}/`);
  }
}
KINDS.push(...passages);

await test("typed with a typo and without accents, it is suggested and opened with the keyboard only", async () => {
  const page = await open("/fr/");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  const input = page.getByRole("combobox");
  for (let i = 0; i < 20 && !(await input.evaluate((box) => box === document.activeElement)); i++) {
    await page.keyboard.press("Tab");
  }
  await page.keyboard.type("pourqoi n'arose t on pas un jardin");
  await page.getByRole("option").first().waitFor();
  assert.match(await page.getByRole("option").first().innerText(), /n’arrose-t-on pas/);
  assert.match(await page.getByRole("status").innerText(), /question/);
  assert.equal(await input.getAttribute("aria-expanded"), "true");
  await page.keyboard.press("ArrowDown");
  assert.equal(await input.getAttribute("aria-activedescendant"), "suggestion-0");
  await page.keyboard.press("Escape");
  assert.equal(await input.getAttribute("aria-expanded"), "false");
  await page.keyboard.type(" ");
  await page.getByRole("option").first().waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/fr/q/arroser/");
});

await test("what folds to a question opens its page; what is like it does not", async () => {
  const page = await open("/en/");
  await page.getByRole("combobox").fill("WHEN should an old rosé be pruned and how hard");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/en/q/prune-roses/");
  await page.goto(site.address + "/en/");
  await page.getByRole("combobox").fill("should an old rose be pruned");
  await page.getByRole("option").first().waitFor();
  assert.ok(page.url().endsWith("/en/"));
});

await test("a question in another language and script is found on any page", async () => {
  const page = await open("/en/");
  await page.getByRole("combobox").fill("ποτε φυτευεται η ελια");
  await page.getByRole("option").first().waitFor();
  assert.equal(await page.getByRole("option").first().getAttribute("lang"), "el");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/el/q/elia/");
});

await test("a suggestion is opened by the mouse", async () => {
  const page = await open("/el/");
  await page.getByRole("combobox").pressSequentially("φυτεύεται");
  await page.getByRole("option").first().click();
  await page.waitForURL("**/el/q/elia/");
});

await test("the language is switched, and the page says which it is in", async () => {
  const page = await open("/en/how-it-works.html");
  await page.getByRole("link", { name: "Ελληνικά" }).click();
  await page.waitForURL("**/el/how-it-works.html");
  assert.equal(await page.getAttribute("html", "lang"), "el");
  assert.equal(await page.getAttribute('link[hreflang="x-default"]', "href"), "https://gardens.example/en/how-it-works.html");
});

await test("a quotation leads to its passage, where it is marked", async () => {
  const page = await open("/en/q/prune-roses/");
  await page.locator(".extract").first().getByRole("link", { name: "In its passage" }).click();
  await page.waitForURL(/\/en\/s\/.*#q\d+$/);
  const marked = page.locator("mark:target");
  assert.match(await marked.innerText(), /Old roses that flower once/);
  assert.notEqual(await marked.evaluate((mark) => getComputedStyle(mark).backgroundColor), "rgba(0, 0, 0, 0)");
  assert.ok(await marked.evaluate((mark) => mark.getBoundingClientRect().bottom < innerHeight));
  const original = await page.getByRole("link", { name: "In the original" }).getAttribute("href");
  assert.match(original, /#place:~:text=Old%20roses/);
  await page.getByRole("link", { name: "When should an old rose" }).first().click();
  await page.waitForURL(/prune-roses\/#quotation-1$/);
});

await test("the reference is copied", async () => {
  const page = await open("/en/q/prune-roses/", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.getByText("Cite", { exact: true }).click();
  await page.locator(".cite button").click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /When should an old rose.*https:\/\/gardens\.example\/en\/q\/prune-roses\/$/);
  assert.equal(await page.locator(".cite button").innerText(), "Copied");
});

await test("dark where the reader wants it dark", async () => {
  const paper = async (colorScheme) => {
    const page = await open("/en/", { colorScheme });
    return page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  };
  const [light, dark] = [await paper("light"), await paper("dark")];
  const brightness = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  assert.ok(brightness(light) > 600 && brightness(dark) < 200, `${light} ${dark}`);
});

await test("without scripts the box leads to the server, and the list has every question", async () => {
  const page = await open("/en/", { javaScriptEnabled: false });
  assert.equal(await page.locator("form.ask").getAttribute("action"), "../ask");
  await page.getByRole("link", { name: "Questions", exact: true }).click();
  await page.getByRole("link", { name: /old rose be pruned/ }).click();
  assert.equal(await page.locator("blockquote.quotation").count(), 4);
  assert.equal(await page.locator(".copy:visible").count(), 0, "a button that does nothing");
});

await test("another version of the index is refused: the page is loaded anew, once", async () => {
  const newer = Buffer.from("FLOREDGE\u0063\0", "latin1");
  const root = Buffer.concat([newer, Buffer.alloc(40)]);
  site.change = (path) => (path === "/edge/root.flx" ? root : undefined);
  const page = await open("/en/");
  let loads = 0;
  page.on("framenavigated", () => loads++);
  await page.getByRole("combobox").fill("rose");
  await page.waitForEvent("framenavigated");
  await page.waitForLoadState("networkidle");
  await page.getByRole("combobox").fill("old roses");
  await page.waitForTimeout(500);
  assert.equal(loads, 1);
  assert.equal(await page.getByRole("option").count(), 0, "nothing is misread");
});

await test("when a new release takes the old index away, the new one is read", async () => {
  const page = await open("/en/");
  await page.getByRole("combobox").fill("old rose");
  await page.getByRole("option").first().waitFor();
  // As if the index had another id now: its files are gone, but for the root.
  let gone = 0;
  site.change = (path) => (/^\/edge\/.*\/w-/.test(path) && gone++ < 1 ? null : undefined);
  const fresh = await open("/en/");
  // The host's headers say "for ever" of a missing file too.
  await fresh.getByRole("combobox").fill("old rose");
  await fresh.getByRole("option").first().waitFor();
  assert.ok(gone >= 1);
  faults.length = 0; // The browser logs the missing file.
});

await test("no page is wider than a telephone", async () => {
  const page = await open("/", { viewport: { width: 360, height: 740 } });
  for (const path of KINDS) {
    await page.goto(site.address + path);
    for (const details of await page.locator("details > summary").all()) await details.click();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${path}: ${width}`);
  }
  faults.length = 0; // The wrong address among them is logged.
});

await test("axe-core finds nothing serious on any kind of page", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("/", { bypassCSP: true, colorScheme });
    for (const path of KINDS) {
      await page.goto(site.address + path);
      for (const details of await page.locator("details > summary").all()) await details.click();
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() =>
        axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      const found = violations.map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes.map((n) => n.html).slice(0, 2).join(" ")}`);
      assert.deepEqual(found, [], `${path} ${colorScheme}`);
    }
    // The list of suggestions, open.
    await page.goto(site.address + "/en/");
    await page.getByRole("combobox").fill("old rose");
    await page.getByRole("option").first().waitFor();
    await page.keyboard.press("ArrowDown");
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
  }
  faults.length = 0;
});

await test("every page is valid HTML", async () => {
  const loader = new FileSystemConfigLoader({
    root: true, extends: ["html-validate:standard"],
    // Quotations keep their line breaks and foreign words; the rules below are matters of taste.
    rules: { "no-inline-style": "error", "long-title": "off", "no-raw-characters": "off", "no-trailing-whitespace": "off", "tel-non-breaking": "off" },
  });
  const validator = new HtmlValidate(loader);
  const pages = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".html"));
  assert.ok(pages.length > 20);
  for (const name of pages) {
    const report = await validator.validateString(await readFile(join(folder, name), "utf8"), name);
    const found = report.results.flatMap((result) => result.messages)
      .map(({ ruleId, message, line }) => `${name}:${line}: ${ruleId}: ${message}`);
    assert.deepEqual(found, []);
  }
});

await test("a former address leads to the question", async () => {
  const page = await open("/en/q/old-name/");
  await page.waitForURL("**/en/q/prune-roses/");
});

await test("printed, the text is there and the tools are not", async () => {
  const page = await open("/en/q/prune-roses/");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("form.ask").isVisible(), false);
  assert.equal(await page.locator(".languages").isVisible(), false);
  assert.ok(await page.locator("blockquote.quotation").first().isVisible());
});

if (shots) {
  await mkdir(shots, { recursive: true });
  for (const width of [360, 1280]) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open("/", { viewport: { width, height: 900 }, colorScheme });
      for (const path of KINDS) {
        await page.goto(site.address + path);
        const name = path.replaceAll("/", "_").replace(".html", "");
        await page.screenshot({ path: join(shots, `${width}-${colorScheme}${name}.png`), fullPage: true });
      }
    }
  }
}

await browser.close();
site.close();
if (!process.exitCode) console.log(`${passed} browser tests passed`);
