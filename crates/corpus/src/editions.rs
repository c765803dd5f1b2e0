//! Editions: the same passage in several documents, word for word or nearly.
//!
//! Identical passages have the same text hash. Near ones are found with MinHash (Broder, "On the
//! resemblance and containment of documents", 1997): passages whose sets of three-word sequences are
//! alike share a band of their signatures with high probability, and are then compared exactly.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use rayon::prelude::*;

use crate::archive::Archive;
use crate::document::{Document, Passage};

/// Words of a sequence that is compared.
const SHINGLE: usize = 3;
/// Bands of a signature, and numbers in a band: passages half alike share one with probability .94,
/// those alike in three of ten with .44.
const BANDS: usize = 21;
const ROWS: usize = 3;
/// Part of the sequences that near passages share at least.
const NEAR: f32 = 0.5;
/// Passages with fewer sequences are too short to be near anything by more than chance.
const SHORTEST: usize = 6;
/// A band shared by more passages than this is a formula of the archive, not an edition.
const CROWD: usize = 64;

/// A passage of another document that says the same, or nearly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edition<'a> {
    /// The passage.
    pub passage: &'a Passage,
    /// Part of the three-word sequences that both share; 1 if they are identical.
    pub similarity: f32,
}

/// A document in which a sentence stands exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carrier<'a> {
    /// The document.
    pub document: &'a Document,
    /// Where the sentence stands in it.
    pub range: Range<usize>,
}

/// For each passage by number, the numbers of those near it.
pub(crate) type Near = HashMap<usize, Vec<(usize, f32)>>;

impl Archive {
    /// The passages of other documents that say what this one says: identical ones first, then near
    /// ones, the nearest first. The first call compares the whole archive.
    pub fn editions(&self, passage: &Passage) -> Vec<Edition<'_>> {
        let Some(number) = self.passage_number(&passage.id) else { return Vec::new() };
        let passages = self.passages();
        let same = passages
            .iter()
            .filter(|other| {
                other.text_hash == passage.text_hash && other.document != passage.document
            })
            .map(|passage| Edition { passage, similarity: 1.0 });
        let near = self.near().get(&number).into_iter().flatten();
        same.chain(near.filter_map(|&(other, similarity)| {
            Some(Edition { passage: passages.get(other)?, similarity })
        }))
        .collect()
    }

    /// The documents in which the sentence at `range` of a passage's document stands exactly: its own,
    /// and those of the passage's editions. By year.
    pub fn carriers(&self, passage: &Passage, range: &Range<usize>) -> Vec<Carrier<'_>> {
        let own = self.document(&passage.document);
        let Some(sentence) = own.and_then(|document| document.slice(range)) else {
            return Vec::new();
        };
        let editions = self.editions(passage);
        let mut seen = HashSet::from([passage.document.as_str()]);
        let others = editions
            .iter()
            .filter(|edition| seen.insert(edition.passage.document.as_str()))
            .filter_map(|edition| self.document(&edition.passage.document));
        let mut carriers: Vec<Carrier<'_>> = others
            .filter_map(|document| {
                let at = document.text.find(sentence)?;
                Some(Carrier { document, range: at..at + sentence.len() })
            })
            .chain(own.map(|document| Carrier { document, range: range.clone() }))
            .collect();
        carriers.sort_by(|a, b| {
            let key = |carrier: &Carrier<'_>| {
                (carrier.document.meta.year().map(str::to_owned), carrier.document.id.clone())
            };
            key(a).cmp(&key(b))
        });
        carriers
    }
}

