//! Measures a large site, made of questions from real words: `site_speed COUNT FOLDER LANGUAGE=CORPUS…`
//! makes COUNT questions with four variants in each language, from the words of the HTML files in that
//! language's corpus, publishes them below FOLDER, and asks the index again with a typo in one word and
//! another word dropped. Prints one line of JSON; `benches/run.sh publish` calls it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use florilegium_edge::{ROOT, Reader};
use florilegium_publish::{Entry, Settings, Site, Standing, release, render};
use florilegium_synthesis::answer::{Answer, Group};

#[allow(dead_code, missing_docs, reason = "shared with the tests, which use more of it")]
#[path = "../tests/common/mod.rs"]
mod common;

/// Questions that are asked again.
const ASKED: usize = 600;
/// Of these, in a browser.
const IN_BROWSER: usize = 30;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: site_speed COUNT FOLDER LANGUAGE=CORPUS…";
    let count: usize = arguments.next().ok_or(usage)?.parse()?;
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut site = common::site();
    site.entries.clear();
    for argument in arguments {
        let (language, corpus) = argument.split_once('=').ok_or(usage)?;
        let words = words(Path::new(corpus))?;
        site.entries.extend(questions(language, &words, count, &mut dice));
    }
    let languages: BTreeSet<String> = site.entries.iter().map(|entry| entry.lang.clone()).collect();
    site.languages = languages.into_iter().collect();

    let begun = Instant::now();
    let files = render(&site)?;
    let rendered = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let settings = Settings::default();
    let published = release(&folder, &site.id, &files, &settings)?;
    let fresh = begun.elapsed().as_secs_f64();

    let edge: usize = files
        .iter()
        .filter(|(path, _)| path.starts_with("edge/"))
        .map(|(_, bytes)| bytes.len())
        .sum();
    let lookups = ask_again(&site, &files, &mut dice)?;
    // For the browser: some of them, damaged in the same way.
    let asked: Vec<[String; 3]> = (0..IN_BROWSER)
        .map(|_| {
            let entry = &site.entries[dice.roll(site.entries.len())];
            let text = damaged(&entry.answer.question, &mut dice);
            [entry.lang.clone(), text, format!("/{}/q/{}/", entry.lang, entry.id)]
        })
        .collect();
    fs::write(folder.join("asked.json"), serde_json::to_vec(&asked)?)?;

    // The next night: one answer in a hundred is new.
    for entry in site.entries.iter_mut().step_by(100) {
        entry.computed_on = "2026-12-01".to_owned();
    }
    let changed = render(&site)?;
    let begun = Instant::now();
    release(&folder, &site.id, &changed, &settings)?;
    let again = begun.elapsed().as_secs_f64();

    let pages = files.iter().filter(|(path, _)| path.ends_with(".html")).count();
    println!(
        "{}",
        serde_json::json!({
            "questions": site.entries.len(),
            "wordings": site.entries.len() * 5,
            "pages": pages,
            "files": files.len(),
            "bytes": files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(),
            "render_seconds": rendered,
            "release_seconds": fresh,
            "release_one_in_a_hundred_changed_seconds": again,
            "edge_bytes": edge,
            "edge_files": files.iter().filter(|(path, _)| path.starts_with("edge/")).count(),
            "lookups": lookups,
            "published": published,
        })
    );
    Ok(())
}

/// The words of all HTML files in a folder, in order.
fn words(corpus: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(corpus)?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut words = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "html"))
    {
        let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        let text = text.split_once("<body").map_or(text.as_str(), |(_, body)| body).to_owned();
        for piece in text.split('<').filter_map(|piece| piece.split_once('>')) {
            let sound = |word: &&str| {
                word.chars().filter(|c| c.is_alphabetic()).count() > 1 && !word.contains('&')
            };
            words.extend(
                piece
                    .1
                    .split_whitespace()
                    .filter(sound)
                    .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()),
            );
        }
    }
    if words.len() < 1000 {
        return Err(format!("{} has too few words", corpus.display()).into());
    }
    Ok(words)
}

/// How a question begins, by language.
fn beginnings(language: &str) -> [&'static str; 6] {
    match language {
        "fr" => [
            "Qu’est-ce que",
            "Comment expliquer",
            "Pourquoi",
            "Que dit-on de",
            "Où trouve-t-on",
            "Quand",
        ],
        "el" => ["Τι είναι", "Πώς εξηγείται", "Γιατί", "Τι λέγεται για", "Πού βρίσκεται", "Πότε"],
        _ => ["What is", "How does one explain", "Why", "What is said of", "Where is", "When"],
    }
}

fn questions(language: &str, words: &[String], count: usize, dice: &mut Dice) -> Vec<Entry> {
    let beginnings = beginnings(language);
    let mut seen = BTreeSet::new();
    let mut entries = Vec::with_capacity(count);
    while entries.len() < count {
        let length = 5 + dice.roll(5);
        let at = dice.roll(words.len() - 400);
        let span: Vec<&str> = words[at..at + length].iter().map(String::as_str).collect();
        let begin = beginnings[dice.roll(6)];
        let question = format!("{begin} {} ?", span.join(" ").to_lowercase());
        if !seen.insert(question.clone()) {
            continue;
        }
        let variants = (0..4)
            .map(|_| {
                let mut other = span.clone();
                other.remove(dice.roll(other.len()));
                if dice.roll(2) == 0 {
                    let (a, b) = (dice.roll(other.len()), dice.roll(other.len()));
                    other.swap(a, b);
                }
                format!("{} {} ?", beginnings[dice.roll(6)], other.join(" ").to_lowercase())
            })
            .collect();
        let number = entries.len();
        entries.push(Entry {
            id: format!("{language}-q{number}"),
            lang: language.to_owned(),
            variants,
            tags: vec![words[(number / 40 * 97) % words.len()].to_lowercase()],
            answer: answer(&question, language, &words[at..at + 400]),
            computed_on: "2026-11-30".to_owned(),
            standing: Standing::Current,
        });
    }
    entries
}

