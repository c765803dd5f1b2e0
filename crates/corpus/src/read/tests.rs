use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::document::Role;

fn collection(folder: &Path) -> Collection {
    Collection {
        id: "book".into(),
        title: "Book".into(),
        path: folder.into(),
        language: "fr".into(),
        role: Role::Synthesis,
        licence: "CC0".into(),
        url: "https://example.org/{path}#{anchor}".into(),
        exclude: vec![],
        format: None,
        encoding: None,
        reading: Default::default(),
        braces: false,
        metadata: None,
    }
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

fn ids(documents: &[Document]) -> Vec<&str> {
    documents.iter().map(|document| document.id.as_str()).collect()
}

#[test]
fn reads_in_path_order_and_reports() {
    let folder = folder(&[
        ("z.html", b"<title>Z</title><p>Un deux &mdash; trois."),
        ("a/é #1?.txt", b"Quatre cinq."),
        ("A/x.HTM", b"<p>Six."),
        ("empty.html", b""),
        ("blank.txt", b" \n\n"),
        ("img/a.png", b"\x89PNG"),
        ("img/b.png", b"\x89PNG"),
        ("LICENSE", b"x"),
        (".hidden.html", b"\xff"),
        (".git/x.html", b"\xff"),
        ("index.html", b"<p>No"),
    ]);
    let mut collection = collection(folder.path());
    collection.exclude = vec!["index.html".into(), "nothing*.html".into()];
    let (documents, report) = read_collection(&collection).unwrap();
    assert_eq!(ids(&documents), ["book/A/x.HTM", "book/a/é #1?.txt", "book/z.html"]);
    assert_eq!((report.documents, report.words), (3, 6));
    assert_eq!(report.other_files, BTreeMap::from([("png".into(), 2), (String::new(), 1)]));
    let skipped: Vec<(&str, &str)> = report
        .skipped
        .iter()
        .map(|skipped| (skipped.path.as_str(), skipped.reason.as_str()))
        .collect();
    assert_eq!(
        skipped,
        [
            (".git", "hidden folder"),
            (".hidden.html", "hidden file"),
            ("blank.txt", "holds no text"),
            ("empty.html", "holds no text"),
            ("index.html", "excluded by \"index.html\""),
        ]
    );
    assert_eq!(report.warnings.len(), 1);
    assert!(report.warnings[0].message.contains("nothing*.html"));
    assert_eq!(documents[2].title, "Z");
    assert_eq!(documents[2].language, "fr");
    assert_eq!(
        collection.link(&documents[1].path, None),
        "https://example.org/a/%C3%A9%20%231%3F.txt"
    );
    // One file read anew is the same document.
    for document in &documents {
        assert_eq!(&read_document(&collection, &document.path).unwrap(), document);
    }
}

#[test]
fn names_that_differ_only_in_case_and_long_names() {
    let long = format!("{}.html", "n".repeat(245));
    let folder = folder(&[("Page.html", b"<p>A"), ("page.html", b"<p>B"), (&long, b"<p>C")]);
    let (documents, report) = read_collection(&collection(folder.path())).unwrap();
    assert_eq!(documents.len(), 3);
    assert_eq!(report.warnings.len(), 1);
    assert!(report.warnings[0].message.contains("only in case"));
}

#[test]
fn one_unreadable_file_fails_the_collection() {
    let folder =
        folder(&[("a.html", b"<p>ok"), ("b.html", b"<p>one\ntwo \xe9"), ("c.txt", b"\xff")]);
    let error = read_collection(&collection(folder.path())).unwrap_err().to_string();
    assert!(error.contains("b.html: line 2, byte 11: not valid UTF-8"), "{error}");
    assert!(error.contains("iconv"), "{error}");
}

#[test]
fn missing_empty_and_wrong_folders() {
    let base = folder(&[("only.png", b"x"), ("sub/file.txt", b"text"), ("none/x.txt", b"")]);
    let message =
        |path: &str| read_collection(&collection(&base.path().join(path))).unwrap_err().to_string();
    assert!(message("absent").contains("does not exist"));
    assert!(message("only.png").contains("is not a folder"));
    assert!(message("none").contains("no readable text"));
    fs::create_dir(base.path().join("bare")).unwrap();
    let error = message("bare");
    assert!(error.contains("no readable text") && error.contains("`exclude`"), "{error}");
}

#[test]
fn documents_outside_the_folder_are_refused() {
    let folder = folder(&[("a.html", b"<p>x"), ("b.png", b"x")]);
    let collection = collection(folder.path());
    for path in ["../a.html", "/etc/hosts.txt", "b.png", "./a.html", ""] {
        let error = read_document(&collection, path).unwrap_err();
        assert!(matches!(error, CorpusError::NoDocument { .. }), "{path}: {error}");
    }
    assert!(matches!(read_document(&collection, "gone.html").unwrap_err(), CorpusError::Io { .. }));
}

#[cfg(unix)]
#[test]
fn links_that_leave_the_folder_are_not_followed() {
    use std::os::unix::fs::symlink;
    let outside = folder(&[("secret.html", b"<p>secret")]);
    let inside = folder(&[("sub/a.html", b"<p>a")]);
    symlink(outside.path().join("secret.html"), inside.path().join("out.html")).unwrap();
    symlink(outside.path(), inside.path().join("outdir")).unwrap();
    symlink("sub/a.html", inside.path().join("in.html")).unwrap();
    symlink("sub", inside.path().join("indir")).unwrap();
    symlink("nowhere.html", inside.path().join("dead.html")).unwrap();
    let (documents, report) = read_collection(&collection(inside.path())).unwrap();
    assert_eq!(ids(&documents), ["book/in.html", "book/sub/a.html"]);
    let skipped: Vec<&str> = report.skipped.iter().map(|skipped| skipped.path.as_str()).collect();
    assert_eq!(skipped, ["dead.html", "indir", "out.html", "outdir"]);
    assert!(report.skipped[2].reason.contains("leaves the folder"));
}

#[cfg(unix)]
#[test]
fn a_name_that_is_no_text_is_an_error() {
    use std::os::unix::ffi::OsStrExt;
    let folder = folder(&[("a.html", b"<p>a")]);
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"b\xff.html")), "<p>b").unwrap();
    let error = read_collection(&collection(folder.path())).unwrap_err().to_string();
    assert!(error.contains("rename"), "{error}");
}

