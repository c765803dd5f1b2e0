//! What holds for every document, whatever its format; and readers under hostile bytes.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseError, TestRunner};
use unicode_normalization::is_nfc;

use crate::blocks::{Content, SEPARATOR};
use crate::document::{Document, Reading};
use crate::encoding::{self, Hints};
use crate::{canonical, epub, html, jsonl, markdown, plain, segment, tei};

/// The canonical text is one, its blocks cover it, and every place in it leads back to the source.
pub(crate) fn check_document(document: &Document) -> Result<(), TestCaseError> {
    let text = &document.text;
    prop_assert!(is_nfc(text));
    prop_assert!(!text.chars().any(|c| canonical::is_unseen(c) || (c.is_control() && c != '\n')));
    let blocks: Vec<&str> =
        document.blocks.iter().map(|block| document.slice(&block.range).unwrap()).collect();
    prop_assert_eq!(&blocks.join(SEPARATOR), text, "blocks and the gaps between them are the text");
    let inside = |at: usize| at <= text.len() && text.is_char_boundary(at);
    let map = &document.map;
    prop_assert!(
        map.lines.is_sorted_by(|a, b| a.0 <= b.0) && map.lines.iter().all(|(at, _)| inside(*at))
    );
    prop_assert!(
        map.pages.is_sorted_by(|a, b| a.0 <= b.0) && map.pages.iter().all(|(at, _)| inside(*at))
    );
    prop_assert!(
        map.notes.is_sorted_by(|a, b| a.0 <= b.0) && map.notes.iter().all(|(at, _)| inside(*at))
    );
    prop_assert!(map.notes.iter().all(|(_, block)| *block < document.blocks.len()));
    for (at, c) in text.char_indices() {
        let place = document.place(&(at..at + c.len_utf8()));
        prop_assert!(
            place.is_some_and(|place| !place.element.is_empty()),
            "no place for byte {at}"
        );
    }
    let passages = segment(document, &[], &|text| text.len() / 4 + 2, 64);
    let mut at = 0;
    for passage in &passages {
        prop_assert!(passage.range.start >= at && document.slice(&passage.range).is_some());
        prop_assert!(!document.places(&passage.range).is_empty());
        at = passage.range.end;
    }
    Ok(())
}

/// Seconds that each reader is tried for; a number of inputs when not given.
const SECONDS: &str = "FLORILEGIUM_FUZZ_SECONDS";
const INPUTS: usize = 300;

/// Reads hostile inputs made of `tokens`, of the `seeds` damaged, and of any bytes.
fn fuzz(
    name: &str,
    tokens: &'static [&'static str],
    seeds: Vec<Vec<u8>>,
    read: impl Fn(&[u8]) -> Option<Content>,
) {
    let token = prop_oneof![
        6 => proptest::sample::select(tokens).prop_map(|token| token.as_bytes().to_vec()),
        2 => "[a-zéα .,;:!?«»\n\u{ad}\u{301}\u{a0}-]{0,12}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    let built = proptest::collection::vec(token.clone(), 0..120).prop_map(|parts| parts.concat());
    let damaged = (
        proptest::sample::select(seeds),
        proptest::collection::vec((any::<prop::sample::Index>(), 0usize..24, token), 1..8),
    )
        .prop_map(|(mut bytes, edits)| {
            for (at, cut, insert) in edits {
                let at = at.index(bytes.len() + 1);
                let end = (at + cut).min(bytes.len());
                bytes.splice(at..end, insert);
            }
            bytes
        });
    let strategy = prop_oneof![built, damaged];
    let mut runner = TestRunner::deterministic();
    let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
    if seconds.is_some() {
        runner = TestRunner::default();
    }
    let time = seconds.map(Duration::from_secs);
    let start = Instant::now();
    let (mut inputs, mut documents, mut slowest) = (0usize, 0usize, Duration::ZERO);
    while time.map_or(inputs < INPUTS, |time| start.elapsed() < time) {
        let input = strategy.new_tree(&mut runner).unwrap().current();
        inputs += 1;
        let began = Instant::now();
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let Some(content) = read(&input) else { return Ok(false) };
            check_document(&content.into_document("c", "input", "fr")).map(|()| true)
        }));
        slowest = slowest.max(began.elapsed());
        match checked {
            Ok(Ok(read)) => documents += usize::from(read),
            Ok(Err(fault)) => panic!("{name}: {fault}\n{:?}", input.escape_ascii().to_string()),
            Err(_) => panic!("{name}: panicked on {:?}", input.escape_ascii().to_string()),
        }
    }
    println!(
        "{name}: {inputs} inputs, {documents} of them read, the slowest in {slowest:?}, {:?}",
        start.elapsed()
    );
}

