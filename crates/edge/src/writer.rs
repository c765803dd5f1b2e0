//! Makes an index.

use std::collections::BTreeMap;

use florilegium_files::sha256_hex_parts;
use florilegium_fold::fold;

use crate::format::{
    self, EdgeError, Exact, FORMAT_VERSION, Language, Packing, Part, ROOT_PART, Root, Texts, Words,
    put_number,
};
use crate::terms::{hash, shard_of, terms_of};

/// The path of the root.
pub const ROOT: &str = "edge/root.flx";

/// Questions in a text shard.
const BLOCK: usize = 16;
/// Bytes of words and postings in a word shard, about.
const WORD_SHARD: usize = 4_000;
/// Wordings in an exact shard, about.
const EXACT_SHARD: usize = 300;
/// A word in more of a language's questions than this part of them, and than `COMMON_LEAST`, tells
/// nothing apart.
const COMMON_PART: usize = 16;
const COMMON_LEAST: usize = 64;
/// Owners have 24 bits for the question and 8 for the language.
const MOST_QUESTIONS: usize = 1 << 24;
const MOST_LANGUAGES: usize = 1 << 8;

/// A curated question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// BCP 47 tag.
    pub language: String,
    /// Its id: the last part of the page's address.
    pub id: String,
    /// The question as it is shown.
    pub question: String,
    /// Its other wordings.
    pub variants: Vec<String>,
}

/// An index, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeIndex {
    /// Its id, in hexadecimal: a hash of everything in it.
    pub id: String,
    /// Paths in the site and contents. The root is the last.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Payloads in the making.
type Parts = Vec<(Part, String, Vec<u8>)>;

impl EdgeIndex {
    /// Makes the index of these questions. The same questions in the same order make the same bytes.
    pub fn build(entries: &[Entry], packing: Packing) -> Result<Self, EdgeError> {
        let mut by_language: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            let wordings = [&entry.id, &entry.question].into_iter().chain(&entry.variants);
            if wordings.into_iter().any(|text| text.contains(['\t', '\n'])) {
                return Err(EdgeError::Broken { id: entry.id.clone() });
            }
            by_language.entry(&entry.language).or_default().push(entry);
        }
        let too_many = |what, count, most| Err(EdgeError::TooMany { what, count, most });
        if by_language.len() > MOST_LANGUAGES {
            return too_many("languages", by_language.len(), MOST_LANGUAGES);
        }
        let mut parts = Parts::new();
        let mut languages = Vec::with_capacity(by_language.len());
        for (number, (tag, entries)) in by_language.iter().enumerate() {
            if entries.len() > MOST_QUESTIONS {
                return too_many("questions in one language", entries.len(), MOST_QUESTIONS);
            }
            let first_words = words(tag, number as u8, entries, &mut parts)?;
            texts(tag, number as u8, entries, &mut parts)?;
            languages.push(Language {
                tag: (*tag).to_owned(),
                questions: entries.len() as u32,
                first_words,
            });
        }
        let exact_bits = exact(&by_language, &mut parts)?;
        let root = Root { exact_bits, block: BLOCK as u32, languages };
        let root = format::payload(&root)?;

        let hash = sha256_hex_parts(
            [FORMAT_VERSION.to_le_bytes().as_slice(), &root]
                .into_iter()
                .chain(parts.iter().flat_map(|(_, name, payload)| [name.as_bytes(), payload])),
        );
        let id = hash.get(..16).unwrap_or(&hash).to_owned();
        let bytes = u64::from_str_radix(&id, 16).unwrap_or_default().to_be_bytes();
        let mut files: Vec<(String, Vec<u8>)> = parts
            .into_iter()
            .map(|(part, name, payload)| {
                (format!("edge/{id}/{name}.flx"), format::file(part, bytes, &payload, packing))
            })
            .collect();
        files.push((ROOT.to_owned(), format::file(ROOT_PART, bytes, &root, packing)));
        Ok(EdgeIndex { id, files })
    }
}

/// The word shards of a language; returns the first word of each.
fn words(
    tag: &str,
    language: u8,
    entries: &[&Entry],
    parts: &mut Parts,
) -> Result<String, EdgeError> {
    let mut postings: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (number, entry) in entries.iter().enumerate() {
        for wording in std::iter::once(&entry.question).chain(&entry.variants) {
            for term in terms_of(wording) {
                let list = postings.entry(term).or_default();
                if list.last() != Some(&(number as u32)) {
                    list.push(number as u32);
                }
            }
        }
    }
    let common = COMMON_LEAST.max(entries.len() / COMMON_PART);
    let mut first_words: Vec<String> = Vec::new();
    let mut shard = Words::default();
    let mut close = |shard: &mut Words, parts: &mut Parts| -> Result<(), EdgeError> {
        let shard = std::mem::take(shard);
        if let Some(first) = shard.words.split('\n').next().filter(|first| !first.is_empty()) {
            let number = first_words.len() as u32;
            first_words.push(first.to_owned());
            let part = Part { kind: 3, language, shard: number };
            parts.push((part, format!("w-{tag}-{number}"), format::payload(&shard)?));
        }
        Ok(())
    };
    for (word, mut list) in postings {
        if list.len() > common {
            list.clear();
        }
        if !shard.words.is_empty() {
            shard.words.push('\n');
        }
        shard.words.push_str(&word);
        put_number(&mut shard.postings, list.len() as u32);
        let mut before = 0;
        for number in list {
            put_number(&mut shard.postings, number - before);
            before = number;
        }
        if shard.words.len() + shard.postings.len() >= WORD_SHARD {
            close(&mut shard, parts)?;
        }
    }
    close(&mut shard, parts)?;
    Ok(first_words.join("\n"))
}

fn texts(tag: &str, language: u8, entries: &[&Entry], parts: &mut Parts) -> Result<(), EdgeError> {
    for (number, block) in entries.chunks(BLOCK).enumerate() {
        let lines: Vec<String> = block
            .iter()
            .map(|entry| {
                let mut line = format!("{}\t{}", entry.id, entry.question);
                for variant in &entry.variants {
                    line.push('\t');
                    line.push_str(variant);
                }
                line
            })
            .collect();
        let part = Part { kind: 4, language, shard: number as u32 };
        let payload = format::payload(&Texts { lines: lines.join("\n") })?;
        parts.push((part, format!("t-{tag}-{number}"), payload));
    }
    Ok(())
}

/// The exact shards; returns how many bits choose one.
fn exact(by_language: &BTreeMap<&str, Vec<&Entry>>, parts: &mut Parts) -> Result<u8, EdgeError> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for (language, entries) in by_language.values().enumerate() {
        for (number, entry) in entries.iter().enumerate() {
            let owner = (language as u32) << 24 | number as u32;
            for wording in std::iter::once(&entry.question).chain(&entry.variants) {
                let folded = fold(wording);
                if !folded.is_empty() {
                    all.push((hash(&folded), owner));
                }
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    let mut bits = 0;
    while all.len() >> bits > EXACT_SHARD {
        bits += 1;
    }
    let mut shards: Vec<Exact> = (0..1u32 << bits).map(|_| Exact::default()).collect();
    for (hash, owner) in all {
        if let Some(shard) = shards.get_mut(shard_of(hash, bits) as usize) {
            shard.hashes.push(hash);
            shard.owners.push(owner);
        }
    }
    for (number, shard) in shards.iter().enumerate() {
        let part = Part { kind: 2, language: 0, shard: number as u32 };
        parts.push((part, format!("e-{number}"), format::payload(shard)?));
    }
    Ok(bits)
}
