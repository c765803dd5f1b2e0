use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::format::{Part, Words};
use crate::format::{file, open, put_number, take_number};
use crate::likeness::{distance, shared_pairs};

fn entry(language: &str, id: &str, question: &str, variants: &[&str]) -> Entry {
    Entry {
        language: language.into(),
        id: id.into(),
        question: question.into(),
        variants: variants.iter().map(|&variant| variant.to_owned()).collect(),
    }
}

fn entries() -> Vec<Entry> {
    vec![
        entry("en", "roses", "When should an old rose be pruned?", &["Pruning old roses"]),
        entry("en", "a-beats-b", "Did Athens defeat Sparta?", &[]),
        entry("en", "b-beats-a", "Did Sparta defeat Athens?", &[]),
        entry("en", "apt", "APT?", &[]),
        entry("fr", "apt-fr", "APT ?", &["Qu’est-ce que l’APT ?"]),
        entry("fr", "archive", "Qui garde l’archive ?", &["Qui tient les archives ?"]),
        entry("el", "logos", "Τι είναι ο λόγος;", &["ἐν ἀρχῇ ἦν ὁ λόγος"]),
    ]
}

fn files(entries: &[Entry], packing: Packing) -> BTreeMap<String, Vec<u8>> {
    EdgeIndex::build(entries, packing).unwrap().files.into_iter().collect()
}

fn reader(files: BTreeMap<String, Vec<u8>>) -> Reader<impl Fetch> {
    Reader::open(move |path: &str| files.get(path).cloned()).unwrap()
}

fn ids(reader: &Reader<impl Fetch>, language: &str, text: &str) -> Vec<String> {
    let suggestions = reader.suggest(language, text, 5).unwrap();
    suggestions.into_iter().map(|suggestion| suggestion.found.id).collect()
}

#[test]
fn what_folds_to_a_wording_opens_its_page_in_either_packing() {
    for packing in [Packing::Gzip, Packing::Zstd] {
        let reader = reader(files(&entries(), packing));
        for (language, text, id) in [
            ("en", "  WHEN should an old rosé be pruned", "roses"),
            ("en", "pruning old roses!", "roses"),
            ("fr", "qu'est ce que l'apt", "apt-fr"),
            ("en", "Τί εἶναι ὁ ΛΟΓΟΣ", "logos"),
            ("en", "ΕΝ ΑΡΧΗ ΗΝ Ο ΛΟΓΟΣ", "logos"),
            ("en", "apt", "apt"),
            ("fr", "apt", "apt-fr"),
        ] {
            let found = reader.exact(language, text).unwrap();
            assert_eq!(found.map(|found| found.id).as_deref(), Some(id), "{text}");
        }
        for text in ["", "?!", "when should a rose be pruned", "d'archive", "an old rose"] {
            assert_eq!(reader.exact("en", text).unwrap(), None, "{text}");
        }
    }
}

#[test]
fn likeness_is_not_identity() {
    let reader = reader(files(&entries(), Packing::Gzip));
    let asked = "Did Sparta defeat Athens?";
    assert_eq!(reader.exact("en", asked).unwrap().unwrap().id, "b-beats-a");
    assert_eq!(ids(&reader, "en", asked), ["b-beats-a", "a-beats-b"]);
    assert_eq!(reader.exact("en", "Athens Sparta defeat did").unwrap(), None);
}

#[test]
fn typos_word_order_and_unfinished_words_are_forgiven() {
    let reader = reader(files(&entries(), Packing::Gzip));
    for (language, text, id) in [
        ("en", "prunned old rose", "roses"),
        ("en", "rose old pruned when", "roses"),
        ("en", "when to pru", "roses"),
        ("en", "orse prunde", "roses"),
        ("en", "xrose", "roses"),
        ("fr", "garde archvie", "archive"),
        ("el", "λογς", "logos"),
    ] {
        assert_eq!(ids(&reader, language, text).first().map(String::as_str), Some(id), "{text}");
    }
    assert!(ids(&reader, "en", "elephant").is_empty());
    assert!(ids(&reader, "de", "rose").is_empty());
}

#[test]
fn the_same_questions_make_the_same_bytes() {
    let build = |entries: &[Entry]| EdgeIndex::build(entries, Packing::Gzip).unwrap();
    assert_eq!(build(&entries()), build(&entries()));
    let mut other = entries();
    other[0].variants.push("Cutting roses back".to_owned());
    assert_ne!(build(&entries()).id, build(&other).id);
}

#[test]
fn files_of_two_indexes_are_not_mixed() {
    let mut changed = entries();
    changed[0].question.push_str(" And when not?");
    let old = files(&entries(), Packing::Gzip);
    let new = EdgeIndex::build(&changed, Packing::Gzip).unwrap();
    // The root of one with the files of the other, under the names that it expects.
    let old_id = reader(old.clone()).id();
    let mut mixed = old;
    for (path, bytes) in &new.files {
        if path != ROOT {
            mixed.insert(path.replace(&new.id, &old_id), bytes.clone());
        }
    }
    let error = reader(mixed).suggest("en", "rose", 3).unwrap_err();
    assert!(matches!(error, EdgeError::Mixed { .. }), "{error}");

    // A file of the same index in another's place.
    let mut swapped = files(&entries(), Packing::Gzip);
    let id = reader(swapped.clone()).id();
    let french = swapped[&format!("edge/{id}/t-fr-0.flx")].clone();
    swapped.insert(format!("edge/{id}/t-en-0.flx"), french);
    let error = reader(swapped).suggest("en", "rose", 3).unwrap_err();
    assert!(matches!(error, EdgeError::Mixed { .. }), "{error}");
}

