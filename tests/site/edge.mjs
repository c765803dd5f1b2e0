// The reader of the edge index in the site's script, on the vectors that the Rust reader passes.
// Run by crates/edge/tests/vectors.rs, or by hand: node tests/site/edge.mjs

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { gunzipSync, gzipSync } from "node:zlib";

const root = new URL("../../", import.meta.url);
const source = await readFile(new URL("site/florilegium.js", root));
const { FORMAT_VERSION, Fault, Index, OtherVersion, fold } =
  await import(`data:text/javascript;base64,${source.toString("base64")}`);

const folder = new URL("data/fixtures/edge/", root);
const vectors = JSON.parse(await readFile(new URL("vectors.json", folder), "utf8"));
const get = async (path) => new Uint8Array(await readFile(new URL(`v1/${path}`, folder)));

assert.equal(FORMAT_VERSION, vectors.version);
for (const [text, folded] of vectors.fold) {
  assert.equal(fold(text), folded, `fold(${JSON.stringify(text)})`);
}
const index = await Index.open(get);
assert.equal(index.id, vectors.id);
for (const { language, text, exact, suggested } of vectors.answers) {
  const found = await index.exact(language, text);
  assert.equal(found && `${found.language}/${found.id}`, exact, `exact: ${text}`);
  const likes = await index.suggest(language, text, 5);
  const said = likes.map(({ id, likeness }) => [id, Math.round(likeness * 1e3)]);
  assert.deepEqual(said, suggested, `suggest: ${text}`);
}

// Whatever is wrong with a file, it is refused.
const plain = gunzipSync(await get("edge/root.flx"));
const opens = (bytes) => Index.open(async () => new Uint8Array(bytes));
await opens(plain);
for (let at = 0; at < plain.length; at++) {
  const damaged = Buffer.from(plain);
  damaged[at] ^= 1 << at % 8;
  await assert.rejects(opens(damaged), Fault, `byte ${at}`);
}
const newer = Buffer.from(plain);
newer.writeUInt16LE(FORMAT_VERSION + 1, 8);
await assert.rejects(opens(gzipSync(newer)), OtherVersion);
for (const length of [0, 7, 31, plain.length - 1]) {
  await assert.rejects(opens(plain.subarray(0, length)), Fault);
}
const packed = Buffer.from(await get("edge/root.flx"));
await assert.rejects(opens(packed.subarray(0, packed.length - 9)), Fault);
packed[packed.length >> 1] ^= 4;
await assert.rejects(opens(packed), Fault);

// A file of the index in the place of another.
const confused = await Index.open((path) =>
  get(path.endsWith("t-en-0.flx") ? path.replace("t-en-0", "t-en-1") : path));
await assert.rejects(confused.suggest("en", "Debian release", 3), Fault);

console.log(`${vectors.fold.length} foldings and ${vectors.answers.length} answers are the same`);