fn text_of(bytes: &[u8], plain: bool) -> Option<String> {
    let path = std::path::Path::new("input");
    let decode = if plain { encoding::decode_plain } else { encoding::decode_html };
    decode(path, bytes, Hints { encoding: None, language: "fr" }).ok().map(|decoded| decoded.text)
}

const TAGS: &[&str] = &[
    "<p>",
    "</p>",
    "<div class=footnote id=n1>",
    "</div>",
    "<h1>",
    "</h1>",
    "<h3>",
    "<sup><a href='#n1'>1</a></sup>",
    "<table><tr><td>",
    "<td>",
    "</table>",
    "<pre>",
    "</pre>",
    "<ul><li>",
    "</ul>",
    "<script>",
    "</script>",
    "<!--",
    "-->",
    "<nav>",
    "</nav>",
    "<br>",
    "&nbsp;",
    "&#x301;",
    "&#0;",
    "<b><i>",
    "</b></i>",
    "<span epub:type='pagebreak' title='7'/>",
    "<?xml version='1.0'?>",
    "<html xmlns='http://www.w3.org/1999/xhtml'>",
    "<![CDATA[",
    "]]>",
    "<title>",
    "</title>",
    "<meta charset=windows-1253>",
    "<section>",
    "</section>",
    "\u{feff}",
    "*** START OF THIS PROJECT GUTENBERG EBOOK ***",
];

#[test]
fn hostile_html() {
    let seed = "<html><head><title>T</title></head><body><h1>T</h1><p>One<a href='#n'><sup>1</sup></a> two.</p><table><tr><td>a<td>b</table><div class=footnote id=n><p>Note.</div></body></html>";
    fuzz("html", TAGS, vec![seed.into()], |bytes| Some(html::read(&text_of(bytes, false)?)));
}

#[test]
fn hostile_tei() {
    const TOKENS: &[&str] = &[
        "<p>",
        "</p>",
        "<lb/>",
        "<lb break='no'/>",
        "<pb n='3'/>",
        "<fw type='pageNum'>4</fw>",
        "<note>",
        "</note>",
        "<hi rend='footnote-index'>1</hi>",
        "<lg><l>",
        "</l>",
        "<l>",
        "</l></lg>",
        "<div><head>",
        "</head>",
        "</div>",
        "<choice><orig>a</orig><reg>b</reg></choice>",
        "<app><lem>x</lem></app>",
        "<list><item>",
        "</item></list>",
        "<table><row><cell>",
        "</cell></row></table>",
        "<quote>",
        "</quote>",
        "&amp;",
        "&#x301;",
        "<![CDATA[x]]>",
        "<!-- c -->",
        "<sp><speaker>M</speaker>",
        "</sp>",
        "<ref target='#n1'>1</ref>",
        "<note xml:id='n1'>N</note>",
        "<p rend='h2'>H</p>",
        "<?pi?>",
    ];
    let wrapped = |body: &str| {
        format!("<TEI><teiHeader/><text><body>{body}</body></text></TEI>").into_bytes()
    };
    let seed = "<div xml:id='d'><head>H</head><p>Ein<lb break='no'/>\n<pb n='2'/>zig<note>An<p>m</p></note> so</p><pb n='3'/><p>weiter</p><lg><l>a</l><l>b</l></lg></div>";
    fuzz("tei", TOKENS, vec![wrapped(seed)], |bytes| {
        let text = text_of(bytes, false)?;
        // Tokens alone are rarely well-formed: what they would be inside a text is tried too.
        let read = |text: &str| tei::read(text, "input.xml", Reading::Original).ok();
        read(&text).or_else(|| read(&String::from_utf8_lossy(&wrapped(&balanced(&text)))))
    });
}

/// The text with its tags paired, so that it is well-formed for the most part.
fn balanced(text: &str) -> String {
    let mut out = String::new();
    let mut open: Vec<String> = Vec::new();
    for (index, part) in text.split('<').enumerate() {
        let Some((tag, rest)) = part.split_once('>').filter(|_| index > 0) else {
            out += &part.replace(['&', '>'], "");
            continue;
        };
        if tag.starts_with('/') {
            out.extend(open.pop().map(|name| format!("</{name}>")));
        } else if tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let name = tag.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
            if !tag.ends_with('/') {
                open.push(name.to_owned());
            }
            out += &format!("<{tag}>");
        }
        out += &rest.replace(['&', '>'], "");
    }
    out.extend(open.into_iter().rev().map(|name| format!("</{name}>")));
    out
}