#[test]
fn another_version_is_refused() {
    let files = files(&entries(), Packing::Zstd);
    let mut root = zstd::decode_all(files[ROOT].as_slice()).unwrap();
    root[8] += 1;
    let result = Reader::open(move |_: &str| Some(root.clone()));
    assert!(matches!(result.err(), Some(EdgeError::Version { found: 2, .. })));
}

#[test]
fn a_wording_on_two_lines_is_refused_by_name() {
    let error = EdgeIndex::build(&[entry("en", "x", "a\tb", &[])], Packing::Gzip).unwrap_err();
    assert!(error.to_string().contains("\"x\""), "{error}");
}

#[test]
fn no_questions_make_an_index_that_finds_nothing() {
    let reader = reader(files(&[], Packing::Gzip));
    assert_eq!(reader.exact("en", "a").unwrap(), None);
    assert!(ids(&reader, "en", "a").is_empty());
}

#[test]
fn many_questions_are_cut_into_shards_and_all_are_found() {
    let entries: Vec<Entry> = (0..2_000)
        .map(|n| {
            entry("en", &format!("q{n}"), &format!("What is the word{n} of chapter{}?", n / 7), &[])
        })
        .collect();
    let files = files(&entries, Packing::Gzip);
    assert!(files.keys().filter(|path| path.contains("/w-en-")).count() > 5);
    assert!(files.keys().filter(|path| path.contains("/e-")).count() > 3);
    let reader = reader(files);
    for n in [0, 1, 15, 16, 17, 999, 1_999] {
        let id = format!("q{n}");
        let asked = format!("what is the word{n} of chapter{}", n / 7);
        assert_eq!(reader.exact("en", &asked).unwrap().unwrap().id, id);
        assert_eq!(ids(&reader, "en", &format!("chapter{} word{n} ", n / 7))[0], id);
    }
}

#[test]
fn distances() {
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    for (one, other, expected) in [
        ("rose", "rose", Some(0)),
        ("rose", "orse", Some(1)),
        ("rose", "roses", Some(1)),
        ("rose", "ro", Some(2)),
        ("rose", "rise", Some(1)),
        ("rose", "tulip", None),
        ("", "ab", Some(2)),
    ] {
        assert_eq!(distance(&chars(one), &chars(other), 2), expected, "{one} {other}");
    }
    assert!((shared_pairs("night", "nacht") - 0.25).abs() < 1e-12);
    assert_eq!(shared_pairs("a", "a"), 0.0);
}

proptest! {
    #[test]
    fn numbers_come_back(numbers in prop::collection::vec(any::<u32>(), 0..20)) {
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&number| put_number(&mut bytes, number));
        let mut rest = bytes.as_slice();
        for number in numbers {
            prop_assert_eq!(take_number(&mut rest), Some(number));
        }
        prop_assert_eq!(take_number(&mut rest), None);
    }

    #[test]
    fn distance_is_symmetric(one in "[a-d]{0,6}", other in "[a-d]{0,6}", most in 0usize..4) {
        let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
        prop_assert_eq!(distance(&one, &other, most), distance(&other, &one, most));
    }

    /// Every wording of every question is found exactly, whatever it is made of.
    #[test]
    fn every_wording_opens_a_page_that_has_it(wordings in prop::collection::vec("[^\t\n]{1,40}", 1..30)) {
        let entries: Vec<Entry> = wordings
            .iter()
            .enumerate()
            .map(|(n, wording)| entry(["en", "el"][n % 2], &format!("q{n}"), wording, &[]))
            .collect();
        let reader = reader(files(&entries, Packing::Gzip));
        for wording in &wordings {
            let folded = florilegium_fold::fold(wording);
            match reader.exact("en", wording).unwrap() {
                Some(found) => prop_assert_eq!(florilegium_fold::fold(&found.question), folded),
                None => prop_assert_eq!(folded, ""),
            }
            reader.suggest("en", wording, 5).unwrap();
        }
    }

    /// One bit changed anywhere in an unpacked file is found.
    #[test]
    fn damage_is_found(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let part = Part { kind: 3, language: 1, shard: 7 };
        let words = Words { words: "a\nb".into(), postings: vec![1, 0, 1, 1] };
        let payload = format::payload(&words).unwrap();
        let packed = file(part, [9; 8], &payload, Packing::Zstd);
        let mut bytes = zstd::decode_all(packed.as_slice()).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(open::<Words>("x", part, &bytes).is_err());
    }

    #[test]
    fn hostile_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let part = Part { kind: 3, language: 1, shard: 7 };
        prop_assert!(open::<Words>("x", part, &bytes).is_err());
    }
}