/// An answer with three quotations of some forty words each.
fn answer(question: &str, language: &str, words: &[String]) -> Answer {
    let text = |from: usize, length: usize| words[from..from + length].join(" ") + ". ";
    let quotation = |at: usize, source: usize| {
        let texts = [text(at, 40), text(at + 40, 40), text(at + 80, 30)];
        common::quotation(
            source,
            language,
            &format!("text-{source}"),
            [&texts[0], &texts[1], &texts[2]],
        )
    };
    let group = |title: &str, quotations| Group {
        title: title.to_owned(),
        headings: vec![words[3].clone(), words[5].clone()],
        quotations,
    };
    let groups = vec![
        group(&text(10, 4), vec![quotation(0, 1), quotation(110, 1)]),
        group(&text(20, 4), vec![quotation(220, 2)]),
    ];
    let sources =
        [1, 2].map(|number| common::source(number, language, &format!("text-{number}"), "A text"));
    common::answer(question, language, groups, sources.to_vec())
}

/// Asks questions again, damaged, and counts what is fetched and how often the first suggestion is right.
fn ask_again(
    site: &Site,
    files: &[(String, Vec<u8>)],
    dice: &mut Dice,
) -> Result<serde_json::Value, Box<dyn Error>> {
    let by_path: BTreeMap<&str, &[u8]> =
        files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
    let fetched: RefCell<BTreeSet<String>> = RefCell::default();
    let new_bytes = RefCell::new(0usize);
    let reader = Reader::open(|path: &str| {
        let bytes = by_path.get(path)?;
        if fetched.borrow_mut().insert(path.to_owned()) {
            *new_bytes.borrow_mut() += bytes.len();
        }
        Some(bytes.to_vec())
    })?;
    let (mut right, mut among, mut cold, mut most, mut warm) = (0, 0, 0, 0, 0);
    let mut by_language: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let begun = Instant::now();
    let root_size = by_path.get(ROOT).map_or(0, |root| root.len());
    for _ in 0..ASKED {
        let entry = &site.entries[dice.roll(site.entries.len())];
        let text = damaged(&entry.answer.question, dice);
        fetched.borrow_mut().clear();
        *new_bytes.borrow_mut() = root_size;
        let exact = reader.exact(&entry.lang, &text)?;
        let suggestions = reader.suggest(&entry.lang, &text, 6)?;
        let first = suggestions.first().map(|suggestion| suggestion.found.id.as_str());
        let good = exact.is_none() && first == Some(entry.id.as_str());
        right += usize::from(good);
        among += usize::from(suggestions.iter().any(|suggestion| suggestion.found.id == entry.id));
        let counts = by_language.entry(&entry.lang).or_default();
        counts.0 += 1;
        counts.1 += usize::from(good);
        let bytes = *new_bytes.borrow();
        cold += bytes;
        most = most.max(bytes);
        // The same with one more word: the reader goes on typing.
        *new_bytes.borrow_mut() = 0;
        reader.suggest(
            &entry.lang,
            &format!("{text} {}", entry.answer.groups[0].headings[0]),
            6,
        )?;
        warm += *new_bytes.borrow();
    }
    let seconds = begun.elapsed().as_secs_f64();
    Ok(serde_json::json!({
        "asked": ASKED,
        "first_right": right as f64 / ASKED as f64,
        "among_six": among as f64 / ASKED as f64,
        "first_right_by_language": by_language
            .into_iter()
            .map(|(language, (asked, right))| (language.to_owned(), right as f64 / asked as f64))
            .collect::<BTreeMap<String, f64>>(),
        "cold_bytes_mean": cold / ASKED,
        "cold_bytes_most": most,
        "warm_bytes_mean": warm / ASKED,
        "milliseconds": 1e3 * seconds / (2 * ASKED) as f64,
    }))
}

/// A question with a typo in one word and another word dropped.
fn damaged(question: &str, dice: &mut Dice) -> String {
    let mut words: Vec<Vec<char>> = question
        .split_whitespace()
        .filter(|word| *word != "?")
        .map(|word| word.chars().collect())
        .collect();
    words.remove(dice.roll(words.len()));
    let long: Vec<usize> = (0..words.len()).filter(|&at| words[at].len() > 3).collect();
    if let Some(&at) = long.get(dice.roll(long.len())) {
        let word = &mut words[at];
        let place = dice.roll(word.len() - 1);
        match dice.roll(4) {
            0 => word.swap(place, place + 1),
            1 => drop(word.remove(place)),
            2 => word.insert(place, word[place]),
            _ => word[place] = word[(place + 2) % word.len()],
        }
    }
    words.into_iter().map(String::from_iter).collect::<Vec<_>>().join(" ")
}