#[test]
fn a_page_in_another_language_keeps_it() {
    let folder =
        folder(&[("a.html", b"<html lang=en-GB><p>a"), ("b.html", b"<html lang=fr-CA><p>b")]);
    let (documents, _) = read_collection(&collection(folder.path())).unwrap();
    let languages: Vec<&str> =
        documents.iter().map(|document| document.language.as_str()).collect();
    assert_eq!(languages, ["en-GB", "fr"]);
}

#[test]
fn charsets() {
    let folder = folder(&[
        ("bom.txt", "\u{feff}é".as_bytes()),
        ("latin.html", b"<meta charset=iso-8859-1><p>\xe9t\xe9"),
        ("wrong.html", "<meta charset=iso-8859-1><p>été".as_bytes()),
        ("nul.txt", b"a\0b"),
    ]);
    let (documents, report) = read_collection(&collection(folder.path())).unwrap();
    let texts: Vec<&str> = documents.iter().map(|document| document.text.as_str()).collect();
    assert_eq!(texts, ["é", "été", "ab", "été"]);
    assert_eq!(report.warnings.len(), 2);
}

/// The same bytes, packed.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

const TEI: &[u8] = b"<?xml version=\"1.0\"?>\n<!-- c --><TEI xmlns=\"http://www.tei-c.org/ns/1.0\"><text><body><p>Du TEI.</p></body></text></TEI>";

