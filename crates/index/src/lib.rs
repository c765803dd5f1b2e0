//! Passages found by meaning and by words.
//!
//! Vectors have unit length and are compared by inner product, that is by cosine, in FAISS. There is one
//! FAISS index a collection and language, so that a filter is a choice of indexes: a rare collection
//! still gives its `k` results, and nothing is searched to be thrown away. Words are compared by BM25,
//! in one tantivy index. [`Ranking`] says how the two are put together.
//!
//! On disk: FAISS files, named by their hash; a folder of tantivy, named by what it was made from; and
//! one manifest, written last.

mod dense;
mod error;
mod fusion;
mod lexical;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, persist, sha256_hex_file, sha256_hex_parts, temporary_beside};
use serde::{Deserialize, Serialize};

use dense::{Dense, Moments};
pub use dense::{FLAT_UP_TO, Kind, dot};
pub use error::IndexError;
pub use fusion::{Fusion, Ranking};
use fusion::{Scored, Spread};
use lexical::{Allowed, Lexical};

const FORMAT: Format = Format { magic: *b"FLORINDX", version: 2 };
const MANIFEST: &str = "manifest";
/// Folders of words begin with this.
const WORDS: &str = "words-";
/// Belongs to no shard: a passage that the index does not hold.
const NO_SHARD: u32 = u32::MAX;

/// A passage on its way into the index.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Number of the passage in the archive.
    pub passage: usize,
    /// Its collection.
    pub collection: &'a str,
    /// Its language.
    pub language: &'a str,
    /// Unit vector.
    pub vector: &'a [f32],
    /// Its words.
    pub text: &'a str,
}

/// What an index was made from; all of it must agree with what is at hand when it is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Hash of the passages.
    pub corpus: String,
    /// Hash of the embedding model with its prefixes.
    pub model: String,
    /// Numbers in a vector.
    pub dimension: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    origin: Origin,
    /// How texts were cut into terms.
    terms: String,
    /// The folder of words.
    words: String,
    shards: Vec<ShardEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShardEntry {
    collection: String,
    language: String,
    kind: Kind,
    /// SHA-256 of the FAISS file, which is also its name.
    file: String,
    /// The passage at each position of the FAISS index.
    passages: Vec<u64>,
    moments: Moments,
}

struct Shard {
    entry: ShardEntry,
    dense: Dense,
}

/// A question as it is searched.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Unit vector.
    pub vector: &'a [f32],
    /// Its words. May be empty or hold no word at all: then vectors alone decide.
    pub text: &'a str,
}

/// What may be found.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only these collections; all when empty.
    pub collections: Vec<String>,
    /// Only these languages; all when empty.
    pub languages: Vec<String>,
}

/// A passage found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Number of the passage in the archive.
    pub passage: usize,
    /// Cosine of the angle between question and passage.
    pub dense: f32,
    /// BM25 score: 0 without a common word, no upper bound.
    pub lexical: f32,
    /// Both put together: only good for comparing passages found by one search.
    pub fused: f32,
}

/// An index that is open for searching, from any number of threads.
pub struct Index {
    origin: Origin,
    shards: Vec<Shard>,
    lexical: Lexical,
    /// The shard of each passage.
    shard_of: Arc<[u32]>,
    /// Its position there.
    position_of: Vec<u32>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("origin", &self.origin).field("len", &self.len()).finish()
    }
}

