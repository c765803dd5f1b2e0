use proptest::prelude::*;

use super::*;
use crate::document::Document;

fn document(body: &str) -> Document {
    document_with(body, Reading::Original)
}

fn document_with(body: &str, reading: Reading) -> Document {
    let source = format!(
        "<TEI xmlns=\"http://www.tei-c.org/ns/1.0\">\n<text><body>{body}</body></text></TEI>"
    );
    read(&source, "a.xml", reading).unwrap().into_document("c", "a.xml", "de")
}

fn blocks(document: &Document) -> Vec<(&str, BlockKind)> {
    document
        .blocks
        .iter()
        .map(|block| (document.slice(&block.range).unwrap(), block.kind))
        .collect()
}

#[test]
fn a_line_break_parts_words_unless_the_word_goes_on() {
    assert_eq!(document("<p>aus der<lb/>Trieblehre</p>").text, "aus der Trieblehre");
    assert_eq!(document("<p>ge<lb break=\"no\"/>braucht</p>").text, "gebraucht");
    assert_eq!(document("<p>ge\n   <lb break=\"no\"\n/>\n   braucht</p>").text, "gebraucht");
    assert_eq!(
        document("<p>Ich<hi>ge<lb break=\"no\"/></hi>\n<hi>braucht</hi></p>").text,
        "Ichgebraucht"
    );
    // A hyphen that is only there because the line ended, and one that is the word's.
    assert_eq!(document("<p>ge-<lb break=\"no\"/>braucht</p>").text, "gebraucht");
    assert_eq!(
        document("<p>Ich-<lb break=\"no\"/>Trieb, Ich-<lb/>und</p>").text,
        "Ich-Trieb, Ich- und"
    );
}

#[test]
fn a_page_number_in_a_sentence_or_a_word_is_a_place_and_no_text() {
    let document = document(
        "<pb n=\"1\"/><fw type=\"pageNum\">296</fw><p>Die Trieb<lb break=\"no\"/>\n<pb n=\"2\"/>\n<fw type=\"pageNum\">— 297 —</fw>lehre und <pb n=\"3\"/>mehr.</p>",
    );
    assert_eq!(document.text, "Die Trieblehre und mehr.");
    let pages = |word: &str| {
        let at = document.text.find(word).unwrap();
        document.place(&(at..at + word.len())).unwrap().pages.unwrap()
    };
    assert_eq!(pages("Die"), ("296".into(), "296".into()));
    assert_eq!(pages("Trieblehre"), ("296".into(), "297".into()));
    assert_eq!(pages("mehr"), ("3".into(), "3".into()));
}

#[test]
fn a_paragraph_that_a_page_parts_is_one_with_its_notes_behind_it() {
    let whole = document(
        "<p>Der Wunsch<hi rendition=\"#footnote-index\">1</hi>) setzte sich zu einem<lb break=\"paragraph\"/></p>
         <note type=\"footnote\"><hi rendition=\"#footnote-index\">1)</hi> Die Anmerkung.</note>
         <pb n=\"2\"/><p><fw type=\"pageNum\">10</fw>großen Werk herab.</p><p>Neu.</p>",
    );
    assert_eq!(
        blocks(&whole),
        [
            ("Der Wunsch setzte sich zu einem großen Werk herab.", BlockKind::Paragraph),
            ("Die Anmerkung.", BlockKind::Note),
            ("Neu.", BlockKind::Paragraph),
        ]
    );
    assert_eq!(whole.map.notes, [("Der Wunsch".len(), 1)]);
    // A new sentence, or no page in between: two paragraphs.
    assert_eq!(document("<p>Der Satz.</p><pb n=\"2\"/><p>und so weiter</p>").blocks.len(), 2);
    assert_eq!(document("<p>Der Satz</p><pb n=\"2\"/><p>Und so weiter</p>").blocks.len(), 2);
    assert_eq!(document("<p>Der Satz</p><p>und so weiter</p>").blocks.len(), 2);
    // The word goes on: one, page or not.
    assert_eq!(document("<p>bis<lb break=\"no\"/>\n</p>\n<p>her</p>").text, "bisher");
}