#[test]
fn every_format_is_told_by_its_name_or_its_content() {
    let packed = gzip(b"Du texte.");
    let folder = folder(&[
        ("a.md", b"Du *Markdown*."),
        ("b.xml", TEI),
        ("c.xml", b"<?xml version='1.0'?><urlset/>"),
        ("d.txt.gz", &packed),
        ("e", b"<!doctype html><html><p>Du HTML."),
        ("f.gz", &gzip(TEI)),
        ("g.jsonl", b"{\"id\": \"x/1\", \"text\": \"Un.\"}\n{\"text\": \"Deux.\"}"),
        ("h.epub", &epub::samples().remove(0)),
        ("i.csv", b"a,b"),
        ("j", b"Sans nom."),
    ]);
    let collection = collection(folder.path());
    let (documents, report) = read_collection(&collection).unwrap();
    assert_eq!(
        ids(&documents),
        [
            "book/a.md",
            "book/b.xml",
            "book/d.txt.gz",
            "book/e",
            "book/f.gz",
            "book/g.jsonl/x/1",
            "book/g.jsonl/line-2",
            "book/h.epub",
        ]
    );
    assert_eq!(report.other_files.values().sum::<usize>(), 3);
    for document in &documents {
        assert_eq!(
            read_document(&collection, &document.path).unwrap(),
            *document,
            "the same again"
        );
    }
    assert!(matches!(
        read_document(&collection, "g.jsonl/none"),
        Err(CorpusError::NoDocument { .. })
    ));
}

#[test]
fn the_settings_say_how_files_are_read() {
    let folder = folder(&[("a.html", b"<b>x</b>\n\n{17a} y"), ("b.dat", b"\xe1\xe2")]);
    let mut collection = collection(folder.path());
    collection.format = Some(Format::Text);
    collection.encoding = Some("windows-1253".into());
    collection.braces = true;
    let (documents, report) = read_collection(&collection).unwrap();
    assert_eq!(documents[0].text, "<b>x</b>\n\ny");
    assert_eq!(documents[1].text, "αβ");
    assert!(report.warnings.is_empty());
}

#[test]
fn all_unreadable_files_are_named_at_once_with_their_lines() {
    let folder = folder(&[
        ("a.xml", b"<TEI>\n<text>"),
        ("b.epub", b"PK"),
        ("c.jsonl", b"{\"text\": \"a\"}\n{"),
        ("d.txt.gz", &gzip(b"whole")[..10]),
        ("e.txt", b"fine"),
    ]);
    let error = read_collection(&collection(folder.path())).unwrap_err().to_string();
    for part in [
        "4 files",
        "a.xml, line 1",
        "b.epub: not a zip",
        "c.jsonl, line 2",
        "d.txt.gz: gzip",
        "exclude",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn a_pdf_that_cannot_be_read_is_reported_and_not_indexed() {
    let folder = folder(&[("a.pdf", b"%PDF-1.4 nothing"), ("b.txt", b"Text.")]);
    // In a test this program is no PDF reader, so that reading fails, whatever the file holds.
    let (documents, report) = read_collection(&collection(folder.path())).unwrap();
    assert_eq!(ids(&documents), ["book/b.txt"]);
    assert_eq!(report.skipped[0].path, "a.pdf");
    assert!(report.warnings[0].message.contains("not in the archive"));
}

#[test]
fn a_language_is_told_from_the_text_where_none_is_given() {
    let german = "Die Psychoanalyse, die bald erkannte, daß sie alles seelische Geschehen über dem Kräftespiel der elementaren Triebe aufbauen müsse, sah sich in der übelsten Lage. ".repeat(4);
    let folder = folder(&[
        ("a.txt", german.as_bytes()),
        ("b.txt", b"Oui."),
        ("c.html", b"<html lang=el><p>a"),
        ("d.txt", b"x y"),
    ]);
    let metadata = folder.path().join("texts.csv");
    fs::write(&metadata, "path,language,date\nd.txt,grc,\na.txt,,1923\n").unwrap();
    let mut collection = collection(folder.path());
    collection.language = crate::blocks::AUTO.into();
    collection.metadata = Some(metadata);
    let (documents, report) = read_collection(&collection).unwrap();
    let languages: Vec<&str> =
        documents.iter().map(|document| document.language.as_str()).collect();
    assert_eq!((languages[0], languages[2], languages[3]), ("de", "el", "grc"));
    assert!(documents[0].meta.language_confidence > Some(80));
    assert_eq!(documents[0].meta.year(), Some("1923"));
    // Too short to be sure of, and said so.
    assert_eq!(report.warnings.len(), 1);
    assert_eq!(report.warnings[0].path, "b.txt");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn never_panics_on_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let folder = folder(&[("a.html", &bytes), ("b.txt", &bytes)]);
        let collection = collection(folder.path());
        let _ = read_collection(&collection);
        let first = read_document(&collection, "a.html").ok();
        prop_assert_eq!(first, read_document(&collection, "a.html").ok());
    }
}