impl Index {
    /// Makes an index of `rows` in the folder `path` and opens it. Files of an earlier index in the
    /// folder are removed once the new manifest stands.
    pub fn build(path: &Path, origin: Origin, rows: &[Row<'_>]) -> Result<Self, IndexError> {
        let mut groups: BTreeMap<(&str, &str), Vec<&Row<'_>>> = BTreeMap::new();
        for row in rows {
            if let Some(problem) = problem(row.vector, origin.dimension) {
                return Err(IndexError::Vector { row: row.passage, problem });
            }
            groups.entry((row.collection, row.language)).or_default().push(row);
        }
        florilegium_files::create_dir(path)?;
        let mut shards = Vec::new();
        for ((collection, language), rows) in groups {
            let vectors: Vec<&[f32]> = rows.iter().map(|row| row.vector).collect();
            let temporary = temporary_beside(&path.join("shard"))?;
            let (kind, moments) = Dense::write(&temporary, &vectors, origin.dimension, FLAT_UP_TO)?;
            let file = sha256_hex_file(&temporary)?;
            persist(&temporary, &path.join(&file))?;
            shards.push(ShardEntry {
                collection: collection.to_owned(),
                language: language.to_owned(),
                kind,
                file,
                passages: rows.iter().map(|row| row.passage as u64).collect(),
                moments,
            });
        }
        let words = write_words(path, &origin, rows)?;
        let terms = lexical::TERMS.to_owned();
        let manifest = Manifest { origin: origin.clone(), terms, words, shards };
        record::write(&path.join(MANIFEST), FORMAT, &manifest)?;
        sweep(path, &manifest);
        // The hashes were taken just now.
        Self::open_with(path, &origin, |_| Ok(true))
    }

    /// Whether every file of the index in a folder is as it was written, whatever it was made from.
    pub fn verify(path: &Path) -> Result<(), IndexError> {
        let manifest: Manifest = record::load(&path.join(MANIFEST), FORMAT)?;
        Self::open(path, &manifest.origin).map(drop)
    }

    /// Opens the index in the folder `path`, if it was made from `expected`.
    pub fn open(path: &Path, expected: &Origin) -> Result<Self, IndexError> {
        let is_whole = |file: &Path| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(sha256_hex_file(file)? == name)
        };
        Self::open_with(path, expected, is_whole)
    }

    fn open_with(
        path: &Path,
        expected: &Origin,
        is_whole: impl Fn(&Path) -> Result<bool, FileError> + Sync,
    ) -> Result<Self, IndexError> {
        let manifest: Manifest = record::load(&path.join(MANIFEST), FORMAT)?;
        let origin = &manifest.origin;
        let dimensions = (origin.dimension.to_string(), expected.dimension.to_string());
        for (what, found, expected) in [
            ("embedding model", &origin.model, &expected.model),
            ("dimension", &dimensions.0, &dimensions.1),
            ("set of passages", &origin.corpus, &expected.corpus),
            ("way of cutting words", &manifest.terms, &lexical::TERMS.to_owned()),
        ] {
            if found != expected {
                return Err(IndexError::Mismatch {
                    path: path.to_owned(),
                    what,
                    found: found.clone(),
                    expected: expected.clone(),
                });
            }
        }
        let mut shards = Vec::new();
        for entry in manifest.shards {
            let file = path.join(&entry.file);
            let damaged = |problem: &str| IndexError::Damaged {
                path: file.clone(),
                problem: problem.to_owned(),
            };
            // A large file is hashed while it is read: either takes half of a start.
            let (whole, dense) = rayon::join(|| is_whole(&file), || Dense::read(&file, entry.kind));
            if !whole? {
                return Err(damaged("its content is not what its name says"));
            }
            let dense = dense?;
            if dense.shape() != (entry.passages.len(), manifest.origin.dimension)
                || !entry.moments.fit(manifest.origin.dimension)
            {
                return Err(damaged("it does not hold the passages that the manifest lists"));
            }
            shards.push(Shard { entry, dense });
        }
        let (shard_of, position_of) = places(&shards);
        let passages = shards.iter().map(|shard| shard.entry.passages.len()).sum();
        let lexical = Lexical::open(&path.join(&manifest.words), passages)?;
        Ok(Index { origin: manifest.origin, shards, lexical, shard_of, position_of })
    }

