use std::io::{Cursor, Write};

use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const CONTAINER: (&str, &str) = (
    "META-INF/container.xml",
    "<container xmlns=\"urn:oasis:names:tc:opendocument:xmlns:container\"><rootfiles><rootfile full-path=\"epub/content.opf\"/></rootfiles></container>",
);

const PACKAGE: &str = "<package xmlns=\"http://www.idpf.org/2007/opf\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><metadata><dc:title>The Book</dc:title><dc:creator>A. One</dc:creator><dc:creator>B. Two</dc:creator><dc:language>en</dc:language><dc:date>1871-01-01</dc:date></metadata>
<manifest><item id=\"b\" href=\"text/b%20b.xhtml\" media-type=\"application/xhtml+xml\"/><item id=\"a\" href=\"text/a.xhtml\" media-type=\"application/xhtml+xml\"/><item id=\"n\" href=\"text/notes.xhtml\" media-type=\"application/xhtml+xml\"/><item id=\"t\" href=\"toc.xhtml\" properties=\"nav\" media-type=\"application/xhtml+xml\"/></manifest>
<spine><itemref idref=\"t\"/><itemref idref=\"a\"/><itemref idref=\"b\"/><itemref idref=\"n\"/></spine></package>";

const TOC: (&str, &str) = (
    "epub/toc.xhtml",
    "<html xmlns=\"http://www.w3.org/1999/xhtml\" xmlns:epub=\"http://www.idpf.org/2007/ops\"><body><nav epub:type=\"toc\"><ol><li><span>Part I</span><ol><li><a href=\"text/a.xhtml\">First</a></li><li><a href=\"text/b%20b.xhtml\">Second</a><ol><li><a href=\"text/b%20b.xhtml#s2\">Deeper</a></li></ol></li></ol></li></ol></nav></body></html>",
);

fn book() -> Vec<u8> {
    zip(&[
        (
            "epub/text/notes.xhtml",
            "<html><body><section epub:type=\"endnotes\"><ol><li id=\"n1\" epub:type=\"endnote\"><p>The note. <a href=\"a.xhtml#r1\" role=\"doc-backlink\">↩</a></p></li></ol></section></body></html>",
        ),
        (
            "epub/text/b b.xhtml",
            "<html><body><p>No heading.</p><p id=\"s2\">Deep text.</p></body></html>",
        ),
        (
            "epub/text/a.xhtml",
            "<html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>First</title></head><body><section><h2>First</h2><p>Text<a href=\"notes.xhtml#n1\" id=\"r1\" epub:type=\"noteref\">1</a> here<span epub:type=\"pagebreak\" title=\"12\"/> on twelve.</p><h3>Inner</h3><p>More.</p></section></body></html>",
        ),
        ("epub/content.opf", PACKAGE),
        TOC,
        CONTAINER,
    ])
}

#[test]
fn pages_come_in_the_order_of_the_spine_under_the_headings_of_the_navigation() {
    let content = read(&book()).unwrap();
    assert_eq!(content.title.as_deref(), Some("The Book"));
    assert_eq!(content.meta.author.as_deref(), Some("A. One; B. Two"));
    let document = content.into_document("c", "a.epub", "en");
    let found: Vec<(&str, String)> = document
        .blocks
        .iter()
        .map(|block| (document.slice(&block.range).unwrap(), block.headings.join(" / ")))
        .collect();
    assert_eq!(
        found,
        [
            ("First", "Part I".to_owned()),
            ("Text here on twelve.", "Part I / First".into()),
            ("Inner", "Part I / First".into()),
            ("More.", "Part I / First / Inner".into()),
            ("No heading.", "Part I / Second".into()),
            ("Deep text.", "Part I / Second / Deeper".into()),
            ("The note.", String::new()),
        ]
    );
    assert!(document.blocks[4].element.starts_with("epub/text/b b.xhtml:body/p[1]"));
    let text = &document.blocks[1].range;
    assert_eq!(document.map.notes, [(text.start + 4, 6)]);
    let twelve = document.text.find("twelve").unwrap();
    assert_eq!(document.place(&(twelve..twelve + 6)).unwrap().pages.unwrap().0, "12");
}

