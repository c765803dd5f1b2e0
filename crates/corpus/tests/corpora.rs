//! The readers on real texts in difficult formats, which are no part of the project: the folder that
//! `FLORILEGIUM_SHARED` names has them below `corpora`. Without it these tests say so and pass.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::PathBuf;

use florilegium_corpus::{BlockKind, Collection, Document, Report, Role, read_collection};

fn folder(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("FLORILEGIUM_SHARED").map(PathBuf::from);
    let folder =
        shared.map(|shared| shared.join("corpora").join(name)).filter(|folder| folder.is_dir());
    if folder.is_none() {
        println!("skipped: FLORILEGIUM_SHARED names no folder with corpora/{name}");
    }
    folder
}

fn read(folder: PathBuf, language: &str) -> (Vec<Document>, Report) {
    read_collection(&collection(folder, language)).unwrap()
}

fn collection(folder: PathBuf, language: &str) -> Collection {
    Collection {
        id: "c".into(),
        title: "C".into(),
        path: folder,
        language: language.into(),
        role: Role::Search,
        licence: "see the texts".into(),
        url: "https://example.org/{path}".into(),
        exclude: vec![],
        format: None,
        encoding: None,
        reading: Default::default(),
        braces: false,
        metadata: None,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Letters at the end of what comes before a place, and at the start of what comes after.
fn around<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    let start = before
        .rfind(|c: char| !c.is_alphabetic())
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
    (&before[start..], &after[..end])
}

#[test]
fn freud_has_no_split_word_and_no_page_number_in_a_sentence() {
    let Some(folder) = folder("freud-de-tei") else { return };
    let (documents, report) = read(folder.clone(), "de");
    assert_eq!(documents.len(), 14);
    let (mut breaks, mut checked, mut notes, mut linked, mut pages) = (0, 0, 0, 0, 0);
    for document in &documents {
        let source = fs::read_to_string(folder.join(&document.path)).unwrap();
        let source = &source[source.find("<text").unwrap()..];
        let known: std::collections::HashSet<String> = words(&document.text).into_iter().collect();
        // Each tag that says that the word goes on, with letters directly on both sides of it.
        for tag in source.split("<lb").skip(1) {
            let (attributes, after) = tag.split_once('>').unwrap();
            if !attributes.contains("break=\"no\"") {
                continue;
            }
            breaks += 1;
            let at = tag.as_ptr() as usize - source.as_ptr() as usize - "<lb".len();
            let (first, second) = around(&source[..at], after);
            // What is directly before or behind a tag may be a part of a word that is marked up.
            let before = source[..at].len() - first.len();
            let is_whole = !source[..before].ends_with(['>', ';'])
                && !after[second.len()..].starts_with(['<', '&']);
            if !first.is_empty() && !second.is_empty() && is_whole {
                checked += 1;
                let word = format!("{first}{second}");
                assert!(known.contains(&word), "{}: {word} is split", document.path);
            }
        }
        notes += source.matches("<note").count();
        linked += document.map.notes.len();
        pages += document.map.pages.len();
        // Numbers alone are those that the edition itself has as paragraphs: signatures of sheets.
        let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let blocks = document.blocks.iter().filter_map(|block| document.slice(&block.range));
        let paragraphs = source.split("<p").skip(1).filter(|part| {
            let inside = part.split("</p>").next().unwrap();
            let bare: String =
                inside.split('>').skip(1).map(|part| part.split('<').next().unwrap()).collect();
            is_number(bare.trim()) && !inside.contains("<fw")
        });
        assert_eq!(
            blocks.filter(|text| is_number(text)).count(),
            paragraphs.count(),
            "{}",
            document.path
        );
        assert!(
            document.blocks.iter().any(|block| block.kind == BlockKind::Note)
                || !source.contains("<note")
        );
        println!("{}: {:?} {:?}", document.path, document.title, document.meta.date);
    }
    println!(
        "{breaks} break=\"no\", {checked} with letters on both sides, all joined; {notes} notes, {linked} linked; {pages} pages; {} words, {} warnings",
        report.words,
        report.warnings.len()
    );
    assert!(linked * 10 >= notes * 9, "{linked} of {notes} notes are linked");
}

#[test]
fn a_book_says_the_same_in_html_and_in_text() {
    let Some(folder) = folder("gutenberg") else { return };
    let (documents, report) = read(folder, "en");
    for warning in &report.warnings {
        println!("{warning:?}");
    }
    let text = |path: &str| &documents.iter().find(|document| document.path == path).unwrap().text;
    for (one, other) in [
        ("descartes-fr.htm", "descartes-fr-bom-crlf.txt"),
        ("freud-dream-psychology-15489-h.htm", "freud-dream-psychology-15489-8.txt"),
        ("freud-dream-psychology-15489.txt", "freud-dream-psychology-15489-8.txt"),
    ] {
        let (a, b) = (words(text(one)), words(text(other)));
        let changes = distance(&a, &b, (a.len() + b.len()) / 20).expect("nearly the same");
        let agreement = 100.0 - 100.0 * changes as f64 / (a.len() + b.len()) as f64;
        println!("{one} ({} words) and {other} ({}): {agreement:.2} %", a.len(), b.len());
        assert!(agreement >= 99.5, "{agreement}");
        assert!(!text(one).to_lowercase().contains("project gutenberg"));
    }
}

/// Words to be left out and put in to make one of the other, if not more than `limit` (Myers 1986).
fn distance(a: &[String], b: &[String], limit: usize) -> Option<usize> {
    let offset = limit as isize + 1;
    let mut furthest = vec![0usize; 2 * limit + 3];
    for changes in 0..=limit as isize {
        for diagonal in (-changes..=changes).step_by(2) {
            let at = |diagonal: isize| (diagonal + offset) as usize;
            let down = diagonal == -changes
                || (diagonal != changes && furthest[at(diagonal - 1)] < furthest[at(diagonal + 1)]);
            let mut x =
                if down { furthest[at(diagonal + 1)] } else { furthest[at(diagonal - 1)] + 1 };
            let mut y = (x as isize - diagonal) as usize;
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at(diagonal)] = x;
            if x >= a.len() && y >= b.len() {
                return Some(changes as usize);
            }
        }
    }
    None
}