#[test]
fn a_note_in_the_middle_of_a_sentence_hangs_there() {
    let document = document(
        "<p>Une tête de lion entée<note>greffée <emph>ou</emph> liée</note> sur le corps.</p><p>Puis<note><p>Un.</p><p>Deux.</p></note>.</p>",
    );
    assert_eq!(
        blocks(&document),
        [
            ("Une tête de lion entée sur le corps.", BlockKind::Paragraph),
            ("greffée ou liée", BlockKind::Note),
            ("Puis.", BlockKind::Paragraph),
            ("Un.", BlockKind::Note),
            ("Deux.", BlockKind::Note),
        ]
    );
    let at = "Une tête de lion entée".len();
    assert_eq!(document.map.notes[0], (at, 1));
    assert_eq!(document.notes(&(0..at)).len(), 1);
}

#[test]
fn a_reference_to_a_note_is_its_mark() {
    let document = document(
        "<p>So<ref target=\"#n1\">*</ref>, <ref target=\"#other\">dort</ref>.</p><p xml:id=\"other\">X.</p><div><note xml:id=\"n1\">Note.</note></div>",
    );
    assert_eq!(document.text, "So, dort.\n\nX.\n\nNote.");
    assert_eq!(document.map.notes, [(2, 2)]);
}

#[test]
fn of_two_wordings_the_settings_choose() {
    let body = "<p><choice><orig>vniuers</orig><reg>univers</reg></choice> <choice><corr>est</corr><sic>es</sic></choice> <app><lem>grand</lem><rdg wit=\"#B\">petit</rdg></app> <app><rdg>un</rdg><rdg>deux</rdg></app><del>non</del></p>";
    assert_eq!(document(body).text, "vniuers es grand un");
    assert_eq!(document_with(body, Reading::Edited).text, "univers est grand un");
}

#[test]
fn divisions_give_headings_and_paragraphs_may_too() {
    let document = document(
        "<div xml:id=\"d\"><head>Livre I</head><head>Des lois</head><div><head>Chapitre premier. <lb/>Sujet</head><p>Texte.</p></div><div><head>II</head><p xml:id=\"p\">Autre.</p></div></div><p rendition=\"#h1\">Frei</p><p rendition=\"#level_2\">Unten</p><p>Text.</p><p rendition=\"#h1\">Neu</p><p>Ende.</p>",
    );
    let headings = |text: &str| {
        let block = document
            .blocks
            .iter()
            .find(|block| document.slice(&block.range) == Some(text))
            .unwrap();
        block.headings.join(" / ")
    };
    assert_eq!(headings("Texte."), "Livre I / Des lois / Chapitre premier. Sujet");
    assert_eq!(headings("Autre."), "Livre I / Des lois / II");
    assert_eq!(headings("Text."), "Frei / Unten");
    assert_eq!(headings("Ende."), "Neu");
    assert_eq!(document.place(&(0..3)).unwrap().anchor.as_deref(), Some("d"));
    assert_eq!(document.blocks[2].element, "text/body/div[1]/div[1]/head[1]");
}

#[test]
fn verse_drama_lists_and_tables() {
    let document = document(
        "<lg><l>Sing, o goddess,</l>\n<l>the <hi>anger</hi>\n of Achilles</l></lg><lg><l>Second.</l></lg>
         <sp><speaker>Moi</speaker><p>Et vous ?<stage>Il rit.</stage></p></sp>
         <p>Dit : <quote>« oui »</quote>, puis<quote><p>long</p></quote>enfin.</p>
         <list><label>a</label><item>one</item><item><p>two</p></item></list>
         <table><row><cell>x</cell><cell><p>y</p></cell></row></table><epigraph><l>a</l><l>b</l><bibl>Horace</bibl></epigraph>",
    );
    use BlockKind::*;
    assert_eq!(
        blocks(&document),
        [
            ("Sing, o goddess,\nthe anger of Achilles", Verse),
            ("Second.", Verse),
            ("Moi", Paragraph),
            ("Et vous ? Il rit.", Paragraph),
            ("Dit : « oui », puis", Paragraph),
            ("long", Paragraph),
            ("enfin.", Paragraph),
            ("a", Item),
            ("one", Item),
            ("two", Item),
            ("x | y", Row),
            ("a\nb", Verse),
            ("Horace", Paragraph),
        ]
    );
}

