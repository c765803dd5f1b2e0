#!/usr/bin/env python3
"""Check handbook.gold.jsonl: every sentence must occur in its book, and every id in handbook.csv.

    check_gold.py DIR      DIR holds usr/share/doc/... of the two Debian packages
                           debian-handbook and installation-guide-amd64 (dpkg -x x.deb DIR)

A sentence is looked for in the text of the page: tags removed, entities resolved, NFC,
every run of white space (no-break spaces too) made one space.
"""
import csv, html, json, pathlib, re, sys, unicodedata

HERE = pathlib.Path(__file__).parent
FOLDERS = {
    "handbook-fr": "usr/share/doc/debian-handbook/html/fr-FR",
    "handbook-en": "usr/share/doc/debian-handbook/html/en-US",
    "guide-el": "usr/share/doc/installation-guide-amd64/el",
}


def fold(text):
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip()


def page_text(path):
    source = path.read_text(encoding="utf-8")
    source = re.sub(r"(?s)<(head|script|style)\b.*?</\1>", " ", source)
    source = re.sub(r"(?i)</?(p|div|li|ul|ol|h[1-6]|table|tr|td|th|pre|dl|dt|dd|br|hr)\b[^>]*>", " ", source)
    return fold(html.unescape(re.sub(r"<[^>]*>", "", source)))


def main(root):
    faults, seen = [], 0
    questions = {row["id"]: row for row in csv.DictReader(open(HERE / "handbook.csv", encoding="utf-8", newline=""))}
    answered = set()
    for number, line in enumerate(open(HERE / "handbook.gold.jsonl", encoding="utf-8"), 1):
        gold = json.loads(line)
        answered.add(gold["id"])
        if gold["id"] not in questions:
            faults.append(f"line {number}: unknown id {gold['id']}")
        folder = pathlib.Path(root) / FOLDERS[gold["collection"]]
        if fold(gold["sentence"]) not in page_text(folder / gold["file"]):
            faults.append(f"line {number}: sentence not in {gold['file']}: {gold['sentence'][:60]}")
        pages = [page_text(path) for path in sorted(folder.glob("*.html"))]
        for sentence in [gold["sentence"], *gold["also"]]:
            seen += 1
            if not any(fold(sentence) in page for page in pages):
                faults.append(f"line {number}: in no page of {gold['collection']}: {sentence[:60]}")
    without = sorted(set(questions) - answered)
    print(f"{len(questions)} questions, {len(answered)} with an answer, {seen} sentences checked, {len(faults)} faults")
    print("no answer in the book:", " ".join(without))
    for fault in faults:
        print(" ", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