/// Finds all near passages.
pub(crate) fn near(archive: &Archive) -> Near {
    let passages = archive.passages();
    let shingles: Vec<Vec<u64>> = passages
        .par_iter()
        .map(|passage| shingles(archive.text(passage).unwrap_or_default()))
        .collect();
    let signatures: Vec<Option<[u64; BANDS]>> = shingles
        .par_iter()
        .map(|shingles| (shingles.len() >= SHORTEST).then(|| bands(shingles)))
        .collect();
    let mut pairs: HashSet<(usize, usize)> = HashSet::new();
    for band in 0..BANDS {
        let mut buckets: HashMap<u64, Vec<usize>> = HashMap::new();
        for (number, signature) in signatures.iter().enumerate() {
            if let Some(signature) = signature {
                buckets.entry(signature[band]).or_default().push(number);
            }
        }
        for bucket in buckets.into_values().filter(|bucket| (2..=CROWD).contains(&bucket.len())) {
            for (at, &one) in bucket.iter().enumerate() {
                let others = bucket[at + 1..].iter().map(|&other| (one, other));
                pairs.extend(others.filter(|&(one, other)| {
                    let (one, other) = (&passages[one], &passages[other]);
                    one.document != other.document
                        && one.language == other.language
                        && one.text_hash != other.text_hash
                }));
            }
        }
    }
    let mut near = Near::new();
    for (one, other) in pairs {
        let similarity = resemblance(&shingles[one], &shingles[other]);
        if similarity >= NEAR {
            near.entry(one).or_default().push((other, similarity));
            near.entry(other).or_default().push((one, similarity));
        }
    }
    for others in near.values_mut() {
        others.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    }
    near
}

/// Hashes of the sequences of three words, sorted, each once. Case and punctuation do not count.
fn shingles(text: &str) -> Vec<u64> {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let mut hashes: Vec<u64> = words.windows(SHINGLE).map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// The same for the same value in every run: the hasher's keys are fixed.
fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The signature: for each of 63 orders of all hashes, the first of these; three and three together.
fn bands(shingles: &[u64]) -> [u64; BANDS] {
    std::array::from_fn(|band| {
        let rows: [u64; ROWS] = std::array::from_fn(|row| {
            let key = hash((band, row));
            // One multiplication by an odd number reorders well enough, and is quick.
            let order = |shingle: &u64| (shingle ^ key).wrapping_mul(key | 1).rotate_left(32);
            shingles.iter().map(order).min().unwrap_or_default()
        });
        hash(rows)
    })
}

/// Part of the union that both have.
fn resemblance(one: &[u64], other: &[u64]) -> f32 {
    let one: HashSet<&u64> = one.iter().collect();
    let shared = other.iter().filter(|hash| one.contains(hash)).count();
    let union = one.len() + other.len() - shared;
    shared as f32 / union.max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plain, segment};

    fn archive(texts: &[(&str, &str, &str)]) -> Archive {
        let mut documents = Vec::new();
        let mut passages = Vec::new();
        for (name, date, text) in texts {
            let mut document = plain::read(text).into_document("c", name, "en");
            document.meta.date = Some((*date).into());
            passages.extend(segment(&document, &[], &|text| text.split_whitespace().count(), 60));
            documents.push(document);
        }
        Archive::new(Vec::new(), documents, passages)
    }

    const FIRST: &str = "The dream is the royal road to a knowledge of the unconscious in the life of the mind. It is said here once more.";

    #[test]
    fn an_edition_that_differs_by_a_word_is_linked_and_says_which_sentences_it_keeps() {
        let second = FIRST.replace("royal", "kingly");
        let archive = archive(&[
            ("1900.txt", "1900", FIRST),
            ("1911.txt", "1911", FIRST),
            ("1921.txt", "1921", &second),
            (
                "other.txt",
                "1900",
                "Something else is told in this text, of ships and of the sea, and of no dream at all.",
            ),
        ]);
        let passage = &archive.passages()[0];
        let found: Vec<(&str, bool)> = archive
            .editions(passage)
            .iter()
            .map(|edition| (edition.passage.document.as_str(), edition.similarity == 1.0))
            .collect();
        assert_eq!(found, [("c/1911.txt", true), ("c/1921.txt", false)]);
        let years = |range: &Range<usize>| -> Vec<String> {
            let carriers = archive.carriers(passage, range);
            carriers
                .iter()
                .filter_map(|carrier| carrier.document.meta.year().map(str::to_owned))
                .collect()
        };
        assert_eq!(years(&passage.sentences[0]), ["1900", "1911"]);
        assert_eq!(years(&passage.sentences[1]), ["1900", "1911", "1921"]);
    }

    #[test]
    fn what_only_shares_a_theme_is_no_edition() {
        let archive = archive(&[
            ("a.txt", "1", FIRST),
            (
                "b.txt",
                "2",
                "The royal road of the dream leads, for the mind, to what is unconscious, as was often said.",
            ),
        ]);
        assert!(archive.editions(&archive.passages()[0]).is_empty());
    }
}