    /// What the index was made from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// How many passages it holds.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.entry.passages.len()).sum()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kind of each shard, by collection and language.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str, Kind)> {
        self.shards.iter().map(|shard| {
            let entry = &shard.entry;
            (entry.collection.as_str(), entry.language.as_str(), entry.kind)
        })
    }

    /// The `k` passages that match the question best among those the filter lets through, the best
    /// first; equally good ones in the order of the archive.
    ///
    /// Each side proposes its best passages; those that only one side proposed get the other's score
    /// too, so that every passage found is judged by both.
    pub fn search(
        &self,
        question: Question<'_>,
        filter: &Filter,
        k: usize,
        ranking: &Ranking,
    ) -> Result<Vec<Hit>, IndexError> {
        if let Some(problem) = problem(question.vector, self.origin.dimension) {
            return Err(IndexError::Question(problem));
        }
        let wanted: Arc<[bool]> =
            self.shards.iter().map(|shard| filter.lets_through(&shard.entry)).collect();
        let chosen = || self.shards.iter().zip(wanted.iter()).filter_map(|(s, &w)| w.then_some(s));
        let count: usize = chosen().map(|shard| shard.entry.passages.len()).sum();
        let pool = ranking.pool.max(k).min(count);
        if pool == 0 || k == 0 {
            return Ok(Vec::new());
        }

        let mut dense: HashMap<usize, f32> = HashMap::new();
        let mut nearest: Vec<(usize, f32)> = Vec::new();
        for shard in chosen().filter(|_| ranking.fusion != Fusion::Lexical) {
            let passages = &shard.entry.passages;
            for (at, score) in shard.dense.nearest(question.vector, pool.min(passages.len()))? {
                if let Some(&passage) = passages.get(at) {
                    nearest.push((passage as usize, score));
                }
            }
        }
        keep_best(&mut nearest, pool);
        dense.extend(nearest);

        let mut words = match ranking.fusion {
            Fusion::Dense => Vec::new(),
            _ => {
                let allowed = Allowed { shard_of: self.shard_of.clone(), wanted: wanted.clone() };
                self.lexical.scores(question.text, allowed)?
            }
        };
        let lexical_spread = Spread::new(
            count as f64,
            words.iter().map(|(_, score)| f64::from(*score)).sum(),
            words.iter().map(|(_, score)| f64::from(*score).powi(2)).sum(),
        );
        let mut lexical: HashMap<usize, f32> =
            words.iter().filter(|(passage, _)| dense.contains_key(passage)).copied().collect();
        keep_best(&mut words, pool);
        lexical.extend(words);

        let mut passages: Vec<usize> = dense.keys().chain(lexical.keys()).copied().collect();
        passages.sort_unstable();
        passages.dedup();
        let mut scored = Vec::with_capacity(passages.len());
        for passage in passages {
            let near = match dense.get(&passage) {
                Some(&score) => score,
                None => self.dense_score(question.vector, passage)?,
            };
            let lexical = lexical.get(&passage).copied().unwrap_or(0.0);
            scored.push(Scored { passage, dense: near, lexical });
        }
        let shards = chosen().map(|shard| (&shard.entry.moments, shard.entry.passages.len()));
        let dense_spread = match ranking.fusion {
            Fusion::Standardised => dense::spread(question.vector, shards),
            _ => Spread::new(0.0, 0.0, 0.0),
        };
        let fused = ranking.fuse(&scored, dense_spread, lexical_spread);
        let mut hits: Vec<Hit> = scored
            .into_iter()
            .zip(fused)
            .map(|(Scored { passage, dense, lexical }, fused)| Hit {
                passage,
                dense,
                lexical,
                fused,
            })
            .collect();
        hits.sort_by(|a, b| b.fused.total_cmp(&a.fused).then(a.passage.cmp(&b.passage)));
        hits.truncate(k);
        Ok(hits)
    }

    /// How much of the question each text takes up: the share of its words, weighed by their rarity,
    /// that stand in the text too, in any form. Between 0 and 1.
    pub fn coverage(&self, question: &str, texts: &[&str]) -> Result<Vec<f32>, IndexError> {
        self.lexical.coverage(question, texts)
    }

    fn dense_score(&self, question: &[f32], passage: usize) -> Result<f32, IndexError> {
        let place = self.shard_of.get(passage).zip(self.position_of.get(passage));
        let shard = place.and_then(|(&shard, &at)| Some((self.shards.get(shard as usize)?, at)));
        match shard {
            Some((shard, at)) => shard.dense.score(question, at as usize),
            None => Ok(0.0),
        }
    }
}

