use proptest::prelude::*;
use unicode_normalization::is_nfc;

use super::*;
use crate::{html, plain};

fn document(page: &str, language: &str) -> Document {
    html::read(page).into_document("c", "page.html", language)
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn texts<'a>(document: &'a Document, passages: &[Passage]) -> Vec<&'a str> {
    passages.iter().map(|passage| &document.text[passage.range.clone()]).collect()
}

/// What holds for every document, counter and budget.
fn check(
    document: &Document,
    count: &(dyn Fn(&str) -> usize + Sync),
    budget: usize,
    strict: bool,
) -> Result<(), TestCaseError> {
    let passages = segment(document, &[], count, budget);
    prop_assert_eq!(&passages, &segment(document, &[], count, budget));
    let headings: Vec<&Range<usize>> = document
        .blocks
        .iter()
        .filter(|block| matches!(block.kind, BlockKind::Heading(_)))
        .map(|block| &block.range)
        .collect();
    let mut at = 0;
    let mut rebuilt = String::new();
    for passage in &passages {
        prop_assert!(passage.range.start >= at);
        // Between passages there is nothing but white space and headings.
        let mut gap = document.text[at..passage.range.start].to_owned();
        for heading in
            headings.iter().rev().filter(|h| h.start >= at && h.end <= passage.range.start)
        {
            gap.replace_range(heading.start - at..heading.end - at, "");
        }
        prop_assert!(gap.trim().is_empty(), "lost {:?}", gap);
        rebuilt.push_str(&document.text[at..passage.range.end]);
        let text = document.slice(&passage.range).expect("whole characters");
        prop_assert_eq!(text.trim(), text);
        prop_assert!(!text.is_empty() && is_nfc(text));
        prop_assert_eq!(passage.tokens, count(text));
        prop_assert!(
            !strict || passage.tokens <= budget,
            "{} tokens in {:?}",
            passage.tokens,
            text
        );
        prop_assert!(
            headings.iter().all(|h| h.end <= passage.range.start || h.start >= passage.range.end)
        );
        let mut inside = passage.range.start;
        for sentence in &passage.sentences {
            prop_assert!(sentence.start >= inside && sentence.end <= passage.range.end);
            let text = document.slice(sentence).expect("whole characters");
            prop_assert!(!text.is_empty());
            prop_assert_eq!(text.trim(), text);
            inside = sentence.end;
        }
        let block = document.blocks.iter().find(|block| block.range.contains(&passage.range.start));
        prop_assert_eq!(&block.expect("inside a block").headings, &passage.headings);
        at = passage.range.end;
    }
    let mut rest = document.text[at..].to_owned();
    for heading in headings.iter().rev().filter(|h| h.start >= at) {
        rest.replace_range(heading.start - at..heading.end - at, "");
    }
    prop_assert!(rest.trim().is_empty(), "lost {:?}", rest);
    rebuilt.push_str(&document.text[at..]);
    prop_assert_eq!(&rebuilt, &document.text);
    let mut ids: Vec<&String> = passages.iter().map(|passage| &passage.id).collect();
    ids.sort();
    ids.dedup();
    prop_assert_eq!(ids.len(), passages.len());
    Ok(())
}

#[test]
fn blocks_under_the_same_headings_share_a_passage() {
    let page = document("<h2>A</h2><p>One two.<p>Three four.<h2>B</h2><p>Five six.", "en");
    let passages = segment(&page, &[], &words, 50);
    assert_eq!(texts(&page, &passages), ["One two.\n\nThree four.", "Five six."]);
    assert_eq!(passages[0].headings, ["A"]);
    assert_eq!(passages[0].sentences.len(), 2);
    assert_eq!(passages[0].tokens, 4);
}

#[test]
fn cuts_between_blocks_rather_than_inside() {
    let sentence = "a b c d e f g h i j. ";
    let paragraph = |n: usize| format!("<p>{}", sentence.repeat(n).to_uppercase());
    let page = document(&format!("{}{}{}", paragraph(3), paragraph(4), paragraph(3)), "en");
    let passages = segment(&page, &[], &words, 60);
    assert_eq!(passages.iter().map(|p| p.tokens).collect::<Vec<_>>(), [30, 40, 30]);
}

#[test]
fn an_introduction_stays_with_what_it_introduces() {
    let filler = "Word ".repeat(30);
    let page = document(
        &format!(
            "<p>{filler}.<p>These are the things that it can do:<ul><li>{filler}<li>{filler}</ul>"
        ),
        "en",
    );
    let passages = segment(&page, &[], &words, 70);
    assert!(texts(&page, &passages)[1].starts_with("These are"), "{:?}", texts(&page, &passages));
}

#[test]
fn no_crumbs_where_they_can_be_joined() {
    let long = "Word ".repeat(50);
    let page = document(&format!("<p>{long}.<p>Short one.<p>{long}."), "en");
    let passages = segment(&page, &[], &words, 60);
    assert_eq!(passages.len(), 2);
}

#[test]
fn code_and_rows_are_in_the_range_and_not_among_the_sentences() {
    let page = document(
        "<p>Run this. Then that.<pre>ls -l\ncd /</pre><table><tr><td>a<td>b</table><p>Done.",
        "en",
    );
    let passages = segment(&page, &[], &words, 100);
    assert_eq!(passages.len(), 1);
    let sentences: Vec<&str> =
        passages[0].sentences.iter().map(|s| &page.text[s.clone()]).collect();
    assert_eq!(sentences, ["Run this.", "Then that.", "Done."]);
}