#[test]
fn plato_has_stephanus_pages_and_no_braces() {
    let Some(folder) = folder("platon-grc-txt") else { return };
    let mut collection = collection(folder, "grc");
    collection.braces = true;
    let (documents, _) = read_collection(&collection).unwrap();
    for document in &documents {
        assert!(!document.text.contains(['{', '}']), "{}", document.path);
        let pages = &document.map.pages;
        println!(
            "{}: {} pages, from {:?} to {:?}",
            document.path,
            pages.len(),
            pages.first(),
            pages.last()
        );
        assert!(pages.len() > 40);
    }
}

#[test]
fn an_epub_comes_in_the_order_of_its_spine() {
    let Some(folder) = folder("epub") else { return };
    let (documents, report) = read(folder, "en");
    let book = &documents[0];
    println!(
        "{} {:?}: {} blocks, {} notes linked, {} words",
        book.title,
        book.meta,
        book.blocks.len(),
        book.map.notes.len(),
        report.words
    );
    let place = |words: &str| book.text.find(words).unwrap_or_else(|| panic!("{words} is missing"));
    let crito = place("Why have you come at this hour, Crito");
    let republic = place("I went down yesterday to the Piraeus");
    assert!(crito < republic, "as in the spine, not as in the zip");
    let republic = book.blocks.iter().filter(|block| block.element.contains("republic.xhtml"));
    let headings: std::collections::BTreeSet<&Vec<String>> =
        republic.map(|block| &block.headings).collect();
    println!("{headings:?}");
    assert!(headings.len() > 10);
    assert!(headings.iter().all(|path| path.first().is_none_or(|first| *first == "Republic")));
    assert!(book.map.notes.len() > 100);
}

#[test]
fn french_texts_keep_their_spaces_and_notes() {
    let Some(folder) = folder("francais-tei") else { return };
    let (documents, report) = read(folder, "fr");
    for document in &documents {
        println!(
            "{}: {:?} {:?}, {} notes linked",
            document.path,
            document.title,
            document.meta,
            document.map.notes.len()
        );
    }
    let notes: usize = documents.iter().map(|document| document.map.notes.len()).sum();
    assert!(notes >= 150, "{notes}");
    println!("{} words, {} warnings", report.words, report.warnings.len());
}

#[test]
fn an_edit_in_one_paragraph_changes_few_passages() {
    let Some(folder) = folder("francais-tei") else { return };
    let (documents, _) = read(folder, "fr");
    let count = |text: &str| text.len() / 4 + 2;
    let (mut edits, mut changed, mut elsewhere) = (0, 0, 0);
    for document in &documents {
        let cut = |document: &Document| florilegium_corpus::segment(document, &[], &count, 180);
        let before = cut(document);
        let paragraphs: Vec<usize> = (0..document.blocks.len())
            .filter(|at| document.blocks[*at].kind == BlockKind::Paragraph)
            .collect();
        for at in paragraphs.iter().step_by(paragraphs.len() / 20 + 1) {
            let block = &document.blocks[*at];
            let added = " Une phrase de plus est ici.";
            let mut edited = document.clone();
            edited.text.insert_str(block.range.end, added);
            for (index, block) in edited.blocks.iter_mut().enumerate() {
                block.range.start += if index > *at { added.len() } else { 0 };
                block.range.end += if index >= *at { added.len() } else { 0 };
            }
            let known: std::collections::HashSet<String> =
                cut(&edited).into_iter().map(|passage| passage.id).collect();
            let lost = before.iter().filter(|passage| !known.contains(&passage.id));
            let (inside, outside): (Vec<_>, Vec<_>) = lost.partition(|passage| {
                passage.range.start < block.range.end && block.range.start < passage.range.end
            });
            edits += 1;
            changed += inside.len();
            elsewhere += outside.len();
            assert!(
                outside.iter().all(|passage| passage.headings == block.headings),
                "under other headings"
            );
        }
    }
    println!(
        "{edits} edits changed {changed} passages of their paragraphs, and {elsewhere} others under the same heading"
    );
}
