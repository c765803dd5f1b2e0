//! Vectors that were computed before, by the hash of what was embedded: only new texts are embedded.

use std::path::{Path, PathBuf};

use florilegium_files::record::Format;
use florilegium_files::{FileError, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;
use crate::store::load_if_whole;

const FORMAT: Format = Format { magic: *b"FLORVECT", version: 2 };
/// All vectors in one file.
const FIRST: Format = Format { magic: *b"FLORVECT", version: 1 };

/// The vectors of one embedding model.
#[derive(Debug)]
pub struct Vectors {
    ledger: Ledger<Vec<f32>>,
    /// The file of the first version, while it is there.
    first: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct First {
    model: String,
    keys: Vec<String>,
    dimension: u64,
    numbers: Vec<f32>,
}

impl Vectors {
    /// Opens the vectors of `model` kept in the folder `path`. None are there at first; a damaged
    /// file is reported in the log and its vectors are computed again.
    pub fn open(path: &Path, model: &str) -> Result<Self, FileError> {
        let mut ledger = Ledger::open(path, FORMAT, model)?;
        let first = Some(path.join(sha256_hex(model.as_bytes()))).filter(|path| path.is_file());
        if let Some(path) = &first
            && let Some(stored) = load_if_whole::<First>(path, FIRST)?
            && stored.model == model
        {
            let size = usize::try_from(stored.dimension).unwrap_or(0).max(1);
            let vectors = stored.numbers.chunks_exact(size).map(<[f32]>::to_vec);
            stored.keys.into_iter().zip(vectors).for_each(|(key, vector)| ledger.put(key, vector));
        }
        Ok(Vectors { ledger, first })
    }

    /// The vector kept under `key`.
    pub fn get(&self, key: &str) -> Option<&[f32]> {
        self.ledger.get(key).map(Vec::as_slice)
    }

    /// Keeps a vector under `key`, in memory until [`Vectors::save`].
    pub fn put(&mut self, key: String, vector: Vec<f32>) {
        self.ledger.put(key, vector);
    }

    /// Writes what is new.
    pub fn save(&mut self) -> Result<(), FileError> {
        self.ledger.save()?;
        remove(&mut self.first)
    }

    /// Writes what is new, and puts all that was added in its place.
    pub fn fold(&mut self) -> Result<(), FileError> {
        self.ledger.fold()?;
        remove(&mut self.first)
    }

    /// Keeps only the vectors that `wanted` names; gives how many went. Written by [`Vectors::fold`].
    pub(crate) fn retain(&mut self, wanted: impl Fn(&str) -> bool) -> usize {
        self.ledger.retain(wanted)
    }
}

/// Removes the file of an older version, once what it held is written in the new one.
pub(crate) fn remove(first: &mut Option<PathBuf>) -> Result<(), FileError> {
    if let Some(path) = first.take() {
        std::fs::remove_file(&path).map_err(|error| FileError::io("remove", path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again_and_another_model_sees_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut vectors = Vectors::open(folder.path(), "one").unwrap();
        vectors.put("b".into(), vec![1.0, 2.0]);
        vectors.put("a".into(), vec![3.0, 4.0]);
        vectors.save().unwrap();
        let vectors = Vectors::open(folder.path(), "one").unwrap();
        assert_eq!(vectors.get("a"), Some([3.0, 4.0].as_slice()));
        assert_eq!(Vectors::open(folder.path(), "other").unwrap().get("a"), None);
    }

    #[test]
    fn vectors_of_the_first_version_are_read_and_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join(sha256_hex(b"one"));
        let keys = vec!["a".to_owned(), "b".to_owned()];
        let stored =
            First { model: "one".into(), keys, dimension: 2, numbers: vec![1.0, 2.0, 3.0, 4.0] };
        florilegium_files::record::write(&first, FIRST, &stored).unwrap();
        let mut vectors = Vectors::open(folder.path(), "one").unwrap();
        assert_eq!(vectors.get("b"), Some([3.0, 4.0].as_slice()));
        vectors.fold().unwrap();
        assert!(!first.exists());
        assert_eq!(
            Vectors::open(folder.path(), "one").unwrap().get("a"),
            Some([1.0, 2.0].as_slice())
        );
    }
}