#[test]
fn the_header_says_what_the_text_is() {
    let source = "<TEI><teiHeader><fileDesc><titleStmt><title type=\"sub\">Sub</title><title>Discours</title><author key=\"x\">Descartes</author></titleStmt>
        <publicationStmt><availability><licence target=\"https://creativecommons.org/licenses/by/4.0\"><p>Long</p></licence></availability></publicationStmt>
        <sourceDesc><bibl><date when=\"1923-01-01\"/></bibl><bibl><date when=\"1926-01-01\"/></bibl></sourceDesc></fileDesc>
        <profileDesc><langUsage><language ident=\"fr\"/></langUsage></profileDesc></teiHeader><text><body><p>X</p></body></text></TEI>";
    let content = read(source, "work__1926.xml", Reading::Original).unwrap();
    assert_eq!(content.title.as_deref(), Some("Discours"));
    assert_eq!(content.meta.author.as_deref(), Some("Descartes"));
    assert_eq!(content.meta.date.as_deref(), Some("1926"));
    assert_eq!(
        content.meta.licence.as_deref(),
        Some("https://creativecommons.org/licenses/by/4.0")
    );
    assert_eq!(content.language.as_deref(), Some("fr"));
    assert_eq!(content.text, "X");
    assert_eq!(read(source, "work.xml", Reading::Original).unwrap().meta.date, None);
}

#[test]
fn text_in_the_root_has_a_place_too() {
    let content = read("<TEI>Loose.<text/></TEI>", "a.xml", Reading::Original).unwrap();
    assert_eq!(content.blocks[0].element, "TEI");
}

#[test]
fn lines_lead_back_to_the_file() {
    let document = document("<p>One\n<hi>two</hi>\n\nthree</p>\n<p>four</p>");
    let line = |word: &str| {
        let at = document.text.find(word).unwrap();
        document.place(&(at..at + word.len())).unwrap().lines.unwrap().0
    };
    assert_eq!([line("One"), line("two"), line("three"), line("four")], [2, 3, 5, 6]);
}

#[test]
fn faults_name_the_line() {
    let fault = |source: &str| read(source, "a.xml", Reading::Original).unwrap_err();
    assert_eq!(fault("<TEI>\n<text></TEI>").line, 2);
    assert!(fault("<root/>").problem.contains("<root>"));
    assert!(fault("<TEI>&unknown;</TEI>").problem.contains("unknown"));
    let deep = format!("<TEI>{}{}</TEI>", "<p>".repeat(100_000), "</p>".repeat(100_000));
    assert!(fault(&deep).problem.contains("nested"));
    // Entities that grow without bound.
    let bomb = "<!DOCTYPE TEI [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">]><TEI><text>&d;&d;</text></TEI>";
    assert!(read(bomb, "a.xml", Reading::Original).is_err());
}

#[test]
fn words_of_all_kinds_stay_as_they_are() {
    let document =
        document("<p>pﬂegen ſtatue, ἀρετή &amp; <g>œ</g> a<c rend=\"x\">b</c>c 👩\u{200d}👧</p>");
    assert_eq!(document.text, "pﬂegen ſtatue, ἀρετή & œ abc 👩\u{200d}👧");
}

proptest! {
    #[test]
    fn any_tree_keeps_every_word_and_every_place(
        pieces in proptest::collection::vec(
            "<(p|hi|div|head|note|lg|l|quote|item|list|row|cell|sp|choice|orig)>|</>|<(lb|pb n='7'|lb break='no')/>|[a-zé]{1,5}[ ,.]?|\n",
            0..40,
        ),
    ) {
        let mut open: Vec<String> = Vec::new();
        let mut body = String::new();
        for piece in &pieces {
            if piece == "</>" {
                if let Some(name) = open.pop() {
                    body += &format!("</{name}>");
                }
            } else {
                if piece.starts_with('<') && !piece.ends_with("/>") {
                    open.push(piece.trim_matches(['<', '>']).to_owned());
                }
                body += piece;
            }
        }
        while let Some(name) = open.pop() {
            body += &format!("</{name}>");
        }
        let document = document(&body);
        crate::tests::check_document(&document)?;
        if !body.contains("choice") {
            let letters = |text: &str| {
                let mut letters: Vec<char> = text.chars().filter(|c| c.is_alphabetic()).collect();
                letters.sort_unstable();
                letters
            };
            let source: String = body.split('<').map(|part| part.rsplit('>').next().unwrap_or("")).collect();
            prop_assert_eq!(letters(&document.text), letters(&source));
        }
    }
}