#[test]
fn version_two_with_its_own_navigation() {
    let package = PACKAGE
        .replace(
            "href=\"toc.xhtml\" properties=\"nav\" media-type=\"application/xhtml+xml\"",
            "href=\"toc.ncx\" media-type=\"application/x-dtbncx+xml\"",
        )
        .replace("<spine>", "<spine toc=\"t\">")
        .replace("<itemref idref=\"t\"/>", "")
        .replace("<itemref idref=\"n\"/>", "");
    let ncx = "<ncx xmlns=\"http://www.daisy.org/z3986/2005/ncx/\"><navMap><navPoint><navLabel><text>Part I</text></navLabel><content src=\"text/a.xhtml\"/><navPoint><navLabel><text>Second</text></navLabel><content src=\"text/b%20b.xhtml\"/></navPoint></navPoint></navMap></ncx>";
    let bytes = zip(&[
        CONTAINER,
        ("epub/content.opf", &package),
        ("epub/toc.ncx", ncx),
        ("epub/text/a.xhtml", "<html><body><p>A.</p></body></html>"),
        ("epub/text/b b.xhtml", "<html><body><p>B.</p></body></html>"),
    ]);
    let content = read(&bytes).unwrap();
    assert_eq!(content.text, "A.\n\nB.");
    assert_eq!(content.blocks[1].headings, ["Part I", "Second"]);
}

#[test]
fn a_chapter_that_is_marked_as_navigation_is_read() {
    let bytes = zip(&[
        CONTAINER,
        ("epub/content.opf", &PACKAGE.replace("<itemref idref=\"b\"/><itemref idref=\"n\"/>", "")),
        TOC,
        (
            "epub/text/a.xhtml",
            "<html><body><nav><h2>First</h2><p>The text.</p></nav></body></html>",
        ),
    ]);
    let content = read(&bytes).unwrap();
    assert_eq!(content.text, "First\n\nThe text.");
    assert_eq!(content.warnings.len(), 1);
}

#[test]
fn what_is_missing_is_named() {
    let without = |name: &str| {
        let all = [
            CONTAINER,
            ("epub/content.opf", PACKAGE),
            TOC,
            ("epub/text/a.xhtml", "<p>A</p>"),
            ("epub/text/b b.xhtml", "<p>B</p>"),
            ("epub/text/notes.xhtml", "<p>N</p>"),
        ];
        let left: Vec<_> = all.into_iter().filter(|(other, _)| *other != name).collect();
        read(&zip(&left))
    };
    assert!(without("").is_ok());
    for name in ["META-INF/container.xml", "epub/content.opf", "epub/text/b b.xhtml"] {
        let problem = without(name).unwrap_err();
        assert!(problem.contains(name) && problem.contains("missing"), "{problem}");
    }
    // A book can be read without its contents.
    assert_eq!(without("epub/toc.xhtml").unwrap().warnings.len(), 1);
    assert!(read(b"PK no zip").unwrap_err().contains("zip"));
    let no_item = zip(&[
        CONTAINER,
        ("epub/content.opf", "<package><manifest/><spine><itemref idref=\"x\"/></spine></package>"),
    ]);
    assert!(read(&no_item).unwrap_err().contains("\"x\""));
}

#[test]
fn links_in_the_zip() {
    assert_eq!(
        resolve("a/b/c.xhtml", "../d%20e.xhtml#f"),
        ("a/d e.xhtml".into(), Some("f".into()))
    );
    assert_eq!(resolve("c.xhtml", "#f"), ("c.xhtml".into(), Some("f".into())));
    assert_eq!(resolve("c.xhtml", "../../../x"), ("x".into(), None));
}

/// A whole book, to be damaged.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    vec![book()]
}

/// Members of a book: its package, its navigation, a page.
pub(crate) const MEMBERS: [&str; 3] =
    [PACKAGE, TOC.1, "<h2>First</h2><p>Text<a href='notes.xhtml#n1' epub:type='noteref'>1</a>"];

/// A book one of whose members holds these bytes.
pub(crate) fn with_member(member: usize, bytes: &[u8]) -> Vec<u8> {
    let names = ["epub/content.opf", TOC.0, "epub/text/a.xhtml"];
    let damaged = String::from_utf8_lossy(bytes);
    let mut members = MEMBERS;
    members[member] = &damaged;
    let mut files: Vec<(&str, &str)> = names.into_iter().zip(members).collect();
    files.extend([
        CONTAINER,
        ("epub/text/b b.xhtml", "<p>B"),
        ("epub/text/notes.xhtml", "<p id=n1>N"),
    ]);
    zip(&files)
}
