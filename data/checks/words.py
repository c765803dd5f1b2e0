#!/usr/bin/env python3
"""Counts words of real texts by other means than the program, and compares.

    words.py PROGRAM CORPORA

PROGRAM is the example `words` of crates/corpus; CORPORA holds freud-de-tei, francais-tei,
platon-grc-txt, gutenberg and epub. A difference of more than half a per cent is an error.
"""

import html
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

TEI = "{http://www.tei-c.org/ns/1.0}"
APART = {"p", "ab", "head", "l", "note", "label", "dateline", "quote", "bibl", "argument", "epigraph", "div", "trailer", "postscript", "item", "body"}


def tei(path):
    """All text in <text>, page numbers and marks of notes aside; words go on at break="no"."""
    out = []

    def walk(node):
        name = node.tag.replace(TEI, "") if isinstance(node.tag, str) else "comment"
        mark = name == "hi" and "footnote-index" in node.get("rendition", "")
        if name in ("lb", "pb", "cb"):
            out.append("\0" if node.get("break") == "no" else " ")
        elif name not in ("fw", "comment", "figDesc") and not mark:
            if name in APART and (name != "label" or not node.get("rend")) and name not in ("quote", "bibl"):
                out.append("\n")
            out.append(node.text or "")
            for child in node:
                if name_of(child) == "note":
                    notes.append(child)
                else:
                    walk(child)
                out.append(child.tail or "")
            if name in APART and (name != "label" or not node.get("rend")) and name not in ("quote", "bibl"):
                out.append("\n")

    def name_of(node):
        return node.tag.replace(TEI, "") if isinstance(node.tag, str) else ""

    notes = []
    for text in ET.parse(path).iter(TEI + "text"):
        walk(text)
    while notes:
        out.append("\n")
        walk(notes.pop())
    text = re.sub(r"\s*\0(\s|\0)*", "", "".join(out))
    # "1)" with the parenthesis outside the mark.
    return text


def plain(path):
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return body(text)


def body(text):
    start = re.search(r"\*\*\* START OF TH.*\n", text)
    if start:
        text = text[start.end():]
        text = re.sub(r"\A\s*Produced by(.|\n)*?\n\s*\n", "", text.replace("\r\n", "\n"))
        text = re.split(r"\nEnd of (?:the )?Project Gutenberg|\*\*\* END OF TH", text)[0]
    return text


def braces(path):
    text = re.sub(r"\{[^}]*\}", " ", path.read_text("utf-8"))
    return re.sub(r"\s+([,.;:·!?)’”»])", r"\1", text)


def page(text):
    text = re.sub(r"(?s)<(script|style|head|nav)\b.*?</\1>", " ", text)
    text = re.sub(r'(?s)<a\b[^>]*(noteref|doc-backlink)[^>]*>.*?</a>', "", text)
    text = re.sub(r"(?s)<a[^>]*href=\"#[^>]*><sup>.*?</sup></a>", "", text)
    text = re.sub(r"</?(i|b|em|strong|span|a|abbr|cite|small|sup|sub|tt|u|q|font|dfn|big)\b[^>]*>", "", text)
    text = re.sub(r"(?s)<[^>]+>", " ", text)
    return html.unescape(text)


def htm(path):
    raw = path.read_bytes()
    text = raw.decode("latin-1" if b"iso-8859-1" in raw[:2000].lower() else "utf-8-sig")
    return page(body(text.replace("\r\n", "\n")))


def epub(path):
    with zipfile.ZipFile(path) as book:
        opf = book.read("epub/content.opf").decode()
        items = {re.search(r'\bid="([^"]+)"', tag)[1]: re.search(r'href="([^"]+)"', tag)[1] for tag in re.findall(r"<item\b[^>]*>", opf)}
        order = [items[name] for name in re.findall(r'<itemref\b[^>]*idref="([^"]+)"', opf)]
        return "\n".join(page(book.read("epub/" + name).decode()) for name in order if "toc" not in name)


READERS = [("freud-de-tei", "de", "*.xml", tei), ("francais-tei", "fr", "*.xml", tei), ("platon-grc-txt", "grc", "*.txt", braces), ("gutenberg", "en", "*.txt", plain), ("gutenberg", "en", "*.htm", htm), ("epub", "en", "*.epub", epub)]


def main():
    program, corpora = sys.argv[1], Path(sys.argv[2])
    failed = False
    for folder, language, pattern, reader in READERS:
        command = [program, str(corpora / folder), language] + (["braces"] if reader is braces else [])
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        counts = {name: int(count) for name, count in (line.split("\t") for line in lines)}
        for path in sorted((corpora / folder).glob(pattern)):
            words = (word for word in reader(path).split() if any(c.isalnum() for c in word))
            expected, found = sum(1 for _ in words), counts[path.name]
            difference = 100 * (found - expected) / expected
            bad = abs(difference) > 0.5
            failed |= bad
            print(f"{'BAD ' if bad else ''}{folder}/{path.name}: {found} words, {expected} by other means, {difference:+.3f} %")
    return 1 if failed else 0


sys.exit(main())
