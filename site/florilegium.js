// The ask box of the published pages: finds curated questions in the edge index, without any server.
// Everything else on the pages works without this script. crates/edge describes the index and reads
// it in the same way; both are tested on the same vectors.

export const FORMAT_VERSION = 1;
const LIMIT = 16 << 20;
const MOST_TERMS = 12, MOST_COMPLETIONS = 40, COMPARED = 8;
const COMPLETION = 0.8, PER_CHANGE = 0.25, OTHER_FORM = 0.6, LEAST = 0.2;

// Folding: when two wordings are the same (crates/fold).

const ACCENT = /[\u0300-\u0337\u0339-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF\uFE20-\uFE2F\u0591-\u05BD\u05BF\u05C1\u05C2\u05C4\u05C5\u064B-\u065F\u0670\u00AD\u200B-\u200F\u2060\uFEFF]/gu;
const OTHER = /[^\p{Alphabetic}\p{N}\p{M}+#%$&@=<>^~°\u20A0-\u20CF\u2190-\u22FF]+/gu;
const JOINED = { "ς": "σ", "ß": "ss", "œ": "oe", "æ": "ae" };
const UNSPACED = /([\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u9FFF\uF900-\uFAFF\u{20000}-\u{3FFFF}])/u;

export function fold(text) {
  return text.normalize("NFKD").toLowerCase().normalize("NFKD").replace(ACCENT, "").normalize("NFKD")
    .replace(OTHER, " ").replace(/[ςßœæ]/g, (c) => JOINED[c]).trim();
}

export function terms(folded) {
  return folded.split(" ").flatMap((word) => word.split(UNSPACED)).filter((term) => term);
}

export function hash(folded) {
  let h = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(folded)) h = Math.imul(h ^ byte, 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

// Likeness.

function distance(one, other, most) {
  if (Math.abs(one.length - other.length) > most) return null;
  let before = [], last = other.map((_, i) => i);
  last.push(other.length);
  for (let i = 0; i < one.length; i++) {
    const row = [i + 1];
    let least = i + 1;
    for (let j = 0; j < other.length; j++) {
      let cost = Math.min(last[j] + (one[i] !== other[j]), last[j + 1] + 1, row[j] + 1);
      if (i && j && one[i] === other[j - 1] && one[i - 1] === other[j]) cost = Math.min(cost, before[j - 1] + 1);
      row.push(cost);
      least = Math.min(least, cost);
    }
    if (least > most) return null;
    before = last;
    last = row;
  }
  return last[other.length] <= most ? last[other.length] : null;
}

function sharedPairs(one, other) {
  const pairs = (text) => {
    const chars = [...text], counts = new Map();
    for (let i = 1; i < chars.length; i++) {
      const pair = chars[i - 1] + chars[i];
      counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
    return [counts, Math.max(chars.length - 1, 0)];
  };
  const [a, inOne] = pairs(one), [b, inOther] = pairs(other);
  if (!inOne || !inOther) return 0;
  let shared = 0;
  for (const [pair, count] of a) shared += Math.min(count, b.get(pair) ?? 0);
  return 2 * shared / (inOne + inOther);
}

// By code points, as the index is ordered: not by UTF-16.
function notAfter(one, other) {
  const a = [...one], b = [...other];
  for (let i = 0; i < a.length && i < b.length; i++) {
    if (a[i] !== b[i]) return a[i].codePointAt(0) < b[i].codePointAt(0);
  }
  return a.length <= b.length;
}

// Files. A fault says whether another index (or another script) would help.

export class Fault extends Error {}
export class OtherVersion extends Fault {}

let table;
function crc32(parts) {
  table ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n;
  });
  let crc = ~0;
  for (const bytes of parts) for (const byte of bytes) crc = table[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

async function unpack(packed) {
  if (packed[0] !== 0x1f || packed[1] !== 0x8b) return packed;
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const pieces = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > LIMIT) throw new Fault("too large");
    pieces.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

// Reads the payload of a file: integers of fixed width, little endian.
class Payload {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = 0;
  }
  take(length) {
    if (length > this.bytes.length - this.at) throw new Fault("truncated");
    this.at += length;
    return this.at - length;
  }
  u8() { return this.view.getUint8(this.take(1)); }
  u32() { return this.view.getUint32(this.take(4), true); }
  length() {
    const length = Number(this.view.getBigUint64(this.take(8), true));
    if (length > LIMIT) throw new Fault("too long");
    return length;
  }
  piece() {
    const length = this.length(), at = this.take(length);
    return this.bytes.subarray(at, at + length);
  }
  text() { return new TextDecoder("utf-8", { fatal: true }).decode(this.piece()); }
  list(item) { return Array.from({ length: this.length() }, item); }
  end() { if (this.at !== this.bytes.length) throw new Fault("bytes left over"); }
}

export async function openFile(packed, kind, language, shard) {
  let bytes;
  try {
    bytes = await unpack(packed);
  } catch (error) {
    throw new Fault(String(error));
  }
  if (bytes.length < 32) throw new Fault("truncated");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (String.fromCharCode(...bytes.subarray(0, 8)) !== "FLOREDGE") throw new Fault("not an edge index");
  if (view.getUint16(8, true) !== FORMAT_VERSION) throw new OtherVersion(`version ${view.getUint16(8, true)}`);
  const payload = bytes.subarray(32);
  if (view.getUint32(24, true) !== payload.length) throw new Fault("truncated");
  if (view.getUint32(28, true) !== crc32([bytes.subarray(0, 28), payload])) throw new Fault("damaged");
  if (bytes[10] !== kind || bytes[11] !== language || view.getUint32(12, true) !== shard) throw new Fault("mixed");
  const id = [...bytes.subarray(16, 24)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { id, payload: new Payload(payload) };
}

// The index. `get` brings the bytes at a path of the site.

export class Index {
  static async open(get) {
    const index = new Index();
    const { id, payload } = await openFile(await get("edge/root.flx"), 1, 0, 0);
    Object.assign(index, { get, id, files: new Map(), bits: payload.u8(), block: Math.max(payload.u32(), 1) });
    index.languages = payload.list(() => {
      const tag = payload.text(), questions = payload.u32(), first = payload.text();
      return { tag, questions, first: first ? first.split("\n") : [] };
    });
    payload.end();
    return index;
  }

  part(kind, language, shard, name, read) {
    if (!this.files.has(name)) {
      const file = (async () => {
        const { id, payload } = await openFile(await this.get(`edge/${this.id}/${name}.flx`), kind, language, shard);
        if (id !== this.id) throw new Fault("mixed");
        const value = read(payload);
        payload.end();
        return value;
      })();
      file.catch(() => this.files.delete(name));
      this.files.set(name, file);
    }
    return this.files.get(name);
  }

  async line(language, question) {
    const shard = Math.floor(question / this.block), tag = this.languages[language].tag;
    const lines = await this.part(4, language, shard, `t-${tag}-${shard}`, (file) => file.text().split("\n"));
    const [id, ...wordings] = (lines[question % this.block] ?? "").split("\t");
    return { language: tag, id, question: wordings[0] ?? "", wordings };
  }

  // The question of which `text` is a wording; equal to one after folding, not merely like it.
  async exact(language, text) {
    const folded = fold(text);
    if (!folded) return null;
    const key = hash(folded), shard = this.bits ? key >>> (32 - this.bits) : 0;
    const { hashes, owners } = await this.part(2, 0, shard, `e-${shard}`, (file) => ({
      hashes: file.list(() => file.u32()), owners: file.list(() => file.u32()),
    }));
    const found = [];
    for (let i = 0; i < hashes.length; i++) {
      if (hashes[i] !== key || !this.languages[owners[i] >>> 24]) continue;
      const line = await this.line(owners[i] >>> 24, owners[i] & 0xffffff);
      if (line.wordings.some((wording) => fold(wording) === folded)) found.push(line);
    }
    return found.find((line) => line.language === language) ?? found[0] ?? null;
  }

  // The questions most like `text`, the likest first. The last word may still be being typed.
  async suggest(language, text, count) {
    const at = this.languages.findIndex((known) => known.tag === language);
    if (at < 0) return [];
    const folded = fold(text), known = this.languages[at];
    const asked = [...new Set(terms(folded))].slice(0, MOST_TERMS), unfinished = /\S$/u.test(text);
    const matches = await Promise.all(
      asked.map((term, i) => this.matches(at, known, term, unfinished && i + 1 === asked.length)));
    const scores = new Map();
    let weight = 0;
    for (const match of matches) {
      weight += match.weight;
      for (const [question, score] of match.scores) scores.set(question, (scores.get(question) ?? 0) + score);
    }
    const best = [...scores].sort((a, b) => b[1] - a[1] || a[0] - b[0])
      .filter(([, score]) => score >= LEAST * weight).slice(0, Math.max(COMPARED, count));
    const lines = await Promise.all(best.map(([question]) => this.line(at, question)));
    lines.forEach((line, i) => {
      const nearest = Math.max(0, ...line.wordings.map((wording) => sharedPairs(folded, fold(wording))));
      line.likeness = 0.5 * best[i][1] / weight + 0.5 * nearest;
    });
    return lines.sort((a, b) => b.likeness - a.likeness).slice(0, count);
  }

  async matches(language, known, term, unfinished) {
    const scores = new Map(), letters = [...term];
    let own = 0, any = false;
    const forms = [term, letters.slice(1).join(""), [letters[1] ?? "", letters[0], ...letters.slice(2)].join("")];
    for (const [i, form] of forms.entries()) {
      if (i && (any || letters.length < 4) || !known.first.length) break;
      let shard = 0;
      while (shard + 1 < known.first.length && notAfter(known.first[shard + 1], form)) shard++;
      const words = await this.part(3, language, shard, `w-${known.tag}-${shard}`, readWords);
      const other = words.some(([word]) => word === term) ? OTHER_FORM : 1;
      let completions = 0;
      for (const [word, list] of words) {
        const weight = list.length ? Math.log(1 + known.questions / list.length) : 0;
        let factor = 1;
        if (word === term) {
          any = true;
          own = weight;
          if (!list.length && !unfinished) return { weight: 0, scores: new Map() };
        } else {
          const completes = unfinished && letters.length > 1 && completions < MOST_COMPLETIONS && word.startsWith(term);
          completions += completes;
          const most = letters.length < 4 ? 0 : letters.length < 8 ? 1 : 2;
          const changes = distance(letters, [...word], most);
          factor = changes === null ? 0 : (1 - PER_CHANGE * changes) * other;
          any ||= (factor > 0 || completes) && list.length > 0;
          if (completes) factor = Math.max(factor, COMPLETION);
        }
        if (factor > 0) for (const question of list) {
          scores.set(question, Math.max(scores.get(question) ?? 0, factor * weight));
        }
      }
    }
    let most = own;
    for (const score of scores.values()) most = Math.max(most, score);
    return { weight: most, scores };
  }
}

function readWords(file) {
  const words = file.text().split("\n"), bytes = file.piece();
  let at = 0;
  const number = () => {
    let value = 0, shift = 0, byte;
    do {
      if (at >= bytes.length || shift > 28) throw new Fault("truncated");
      byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      shift += 7;
    } while (byte & 128);
    return value;
  };
  return words.map((word) => {
    const list = Array(number());
    for (let i = 0, before = 0; i < list.length; i++) list[i] = before += number();
    return [word, list];
  });
}

// The page. Texts come from attributes that the templates fill: this script speaks no language.

const PAUSE = 90, SHOWN = 6, RELOADED = "florilegium-reloaded";

// One index for the page. A file that is missing or of another index: a new release; read its root.
// Another version: this script is older or newer than the index; load the page, and the script, anew.
class Shelf {
  constructor(root) { this.root = root; }

  async fetch(path, cache) {
    const reply = await fetch(this.root + path, { cache });
    if (!reply.ok) throw new Fault(`${path}: ${reply.status}`);
    return new Uint8Array(await reply.arrayBuffer());
  }

  open(cache) {
    // What carries a hash is kept by the browser; anew, in case it kept that it was missing.
    return Index.open((path) => this.fetch(path, cache === "reload" || path === "edge/root.flx" ? cache : "default"));
  }

  async ask(question) {
    try {
      this.index ??= this.open("no-cache");
      return await question(await this.index);
    } catch (error) {
      this.index = undefined;
      if (!(error instanceof Fault)) throw error;
      if (error instanceof OtherVersion) return this.reload(error);
    }
    this.index = this.open("reload");
    this.index.catch(() => { this.index = undefined; });
    return question(await this.index);
  }

  reload(error) {
    // Once: if the new page does not match either, the box still leads to the list.
    if (sessionStorage.getItem(RELOADED)) throw error;
    sessionStorage.setItem(RELOADED, "1");
    location.reload();
    return new Promise(() => {});
  }
}

function askBox(form, root) {
  const input = form.querySelector("input[type=search]"), list = form.querySelector("[role=listbox]");
  const status = form.querySelector("[role=status]"), language = form.dataset.language;
  const shelf = new Shelf(root);
  let asked = 0, timer, chosen = -1, items = [];
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
  })) input.setAttribute(name, value);

  const address = (found) => `${root}${found.language}/q/${found.id}/`;
  const close = () => {
    asked++;
    list.hidden = true;
    choose(-1);
    input.setAttribute("aria-expanded", "false");
  };
  const choose = (at) => {
    items[chosen]?.setAttribute("aria-selected", "false");
    chosen = at;
    const item = items[chosen];
    if (item) {
      item.setAttribute("aria-selected", "true");
      item.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", item.id);
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  };
  const show = (found) => {
    chosen = -1;
    input.removeAttribute("aria-activedescendant");
    items = found.map((one, at) => {
      const item = document.createElement("li");
      Object.assign(item, { id: `suggestion-${at}`, role: "option", lang: one.language, textContent: one.question });
      item.setAttribute("aria-selected", "false");
      item.dataset.address = address(one);
      return item;
    });
    list.replaceChildren(...items);
    list.hidden = !items.length;
    input.setAttribute("aria-expanded", String(items.length > 0));
    const { one, other, none } = status.dataset;
    status.textContent = items.length ? (items.length === 1 ? one : other).replace("{n}", items.length) : none;
  };
  const suggest = async () => {
    const text = input.value, turn = ++asked;
    if (!fold(text)) return close();
    const found = await shelf.ask(async (index) => {
      const exact = await index.exact(language, text);
      let likes = await index.suggest(language, text, SHOWN);
      for (const { tag } of index.languages) {
        if (!likes.length && tag !== language) likes = await index.suggest(tag, text, SHOWN);
      }
      const same = (one) => exact && one.id === exact.id && one.language === exact.language;
      return exact ? [exact, ...likes.filter((one) => !same(one))].slice(0, SHOWN) : likes;
    }).catch(() => []);
    if (turn === asked) show(found);
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || list.hidden) return;
    const last = items.length - 1;
    const to = { ArrowDown: chosen < last ? chosen + 1 : 0, ArrowUp: chosen > 0 ? chosen - 1 : last }[event.key];
    if (to !== undefined) choose(to);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" && items[chosen]) location.assign(items[chosen].dataset.address);
    else return;
    event.preventDefault();
  });
  // The box keeps the focus while a suggestion is clicked.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[role=option]");
    if (item) location.assign(item.dataset.address);
  });
  input.addEventListener("blur", close);
  let sending = false;
  form.addEventListener("submit", async (event) => {
    if (sending) return;
    event.preventDefault();
    clearTimeout(timer);
    const text = input.value;
    const exact = await shelf.ask((index) => index.exact(language, text)).catch(() => null);
    if (exact) return location.assign(address(exact));
    // Without a server there is nothing to send: the nearest questions are all there is.
    if (!("live" in form.dataset)) {
      await suggest();
      input.focus();
      if (items.length) return;
    }
    sending = true;
    form.submit();
  });
}

function copyButton(button) {
  const text = document.getElementById(button.dataset.copy), label = button.textContent;
  if (!text || !navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = document.body.dataset.copied;
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}

if (typeof document !== "undefined") {
  // From the address of this script: pages may be shown at any depth.
  const root = new URL("..", import.meta.url).href;
  for (const form of document.querySelectorAll("form.ask")) askBox(form, root);
  for (const button of document.querySelectorAll("button.copy")) copyButton(button);
}
