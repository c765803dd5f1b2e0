use proptest::prelude::*;
use unicode_normalization::is_nfc;

use super::read;
use crate::blocks::Content;
use crate::canonical::is_unseen;
use crate::document::BlockKind::{self, *};

fn texts(page: &str) -> Vec<String> {
    let content = read(page);
    content.blocks.iter().map(|block| content.text[block.range.clone()].to_owned()).collect()
}

fn kinds(page: &str) -> Vec<BlockKind> {
    read(page).blocks.iter().map(|block| block.kind).collect()
}

/// Text, anchor.
fn anchors(page: &str) -> Vec<(String, String)> {
    let content = read(page);
    content
        .blocks
        .iter()
        .map(|block| {
            (content.text[block.range.clone()].to_owned(), block.anchor.clone().unwrap_or_default())
        })
        .collect()
}

/// Text, heading path.
fn paths(page: &str) -> Vec<(String, String)> {
    let content = read(page);
    content
        .blocks
        .iter()
        .filter(|block| !matches!(block.kind, Heading(_)))
        .map(|block| (content.text[block.range.clone()].to_owned(), block.headings.join(" > ")))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn blocks_never_glue_and_inline_elements_never_split() {
    assert_eq!(
        texts("<p>one<p>two<div>three<b>fo</b>ur<div>five</div>six</div>seven"),
        ["one", "two", "threefour", "five", "six", "seven"]
    );
    assert_eq!(texts("<p>one<br>two <i>th</i>ree<wbr>four"), ["one two threefour"]);
    assert_eq!(texts("<p>line\n   one\t<!-- x -->two"), ["line one two"]);
}

#[test]
fn entities_and_characters() {
    assert_eq!(
        texts("<p>&lt;a&gt; &amp; &eacute;&#x301;&nbsp;! &#8239;? &shy;x&#8203;y"),
        ["<a> & é\u{301}\u{a0}!\u{202f}? xy"]
    );
    assert_eq!(texts("<p>infor&shy;mation ﬁn e&#x301;te&#x301;"), ["information ﬁn été"]);
    assert_eq!(texts("<p dir=rtl>שלום &#x202e;עולם"), ["שלום עולם"]);
    assert_eq!(texts("<p>👩&zwj;👧 ok"), ["👩\u{200d}👧 ok"]);
}

#[test]
fn leaves_out_what_is_no_text() {
    assert_eq!(
        texts(
            "<title>T</title><style>p{}</style><p>one<script>document.write('x')</script></p>\
             <noscript>no</noscript><template><p>t</p></template><nav><p>n</p></nav>\
             <p hidden>h</p><p aria-hidden=true>a</p><p style='display: none'>d</p>\
             <div role=navigation>r</div><div role='banner'>b</div><div role=contentinfo>c</div>\
             <ul class='docnav top'><li>prev</ul><div class=navheader>x</div><div class=toc>y</div>\
             <div class=list-of-tables>z</div><button>Go</button><select><option>s</select>\
             <div id=banner>Download</div><svg><title>S</title><text>v</text></svg><p>two"
        ),
        ["one", "two"]
    );
}

#[test]
fn page_headers_go_and_content_headers_stay() {
    assert_eq!(
        texts(
            "<header><a href=/>Home</a><h1>Site</h1></header><aside>ads</aside>\
             <main><article><header><h2>Part</h2><p>By me</p></header><p>Text\
             <aside>Aside</aside><footer>Source</footer></article></main><footer>Imprint</footer>"
        ),
        ["Site", "Part", "By me", "Text", "Aside", "Source"]
    );
}

#[test]
fn kinds_of_blocks() {
    assert_eq!(
        kinds(
            "<h2>H</h2><p>p<ul><li>a<li><p>b<p>c</ul><dl><dt>t<dd>d</dl><pre>x\n y</pre>\
             <table><tr><td>1<td>2</table><blockquote>q</blockquote>"
        ),
        [Heading(2), Paragraph, Item, Item, Item, Item, Item, Preformatted, Row, Paragraph]
    );
}

#[test]
fn preformatted_text_keeps_its_lines() {
    assert_eq!(
        texts("<pre>\n# one\n\n\n\ttwo  <b>x</b><br>three<div>four</div>five\n</pre>"),
        ["# one\n\n        two  x\nthree\nfour\nfive"]
    );
}

#[test]
fn data_tables_are_rows_and_layout_tables_are_not() {
    assert_eq!(
        texts(
            "<table><caption>Cap</caption><tr><th>A<th> B </tr><tr><td><p>1</p><td><p>2</p></tr>\
             <tr><td>&nbsp;<td>alone</tr></table>"
        ),
        ["Cap", "A | B", "1 | 2", "alone"]
    );
    assert_eq!(
        texts("<table><tr><td>menu<td><p>one<p>two</tr><tr><td><td>x<ul><li>y</ul></table>"),
        ["menu", "one", "two", "x", "y"]
    );
    let content = read("<body><table><tr><td>a<td>b</table>");
    assert_eq!(content.blocks[0].element, "body/table[1]/tbody[1]/tr[1]");
}

#[test]
fn headings_make_the_path() {
    assert_eq!(
        paths(
            "<title>Book</title><h1>Book</h1><p>a<h2>One</h2><p>b<h3>Sub</h3><p>c<h2>Two</h2><p>d\
             <h4>Deep</h4><p>e<h1>Other</h1><p>f"
        ),
        pairs(&[
            ("a", ""),
            ("b", "One"),
            ("c", "One > Sub"),
            ("d", "Two"),
            ("e", "Two > Deep"),
            ("f", "Other")
        ])
    );
}

#[test]
fn headings_end_with_their_section() {
    assert_eq!(
        paths(
            "<title>T</title><div class=section><h2>Sec</h2><p>a<div class=sidebar><div class=titlepage>\
             <p class=title><b>TIP</b> Box</p></div><p>b</div><p>c</div>\
             <section><h1>In</h1><section><h1>Inner</h1><p>d</section><p>e</section><p>f"
        ),
        pairs(&[
            ("a", "Sec"),
            ("b", "Sec > TIP Box"),
            ("c", "Sec"),
            ("d", "In > Inner"),
            ("e", "In"),
            ("f", "")
        ])
    );
    // A wrapper around nothing but a heading does not end it.
    assert_eq!(
        paths("<div class=chapter><h2>I</h2></div><p>a<div class=chapter><h2>II</h2></div><p>b"),
        pairs(&[("a", "I"), ("b", "II")])
    );
}

#[test]
fn admonitions_examples_and_captions() {
    assert_eq!(
        paths(
            "<h2>S</h2><div class=note><table><tr><td rowspan=2><img><th>Note</th></tr>\
             <tr><td><p>careful</p></td></tr></table></div><p>after\
             <div class=example><p class=title>Example 1</p><pre>code</pre></div>\
             <div class=figure><img><p class=title>Figure 1. It</p></div>"
        ),
        pairs(&[
            ("careful", "S > Note"),
            ("after", "S"),
            ("code", "S > Example 1"),
            ("Figure 1. It", "S")
        ])
    );
}

#[test]
fn notes_stand_apart_from_their_sentence() {
    let page = "<h2>A</h2><p>Text<sup><a href='#fn1'>1</a></sup>, more<a href='#ftn.x' class=footnote>\
        <sup class=footnote>[2]</sup></a>. 10<sup>2</sup> <a href='#see'>see</a></p><h2>B</h2><p>b\
        <div class=footnotes><ol><li id=fn1><p>First. <a href='#r1'>↩</a></p></ol>\
        <div id=ftn.x class=footnote><p><a href='#y' class=para><sup>[2] </sup></a>Second.</p></div></div>";
    let content = read(page);
    assert_eq!(texts(page), ["A", "Text, more. 102 see", "B", "b", "First.", "Second."]);
    let notes: Vec<_> = content.blocks.iter().filter(|block| block.kind == Note).collect();
    assert_eq!(notes.len(), 2);
    // A note stands under the headings of the place that it belongs to.
    assert!(notes.iter().all(|note| note.headings == ["A"]));
    assert_eq!(notes[0].anchor.as_deref(), Some("fn1"));
    assert_eq!(notes[1].anchor.as_deref(), Some("ftn.x"));
}

#[test]
fn anchors_are_the_nearest_that_hold() {
    assert_eq!(
        anchors(
            "<p>none<h2><a id=one></a>One</h2><p>a<p id=own>b<p>c<p>long <a name=mid></a>text\
             <p><a name=here></a>d<a name=later></a><div id=box><p>e</div><p>f<h2 id=two>Two</h2><p>g"
        ),
        pairs(&[
            ("none", ""),
            ("One", "one"),
            ("a", "one"),
            ("b", "own"),
            ("c", "one"),
            ("long text", "one"),
            ("d", "here"),
            ("e", "box"),
            ("f", "one"),
            ("Two", "two"),
            ("g", "two")
        ])
    );
    assert_eq!(
        anchors("<a name=s></a><h2>S</h2><p>a<p><a name=t></a></p><p>b"),
        pairs(&[("S", "s"), ("a", "s"), ("b", "t")])
    );
}

#[test]
fn made_up_ids_count_only_where_nothing_better_names_the_place() {
    assert_eq!(
        anchors(
            "<div class=section><h2><a id=sect.x></a>X</h2><a id='id-1.2.3' class=indexterm></a><p>a\
             <div class=section><h3><a id='id-1.2.4'></a>Y</h3><p>b</div>\
             <div class=example><a id='id-1.2.5'></a><p class=title>E</p><pre>c</pre></div></div>"
        ),
        pairs(&[
            ("X", "sect.x"),
            ("a", "sect.x"),
            ("Y", "id-1.2.4"),
            ("b", "id-1.2.4"),
            ("E", "id-1.2.5"),
            ("c", "id-1.2.5")
        ])
    );
    assert_eq!(anchors("<a id=idm12></a><p>a"), pairs(&[("a", "idm12")]));
}

#[test]
fn title_and_language() {
    let of = |page: &str| {
        let Content { title, language, .. } = read(page);
        (title.unwrap_or_default(), language.unwrap_or_default())
    };
    assert_eq!(of("<html lang=fr><title> A \n B </title>"), ("A B".into(), "fr".into()));
    assert_eq!(
        of("<body xml:lang=el><title>Page — Site</title><h1>Page</h1>"),
        ("Page".into(), "el".into())
    );
    assert_eq!(of("<h1>Only</h1>"), ("Only".into(), String::new()));
    assert_eq!(of("<svg><title>no</title></svg><p>x"), (String::new(), String::new()));
}

#[test]
fn xhtml_with_empty_elements_is_read_to_the_end() {
    let page = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/>\
        <script src='x.js'/></head><body><p>a<a id='x'/>b</p><p><![CDATA[c < d]]></p></body></html>";
    assert_eq!(texts(page), ["ab", "c < d"]);
}

#[test]
fn unclosed_and_misnested_tags() {
    assert_eq!(
        texts("<p><b>one<p>two</i></b> three<li>four<td>five"),
        ["one", "two three", "fourfive"]
    );
    assert_eq!(texts("<div><p>one</div></div></p>two<"), ["one", "two<"]);
    assert_eq!(texts(""), Vec::<String>::new());
}

#[test]
fn deep_nesting_neither_overflows_nor_loses_text() {
    let began = std::time::Instant::now();
    for depth in [200, 100_000] {
        for (open, close) in
            [("<div>", "</div>"), ("<b>", "</b>"), ("<ul><li>", ""), ("<blockquote>", "")]
        {
            let page = format!("{}deep{}<p>after", open.repeat(depth), close.repeat(depth));
            let content = read(&page);
            assert!(
                content.text.starts_with("deep") && content.text.ends_with("after"),
                "{open} {depth}"
            );
            assert!(content.blocks[0].element.len() < 3_000);
        }
    }
    let nested: String = (0..3_000).map(|n| format!("<div id=i{n}>t{n}")).collect();
    assert_eq!(read(&nested).blocks.len(), 3_000);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_page_gives_clean_blocks_that_cover_the_text(page in soup()) {
        let content = read(&page);
        prop_assert_eq!(&content, &read(&page));
        let mut at = 0;
        for (index, block) in content.blocks.iter().enumerate() {
            let gap = &content.text[at..block.range.start];
            prop_assert_eq!(gap, if index == 0 { "" } else { "\n\n" });
            let text = &content.text[block.range.clone()];
            prop_assert!(!text.trim().is_empty());
            prop_assert!(block.kind == Preformatted || !text.contains('\n'));
            at = block.range.end;
        }
        prop_assert_eq!(at, content.text.len());
        prop_assert!(is_nfc(&content.text));
        prop_assert!(!content.text.chars().any(|c| is_unseen(c) || (c.is_control() && c != '\n')));
    }

    /// Words of text that is nowhere left out all arrive, in order, and none is split or glued.
    #[test]
    fn no_word_is_lost(words in proptest::collection::vec("[a-z]{1,6}", 1..30), tags in proptest::collection::vec(0usize..12, 30)) {
        let wrap = ["<p>", "<div>", "<b>", "</b>", "<ul><li>", "</ul>", "<h2>", "</h2>", "<pre>", "</pre>", "<section>", "<table><tr><td>"];
        let page: String = words.iter().zip(&tags).map(|(word, tag)| format!(" {word} {}", wrap[*tag])).collect();
        let found: Vec<String> = read(&page).text.replace(" | ", " ").split_whitespace().map(str::to_owned).collect();
        let mut expected = words.clone();
        let mut sorted = found.clone();
        expected.sort();
        sorted.sort();
        prop_assert_eq!(sorted, expected, "{}", page);
    }
}

/// Tags in any order, attributes that matter, and characters that have done harm.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "</?(p|div|b|a|ul|li|table|tr|td|th|caption|h1|h2|h3|pre|br|sup|section|header|footer|aside|dl|dt|dd|title|script|style|template|svg|select|plaintext|html|body)>",
        "<(p|div|a|sup|li|tr|section|th) (id|name|class|href|role|lang)=\"(x|idm1|#x|footnote|footnotes|note|sidebar|titlepage|title|toc|chapter|doc-noteref|fr)\">",
        "[a-zé .,;:!?1*<>&\u{a0}\u{ad}\u{200b}\u{200d}\u{301}\u{202e}\u{0}\n\t|]{0,6}",
        "&(nbsp|shy|lt|amp|#x301|#0|bogus);?",
        "\\PC{0,3}",
    ];
    (proptest::bool::ANY, proptest::collection::vec(piece, 0..40)).prop_map(|(xml, pieces)| {
        let head = if xml { "<?xml version='1.0'?>" } else { "" };
        format!("{head}{}", pieces.concat())
    })
}

#[test]
fn a_dialogue_set_as_a_table_is_prose() {
    let content = read(
        "<table><tr><td epub:type='z3998:persona'>Socrates</td><td>Why? It is early.</td></tr></table>",
    );
    let kinds: Vec<BlockKind> = content.blocks.iter().map(|block| block.kind).collect();
    assert_eq!(content.text, "Socrates\n\nWhy? It is early.");
    assert_eq!(kinds, [Paragraph, Paragraph]);
}

#[test]
fn notes_hang_at_their_marks_and_printed_pages_are_places() {
    let content = read(
        "<html xmlns='http://www.w3.org/1999/xhtml'><p>One<a href='#n1'><sup>1</sup></a> two<span role='doc-pagebreak' aria-label='Page 12'/> three.</p><div class='footnote' id='n1'><p>Note.</p></div></html>",
    );
    let document = content.into_document("c", "a.html", "en");
    assert_eq!(document.text, "One two three.\n\nNote.");
    assert_eq!(document.map.notes, [(3, 1)]);
    let three = document.text.find("three").unwrap();
    assert_eq!(document.place(&(three..three + 5)).unwrap().pages.unwrap().0, "12");
    assert_eq!(document.place(&(0..3)).unwrap().pages, None);
}
