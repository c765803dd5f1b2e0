// The edge index beside Pagefind, in one browser, on the same published pages:
//   node site_peer.mjs SITE TOOLS QUESTIONS.json
// QUESTIONS is a list of [language, text, expected address]. Bytes are those of answers' bodies as sent,
// with nothing cached before each question ("cold") or after another one ("warm").

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

import { host } from "../tests/site/serve.mjs";

const [folder, tools, list] = process.argv.slice(2);
const { chromium } = createRequire(join(resolve(tools), "package.json"))("playwright-core");
const questions = JSON.parse(await readFile(list, "utf8"));
// Pagefind is WebAssembly, which the site's own policy does not let run.
const site = await host(folder, { policy: false });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"],
});

const middle = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1] ?? 0;
const mean = (numbers) => Math.round(numbers.reduce((sum, number) => sum + number, 0) / numbers.length);
const since = (mark, pattern) => site.sent.slice(mark).filter(({ path }) => pattern.test(path))
  .reduce((sum, { bytes }) => sum + bytes, 0);

async function fresh(language) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${site.address}/${language}/`, { waitUntil: "networkidle" });
  return page;
}

async function measure(name, pattern, ask) {
  const cold = [], warm = [], first = [], next = [];
  let right = 0, found = 0;
  for (const [at, [language, text, expected]] of questions.entries()) {
    const page = await fresh(language);
    let mark = site.sent.length, begun = performance.now();
    const addresses = await ask(page, language, text, true);
    first.push(performance.now() - begun);
    cold.push(since(mark, pattern));
    right += addresses[0]?.endsWith(expected) ?? false;
    found += addresses.slice(0, 6).some((address) => address.endsWith(expected));
    const [, other] = questions[(at + 1) % questions.length];
    mark = site.sent.length;
    begun = performance.now();
    await ask(page, language, other, false);
    next.push(performance.now() - begun);
    warm.push(since(mark, pattern));
    await page.context().close();
  }
  const share = (count) => (100 * count / questions.length).toFixed(1);
  console.log(`${name}: cold ${mean(cold)} bytes, warm ${mean(warm)} bytes; first suggestion ${middle(first).toFixed(0)} ms, ` +
    `next ${middle(next).toFixed(0)} ms (with the browser's driver); right ${share(right)} %, among six ${share(found)} %`);
}

// The box as a reader uses it. The script and style were loaded with the page and are added here.
await measure("edge index", /^\/edge\//, async (page, language, text) => {
  const input = page.getByRole("combobox");
  await input.fill("");
  await page.getByRole("listbox").waitFor({ state: "hidden" });
  await input.fill(text);
  await Promise.race([page.getByRole("option").first().waitFor(), page.waitForTimeout(3000)]);
  return page.getByRole("option").evaluateAll((items) => items.map((item) => item.dataset.address));
});

// Pagefind through its own interface: what its search box would fetch to show the first six results.
await measure("Pagefind", /^\/pagefind\//, (page, language, text, first) =>
  page.evaluate(async ([text, first]) => {
    if (first) {
      window.pagefind = await import("/pagefind/pagefind.js");
      await window.pagefind.init();
    }
    const search = await window.pagefind.search(text);
    const shown = await Promise.all(search.results.slice(0, 6).map((result) => result.data()));
    return shown.map(({ url }) => url);
  }, [text, first]));

await browser.close();
site.close();