#[test]
fn hostile_markdown() {
    const TOKENS: &[&str] = &[
        "# ",
        "## H {#id}\n",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "> ",
        "```\n",
        "    ",
        "| a | b |\n|---|---|\n",
        "| c |",
        "[^n]",
        "[^n]: ",
        "---\n",
        "title: x\n",
        "**",
        "*",
        "`",
        "<div>\n",
        "</div>\n",
        "<br>",
        "[a](b)",
        "![i](j)",
        "\\",
        "&nbsp;",
        "~~",
        "- [ ] ",
        ": def\n",
        "\t",
    ];
    let seed = "---\ntitle: T\n---\n# T\n\nA[^n] b.\n\n- x\n  - y\n\n| a | b |\n|---|---|\n| c | d |\n\n[^n]: Note.\n";
    fuzz("markdown", TOKENS, vec![seed.into()], |bytes| {
        Some(markdown::read(&text_of(bytes, true)?))
    });
}

#[test]
fn hostile_plain_text() {
    const TOKENS: &[&str] = &[
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\u{c}",
        "===\n",
        "---\n",
        "    ",
        "\t",
        "infor-\n",
        "mation ",
        "[Note 1: ",
        "]",
        "_so_",
        "{17a}",
        "{",
        "}",
        "\u{ad}\n",
        "*** START OF THIS PROJECT GUTENBERG EBOOK X ***\n",
        "*** END OF THIS PROJECT GUTENBERG EBOOK X ***\n",
        "Title: A\n",
        "Produced by B\n",
        "\u{feff}",
        "\0",
        "Character set encoding: windows-1253\n",
        "-*- coding: latin-1 -*-\n",
    ];
    let seed = "Title\n=====\n\nOne infor-\nmation. Information\n\n    verse a\n    verse b\n\n[Note 1: x]\n";
    fuzz("plain text", TOKENS, vec![seed.into()], |bytes| {
        Some(plain::read(&text_of(bytes, true)?))
    });
    fuzz("plain text with marks", TOKENS, vec![seed.into()], |bytes| {
        Some(plain::read_with_marks(&text_of(bytes, true)?))
    });
}

#[test]
fn hostile_json_lines() {
    const TOKENS: &[&str] = &[
        "{\"text\":\"a\"}",
        "{\"id\":",
        "\"text\":",
        "\"<p>x\"",
        ",",
        "}",
        "{",
        "[",
        "]",
        "\n",
        "\\u0000",
        "\\n",
        "\"format\":\"html\"",
        "\"format\":\"markdown\"",
        "1",
        "null",
    ];
    let seed = "{\"id\": 1, \"title\": \"T\", \"text\": \"One.\\n\\nTwo.\", \"lang\": \"en\"}\n{\"text\": \"<p>x\", \"format\": \"html\"}\n";
    fuzz("json lines", TOKENS, vec![seed.into()], |bytes| {
        let text = text_of(bytes, true)?;
        let format = ["text", "html", "markdown"][bytes.len() % 3];
        let record = serde_json::json!({ "text": text, "format": format }).to_string();
        let mut records = jsonl::read(&text).or_else(|_| jsonl::read(&record)).ok()?;
        records.pop().map(|(_, content)| content)
    });
}

#[test]
fn hostile_epub() {
    const TOKENS: &[&str] = &[
        "PK\u{3}\u{4}",
        "<p>",
        "</p>",
        "<item id='a' href='b'/>",
        "<spine>",
        "\0\0\0\0",
        "#x",
        "../",
    ];
    let mut seeds = epub::samples();
    seeds.extend(epub::MEMBERS.map(|text| text.as_bytes().to_vec()));
    fuzz("epub", TOKENS, seeds, |bytes| {
        // As a zip, and as each member of a sound one.
        let whole = epub::read(bytes).ok();
        let inner = || (0..3).find_map(|member| epub::read(&epub::with_member(member, bytes)).ok());
        whole.or_else(inner)
    });
}

#[test]
fn reading_again_gives_the_same_bytes() {
    let page = "<title>T</title><h1>T</h1><p>a <b>b</b></p>";
    assert_eq!(html::read(page), html::read(page));
    let book = epub::samples().remove(0);
    assert_eq!(epub::read(&book), epub::read(&book));
}
