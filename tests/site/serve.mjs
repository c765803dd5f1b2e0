// A small static host, as the tests need one: the headers of the site's own `_headers` file, 404.html
// for wrong addresses, and nothing else. Counts what it sends.

import { readFile, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
  ".js": "text/javascript; charset=utf-8", ".json": "application/json", ".xml": "application/xml",
  ".md": "text/markdown; charset=utf-8", ".txt": "text/plain; charset=utf-8",
};
const PACKED = { br: "br", gzip: "gz" };

// The headers for a path, from a `_headers` file; what comes later goes before.
export function headersFor(text, path) {
  const headers = {};
  let applies = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("/")) {
      const pattern = line.trim();
      applies = pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
    } else if (applies && line.startsWith("  ! ")) {
      delete headers[line.slice(4).trim()];
    } else if (applies && line.includes(": ")) {
      const at = line.indexOf(": ");
      headers[line.slice(2, at)] = line.slice(at + 2);
    }
  }
  return headers;
}

export async function host(folder, { policy = true } = {}) {
  const sent = [];
  let change = null;
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://host");
    let path = normalize(decodeURIComponent(url.pathname));
    if (path.endsWith("/")) path += "index.html";
    const changed = change?.(path);
    const headers = headersFor(await readFile(join(folder, "_headers"), "utf8"), path);
    if (!policy) delete headers["Content-Security-Policy"];
    let file = join(folder, path), status = 200;
    if (changed === null || !(await stat(file).catch(() => null))?.isFile()) {
      [file, status] = [join(folder, "404.html"), 404];
    }
    headers["Content-Type"] = TYPES[extname(file)] ?? "application/octet-stream";
    const accepted = request.headers["accept-encoding"] ?? "";
    for (const [name, ending] of Object.entries(PACKED)) {
      const packed = `${file}.${ending}`;
      if (accepted.includes(name) && (await stat(packed).catch(() => null))) {
        headers["Content-Encoding"] = name;
        file = packed;
        break;
      }
    }
    response.writeHead(status, headers);
    const bytes = changed ?? (await readFile(file));
    sent.push({ path, bytes: bytes.length, status });
    response.end(bytes);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    address: `http://127.0.0.1:${server.address().port}`,
    sent,
    // Sends something else: a function from a path to bytes, null for "not found", or undefined.
    set change(value) { change = value; },
    close: () => { server.closeAllConnections(); server.close(); },
  };
}