#[test]
fn long_code_is_cut_between_lines() {
    let page = document(&format!("<pre>{}</pre>", "one two three four\n".repeat(10)), "en");
    let passages = segment(&page, &[], &words, 12);
    assert!(
        texts(&page, &passages)
            .iter()
            .all(|text| text.lines().all(|line| line == "one two three four"))
    );
}

#[test]
fn a_long_sentence_is_cut_at_its_clauses() {
    let clause = "alpha beta gamma delta epsilon";
    let page = document(&format!("<p>{clause}; {clause}· {clause}, {clause} {clause}."), "el");
    let passages = segment(&page, &[], &words, 11);
    let texts = texts(&page, &passages);
    assert!(texts[0].ends_with('·'), "{texts:?}");
    assert!(passages.iter().all(|passage| passage.parts == [0]), "marked as parts of a sentence");
    assert_eq!(texts.join(" "), page.text);
}

#[test]
fn a_word_longer_than_the_budget_is_cut_between_characters() {
    let count = |text: &str| text.len();
    let page = document(&format!("<p>{}", "👩\u{200d}👩\u{200d}👧é".repeat(50)), "en");
    let passages = segment(&page, &[], &count, 64);
    assert!(passages.iter().all(|passage| passage.tokens <= 64));
    assert!(texts(&page, &passages).iter().all(|text| text.starts_with(['👩', 'é'])));
}

#[test]
fn ids_follow_the_text_and_count_repetitions() {
    let page = document("<h2>A</h2><p>Same.<h2>B</h2><p>Same.<h2>C</h2><p>Other.", "en");
    let passages = segment(&page, &[], &words, 50);
    assert!(passages[0].id.starts_with("c/page.html#"));
    assert_eq!(passages[1].id, format!("{}-2", passages[0].id));
    assert_eq!(passages[0].text_hash, passages[1].text_hash);
    let edited = document("<h2>A</h2><p>Same.<h2>B</h2><p>Same.<h2>C</h2><p>Changed.", "en");
    let after = segment(&edited, &[], &words, 50);
    assert_eq!(after[..2], passages[..2]);
    assert_ne!(after[2].id, passages[2].id);
}

#[test]
fn notes_stand_apart() {
    let page = document("<p>Text.<div class=footnote><p>Note.</div>", "en");
    assert_eq!(segment(&page, &[], &words, 50).len(), 2);
}

#[test]
fn a_huge_line_takes_no_long() {
    let began = std::time::Instant::now();
    let text = "word ".repeat(200_000);
    let document = plain::read(&text).into_document("c", "a.txt", "en");
    let passages = segment(&document, &[], &|text| text.len() / 4 + 2, 128);
    assert!(passages.iter().all(|passage| passage.tokens <= 128));
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

#[test]
fn hopeless_budgets_still_lose_nothing() {
    let page = document("<p>One two. Three.<pre>a b\nc</pre>", "en");
    for budget in 0..3 {
        check(&page, &|text| text.chars().count() + 2, budget, false).unwrap();
    }
}

proptest! {
    #[test]
    fn passages_keep_their_promises(
        pieces in proptest::collection::vec("<(p|li|h2|h3|pre|dt|dd)>|</(pre|h2|h3|ul)>|<tr><td>|<td>|<div class=footnote>|([A-Za-zé]{1,12}[.,;:!?…»]? ){1,12}|\\PC{1,8}|\n", 0..40),
        budget in 8usize..60,
        which in 0usize..4,
        language in "(fr|en|el)",
    ) {
        let counters: [&(dyn Fn(&str) -> usize + Sync); 4] = [
            &|text: &str| text.split_whitespace().count(),
            &|text: &str| text.chars().count() / 4,
            &|text: &str| text.len() / 3 + 2,
            // Of the whole more than of its parts: the sum is only an estimate.
            &|text: &str| { let n = text.split_whitespace().count(); n + n / 7 + 1 },
        ];
        let page = document(&pieces.concat(), &language);
        check(&page, counters[which], budget, true)?;
    }

    #[test]
    fn plain_text_too(text in "(\\PC|[a-zA-Zé.,;!?-]|\n| |    ){0,120}", budget in 8usize..40) {
        let page = plain::read(&text).into_document("c", "a.txt", "fr");
        check(&page, &|text| text.split_whitespace().count(), budget, false)?;
        let blocks: String = page.blocks.iter().map(|b| &page.text[b.range.clone()]).collect::<Vec<_>>().join("\n\n");
        prop_assert_eq!(&blocks, &page.text);
    }
}

#[test]
fn an_untranslated_paragraph_is_a_passage_of_its_own_in_its_own_language() {
    let french = "Le noyau est le cœur du système : il gère la mémoire, les processus et les périphériques de la machine.";
    let english = "The kernel is the heart of the system: it manages the memory, the processes and the devices of the machine.";
    let page = document(
        &format!(
            "<h1>Noyau</h1><p>{french}</p><p>{english}</p><p>Court.</p><pre>ls /boot</pre><p>{french}</p>"
        ),
        "fr",
    );
    let languages = ["fr", "en"].map(str::to_owned);
    let passages = segment(&page, &languages, &words, 200);
    let found: Vec<(&str, &str)> = passages
        .iter()
        .map(|passage| (passage.language.as_str(), page.slice(&passage.range).unwrap()))
        .collect();
    assert_eq!(found[0], ("fr", french));
    assert_eq!(found[1].0, "en");
    assert!(found[1].1.starts_with(english) && found[1].1.ends_with("ls /boot"));
    assert_eq!(found[2], ("fr", french));
}