impl Filter {
    fn lets_through(&self, entry: &ShardEntry) -> bool {
        let wanted = |list: &[String], value: &String| list.is_empty() || list.contains(value);
        wanted(&self.collections, &entry.collection) && wanted(&self.languages, &entry.language)
    }
}

/// Keeps the `k` best; equally good ones by their number.
fn keep_best(scores: &mut Vec<(usize, f32)>, k: usize) {
    let order =
        |a: &(usize, f32), b: &(usize, f32)| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0));
    if scores.len() > k {
        scores.select_nth_unstable_by(k, order);
        scores.truncate(k);
    }
}

/// The shard of each passage, and its position in it.
fn places(shards: &[Shard]) -> (Arc<[u32]>, Vec<u32>) {
    let all = || shards.iter().flat_map(|shard| &shard.entry.passages);
    let size = all().max().map_or(0, |&last| last as usize + 1);
    let mut shard_of = vec![NO_SHARD; size];
    let mut position_of = vec![0; size];
    for (number, shard) in shards.iter().enumerate() {
        for (at, &passage) in shard.entry.passages.iter().enumerate() {
            shard_of[passage as usize] = number as u32;
            position_of[passage as usize] = at as u32;
        }
    }
    (shard_of.into(), position_of)
}

/// Writes the words of the passages, and gives the name of their folder.
fn write_words(path: &Path, origin: &Origin, rows: &[Row<'_>]) -> Result<String, IndexError> {
    let hash = sha256_hex_parts([origin.corpus.as_bytes(), lexical::TERMS.as_bytes()]);
    let name = format!("{WORDS}{hash}");
    let folder = path.join(&name);
    // It may be there and damaged: it is made anew in any case, and costs little.
    remove_folder(&folder)?;
    let temporary = temporary_beside(&path.join("words"))?;
    florilegium_files::create_dir(&temporary)?;
    lexical::write(&temporary, rows.iter().map(|row| (row.passage, row.text)))?;
    persist(&temporary, &folder)?;
    Ok(name)
}

fn remove_folder(path: &Path) -> Result<(), FileError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(FileError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// What is wrong with a vector that would poison the index or the search.
fn problem(vector: &[f32], dimension: usize) -> Option<String> {
    if vector.len() != dimension {
        Some(format!("{} numbers, the index has {dimension}", vector.len()))
    } else if !vector.iter().all(|x| x.is_finite()) {
        Some("it holds a number that is not finite".into())
    } else {
        None
    }
}

/// Removes files that no manifest names any more. Only names that this crate gives are touched.
fn sweep(path: &Path, manifest: &Manifest) {
    let mut named: HashSet<&str> = manifest.shards.iter().map(|s| s.file.as_str()).collect();
    named.insert(&manifest.words);
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let hash = name.strip_prefix(WORDS).unwrap_or(&name);
        let is_ours = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_ours && !named.contains(name.as_ref()) {
            let path: PathBuf = entry.path();
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DENSE: Ranking = Ranking { fusion: Fusion::Dense, lexical_weight: 0.0, pool: 1 };

    fn origin(dimension: usize) -> Origin {
        Origin { corpus: "c".into(), model: "m".into(), dimension }
    }

    fn unit(mut vector: Vec<f32>) -> Vec<f32> {
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
        vector.iter_mut().for_each(|x| *x /= norm);
        vector
    }

    const TEXTS: [&str; 4] = ["Le phare s’éteint.", "Ο φάρος ανάβει", "The lighthouse", ""];

    fn rows(vectors: &[Vec<f32>]) -> Vec<Row<'_>> {
        let place = |at: usize| (["a", "b"][at % 2], ["fr", "el", "en"][at % 3]);
        vectors
            .iter()
            .enumerate()
            .map(|(passage, vector)| Row {
                passage,
                collection: place(passage).0,
                language: place(passage).1,
                vector,
                text: TEXTS[passage % TEXTS.len()],
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_filtered_search_finds_what_a_filtered_scan_finds(
            vectors in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, 8), 1..60),
            question in prop::collection::vec(-1.0_f32..1.0, 8),
            k in 1_usize..12,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let vectors: Vec<_> = vectors.into_iter().map(unit).collect();
            let question = unit(question);
            let rows = rows(&vectors);
            let index = Index::build(folder.path(), origin(8), &rows).unwrap();
            let filter = Filter { collections: vec!["b".into()], languages: vec![] };
            let mut expected: Vec<f32> = rows.iter().filter(|row| row.collection == "b")
                .map(|row| row.vector.iter().zip(&question).map(|(a, b)| a * b).sum()).collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            expected.truncate(k);
            let asked = Question { vector: &question, text: "phare" };
            let found = index.search(asked, &filter, k, &DENSE).unwrap();
            prop_assert_eq!(found.len(), expected.len());
            for (hit, score) in found.iter().zip(expected) {
                prop_assert!((hit.dense - score).abs() < 1e-5);
                prop_assert_eq!(rows[hit.passage].collection, "b");
            }
        }

        /// A small pool leaves no passage with half of its scores: both sides' proposals are judged
        /// by both.
        #[test]
        fn every_hit_has_both_of_its_scores(
            vectors in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, 8), 4..40),
            pool in 1_usize..6,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let vectors: Vec<_> = vectors.into_iter().map(unit).collect();
            let index = Index::build(folder.path(), origin(8), &rows(&vectors)).unwrap();
            let asked = Question { vector: &vectors[0], text: "ΦΑΡΟΣ phare" };
            let all = Ranking { pool: 1000, ..Ranking::default() };
            let whole = index.search(asked, &Filter::default(), 1000, &all).unwrap();
            let some = Ranking { pool, ..Ranking::default() };
            for hit in index.search(asked, &Filter::default(), 2, &some).unwrap() {
                let same = whole.iter().find(|other| other.passage == hit.passage).unwrap();
                prop_assert!((hit.dense - same.dense).abs() < 1e-5);
                prop_assert!((hit.lexical - same.lexical).abs() < 1e-5);
                prop_assert!((hit.fused - same.fused).abs() < 1e-3);
            }
        }
    }

    fn sample(folder: &Path) -> Index {
        let vectors = vec![unit(vec![1.0, 0.0]), unit(vec![0.0, 1.0]), unit(vec![1.0, 1.0])];
        Index::build(folder, origin(2), &rows(&vectors)).unwrap()
    }

    fn first(index: &Index, text: &str, fusion: Fusion) -> Hit {
        let ranking = Ranking { fusion, ..Ranking::default() };
        let asked = Question { vector: &[1.0, 0.0], text };
        index.search(asked, &Filter::default(), 1, &ranking).unwrap()[0]
    }

    #[test]
    fn words_are_found_whatever_their_accents_case_final_sigma_and_elision() {
        let folder = tempfile::tempdir().unwrap();
        let index = sample(folder.path());
        for (text, passage) in [("S'ETEINT", 0), ("ΦΑΡΟΣ", 1), ("φαρος", 1), ("lighthouses", 2)]
        {
            let hit = first(&index, text, Fusion::Lexical);
            assert_eq!(hit.passage, passage, "{text}");
            assert!(hit.lexical > 0.0, "{text}");
        }
    }

    #[test]
    fn coverage_counts_the_rare_words_of_a_question() {
        let folder = tempfile::tempdir().unwrap();
        let index = sample(folder.path());
        let texts = ["Les phares s'allument", "Le chat", "", "le phare s'eteint"];
        let coverage = index.coverage("Le PHARE s’éteint ?", &texts).unwrap();
        assert_eq!(coverage[3], 1.0);
        assert!(
            coverage[0] > coverage[1] && coverage[1] > 0.0 && coverage[2] == 0.0,
            "{coverage:?}"
        );
        assert_eq!(index.coverage("?", &texts).unwrap(), [0.0; 4]);
    }

    #[test]
    fn a_question_without_a_word_is_answered_by_its_vector() {
        let folder = tempfile::tempdir().unwrap();
        let index = sample(folder.path());
        for text in ["", " ?!… ", "\u{200B}", "zzzz"] {
            for fusion in [Fusion::Standardised, Fusion::Reciprocal, Fusion::Dense] {
                assert_eq!(first(&index, text, fusion).passage, 0, "{text:?} {fusion:?}");
            }
        }
    }

    #[test]
    fn a_question_of_a_hundred_thousand_letters_is_searched() {
        let folder = tempfile::tempdir().unwrap();
        let index = sample(folder.path());
        let long: String = (0..20_000).map(|n| format!("w{n} ")).collect();
        assert!(long.len() > 100_000);
        assert_eq!(first(&index, &(long + "phare"), Fusion::Dense).passage, 0);
    }

    #[test]
    fn another_model_or_corpus_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        sample(folder.path());
        let other = Origin { model: "x".into(), ..origin(2) };
        let message = Index::open(folder.path(), &other).unwrap_err().to_string();
        assert!(message.contains("another embedding model"), "{message}");
        let other = Origin { corpus: "x".into(), ..origin(2) };
        let message = Index::open(folder.path(), &other).unwrap_err().to_string();
        assert!(message.contains("set of passages"), "{message}");
    }

    #[test]
    fn a_truncated_or_altered_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        sample(folder.path());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let inner = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
                files.extend(inner.filter(|path| {
                    // tantivy's lock files are empty, and hold nothing.
                    std::fs::metadata(path).unwrap().len() > 0
                }));
            } else {
                files.push(path);
            }
        }
        assert!(files.len() > 5);
        // Not checked: what tantivy keeps for its own housekeeping.
        files.retain(|path| !path.ends_with(".managed.json"));
        for path in files {
            let whole = std::fs::read(&path).unwrap();
            // Two bytes: the last of a JSON file is a line's end, which says nothing.
            std::fs::write(&path, &whole[..whole.len() - 2]).unwrap();
            assert!(Index::open(folder.path(), &origin(2)).is_err(), "{}", path.display());
            std::fs::write(&path, whole).unwrap();
        }
        assert_eq!(Index::open(folder.path(), &origin(2)).unwrap().len(), 3);
    }

    #[test]
    fn an_index_of_an_older_version_is_refused_and_not_misread() {
        let folder = tempfile::tempdir().unwrap();
        let fixture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/fixtures/index/manifest-v1");
        std::fs::copy(fixture, folder.path().join(MANIFEST)).unwrap();
        let message = Index::open(folder.path(), &origin(2)).unwrap_err().to_string();
        assert!(message.contains("version 1"), "{message}");
    }

    #[test]
    fn a_vector_that_is_not_a_number_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = vec![vec![f32::NAN, 0.0]];
        let message =
            Index::build(folder.path(), origin(2), &rows(&vectors)).unwrap_err().to_string();
        assert!(message.contains("passage 0") && message.contains("not finite"), "{message}");
        let index = sample(folder.path());
        let asked = Question { vector: &[f32::NAN, 0.0], text: "phare" };
        let refused = index.search(asked, &Filter::default(), 1, &Ranking::default());
        assert!(refused.unwrap_err().to_string().contains("question"));
        let asked = Question { vector: &[1.0], text: "phare" };
        assert!(index.search(asked, &Filter::default(), 1, &Ranking::default()).is_err());
    }

    #[test]
    fn a_new_index_sweeps_the_files_of_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        sample(folder.path());
        let vectors = vec![unit(vec![0.3, 0.7])];
        let other = Origin { corpus: "other".into(), ..origin(2) };
        Index::build(folder.path(), other, &rows(&vectors)).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
