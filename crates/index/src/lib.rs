//! The FAISS index of passage vectors, and the manifest that ties it to what it was made from.
//!
//! Vectors have unit length and are compared by inner product, that is by cosine. There is one flat
//! index a collection and language, so that a filter is a choice of indexes: a rare collection still
//! gives its `k` results, and nothing is searched to be thrown away. Flat is exact; up to some tens
//! of thousands of passages it is also the quickest.
//!
//! On disk: the FAISS files, named by their hash, and one manifest, written last.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use faiss::index::flat::FlatIndex;
use faiss::index::io::{read_index, write_index};
use faiss::{ConcurrentIndex, Index as _, MetricType};
use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, persist, sha256_hex_file, temporary_beside};
use serde::{Deserialize, Serialize};

const FORMAT: Format = Format { magic: *b"FLORINDX", version: 1 };
const MANIFEST: &str = "manifest";

/// Why an index cannot be made, opened or searched.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The index was made from something else than what is at hand.
    #[error("the index in {} was made for another {what} ({found}, expected {expected}); run the pipeline again to make it anew", path.display())]
    Mismatch {
        /// Folder of the index.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// What the manifest says.
        found: String,
        /// What is at hand.
        expected: String,
    },
    /// A file of the index is not the one the manifest names.
    #[error("{}: {problem}; run the pipeline again to make the index anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A vector is not one of this index.
    #[error("vector of passage {row}: {problem}; embed it again")]
    Vector {
        /// Number of the passage.
        row: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// FAISS refused.
    #[error("FAISS: {0}")]
    Faiss(#[from] faiss::error::Error),
}

/// A passage's vector on its way into the index.
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
    /// FAISS's name of the index type.
    kind: String,
    shards: Vec<ShardEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShardEntry {
    collection: String,
    language: String,
    /// SHA-256 of the FAISS file, which is also its name.
    file: String,
    /// The passage at each position of the FAISS index.
    passages: Vec<u64>,
}

struct Shard {
    entry: ShardEntry,
    index: FlatIndex,
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
    pub score: f32,
}

/// An index that is open for searching, from any number of threads.
pub struct Index {
    origin: Origin,
    shards: Vec<Shard>,
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
            check(row.passage, row.vector, origin.dimension)?;
            groups.entry((row.collection, row.language)).or_default().push(row);
        }
        florilegium_files::create_dir(path)?;
        let mut shards = Vec::new();
        for ((collection, language), rows) in groups {
            let dimension = u32::try_from(origin.dimension).unwrap_or(u32::MAX);
            let mut index = FlatIndex::new(dimension, MetricType::InnerProduct)?;
            let vectors: Vec<f32> = rows.iter().flat_map(|row| row.vector).copied().collect();
            index.add(&vectors)?;
            let temporary = temporary_beside(&path.join("shard"))?;
            write_index(&index, temporary.to_string_lossy())?;
            let file = sha256_hex_file(&temporary)?;
            persist(&temporary, &path.join(&file))?;
            shards.push(ShardEntry {
                collection: collection.to_owned(),
                language: language.to_owned(),
                file,
                passages: rows.iter().map(|row| row.passage as u64).collect(),
            });
        }
        let manifest = Manifest { origin: origin.clone(), kind: "Flat".into(), shards };
        record::write(&path.join(MANIFEST), FORMAT, &manifest)?;
        sweep(path, &manifest);
        Self::open(path, &origin)
    }

    /// Opens the index in the folder `path`, if it was made from `expected`.
    pub fn open(path: &Path, expected: &Origin) -> Result<Self, IndexError> {
        let manifest: Manifest = record::load(&path.join(MANIFEST), FORMAT)?;
        let origin = &manifest.origin;
        let dimensions = (origin.dimension.to_string(), expected.dimension.to_string());
        for (what, found, expected) in [
            ("embedding model", &origin.model, &expected.model),
            ("dimension", &dimensions.0, &dimensions.1),
            ("set of passages", &origin.corpus, &expected.corpus),
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
            let damaged = |problem: String| IndexError::Damaged { path: file.clone(), problem };
            if sha256_hex_file(&file)? != entry.file {
                return Err(damaged("its content is not what its name says".into()));
            }
            let index = read_index(file.to_string_lossy())?.into_flat()?;
            if index.ntotal() != entry.passages.len() as u64
                || index.d() as usize != manifest.origin.dimension
            {
                return Err(damaged(
                    "it does not hold the passages that the manifest lists".into(),
                ));
            }
            shards.push(Shard { entry, index });
        }
        Ok(Index { origin: manifest.origin, shards })
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

    /// The `k` passages nearest to `vector` (unit length) among those the filter lets through, the
    /// nearest first; equally near ones in the order of the archive.
    pub fn search(
        &self,
        vector: &[f32],
        filter: &Filter,
        k: usize,
    ) -> Result<Vec<Hit>, IndexError> {
        check(usize::MAX, vector, self.origin.dimension)?;
        let wanted = |list: &[String], value: &String| list.is_empty() || list.contains(value);
        let mut hits = Vec::new();
        for shard in &self.shards {
            let entry = &shard.entry;
            if !wanted(&filter.collections, &entry.collection)
                || !wanted(&filter.languages, &entry.language)
            {
                continue;
            }
            let found = ConcurrentIndex::search(&shard.index, vector, k.min(entry.passages.len()))?;
            for (label, &score) in found.labels.iter().zip(&found.distances) {
                if let Some(&passage) = label.get().and_then(|at| entry.passages.get(at as usize)) {
                    hits.push(Hit { passage: passage as usize, score });
                }
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
        hits.truncate(k);
        Ok(hits)
    }
}

/// Refuses a vector that would poison the index.
fn check(row: usize, vector: &[f32], dimension: usize) -> Result<(), IndexError> {
    let problem = if vector.len() != dimension {
        format!("{} numbers, the index has {dimension}", vector.len())
    } else if !vector.iter().all(|x| x.is_finite()) {
        "it holds a number that is not finite".into()
    } else {
        return Ok(());
    };
    Err(IndexError::Vector { row, problem })
}

/// Removes FAISS files that no manifest names any more. Only names that are hashes are touched.
fn sweep(path: &Path, manifest: &Manifest) {
    let named: HashSet<&str> = manifest.shards.iter().map(|shard| shard.file.as_str()).collect();
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_hash = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash && !named.contains(name.as_ref()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin(dimension: usize) -> Origin {
        Origin { corpus: "c".into(), model: "m".into(), dimension }
    }

    fn unit(mut vector: Vec<f32>) -> Vec<f32> {
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
        vector.iter_mut().for_each(|x| *x /= norm);
        vector
    }

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
            let found = index.search(&question, &filter, k).unwrap();
            prop_assert_eq!(found.len(), expected.len());
            for (hit, score) in found.iter().zip(expected) {
                prop_assert!((hit.score - score).abs() < 1e-5);
                prop_assert_eq!(rows[hit.passage].collection, "b");
            }
        }
    }

    fn sample(folder: &Path) -> Index {
        let vectors = vec![unit(vec![1.0, 0.0]), unit(vec![0.0, 1.0]), unit(vec![1.0, 1.0])];
        Index::build(folder, origin(2), &rows(&vectors)).unwrap()
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
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
            assert!(Index::open(folder.path(), &origin(2)).is_err(), "{}", path.display());
            std::fs::write(&path, whole).unwrap();
        }
        assert_eq!(Index::open(folder.path(), &origin(2)).unwrap().len(), 3);
    }

    #[test]
    fn a_vector_that_is_not_a_number_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = vec![vec![f32::NAN, 0.0]];
        let message =
            Index::build(folder.path(), origin(2), &rows(&vectors)).unwrap_err().to_string();
        assert!(message.contains("passage 0") && message.contains("not finite"), "{message}");
    }

    #[test]
    fn a_new_index_sweeps_the_files_of_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        sample(folder.path());
        let vectors = vec![unit(vec![0.3, 0.7])];
        Index::build(folder.path(), origin(2), &rows(&vectors)).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
