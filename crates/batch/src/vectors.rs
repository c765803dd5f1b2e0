//! Vectors that were computed before, by the hash of what was embedded: only new texts are embedded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use florilegium_files::FileError;
use florilegium_files::record::{self, Format};
use serde::{Deserialize, Serialize};

use crate::store::load_if_whole;

const FORMAT: Format = Format { magic: *b"FLORVECT", version: 1 };

/// The vectors of one embedding model.
#[derive(Debug)]
pub struct Vectors {
    path: PathBuf,
    model: String,
    known: HashMap<String, Vec<f32>>,
    changed: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    model: String,
    keys: Vec<String>,
    dimension: u64,
    numbers: Vec<f32>,
}

impl Vectors {
    /// Opens the vectors of `model` kept in the folder `path`. None are there at first; a damaged
    /// file is reported in the log and its vectors are computed again.
    pub fn open(path: &Path, model: &str) -> Result<Self, FileError> {
        let path = path.join(florilegium_files::sha256_hex(model.as_bytes()));
        let known = load_if_whole::<Stored>(&path, FORMAT)?
            .filter(|stored| stored.model == model)
            .map(|stored| {
                let size = usize::try_from(stored.dimension).unwrap_or(0).max(1);
                let vectors = stored.numbers.chunks_exact(size).map(<[f32]>::to_vec);
                stored.keys.into_iter().zip(vectors).collect()
            })
            .unwrap_or_default();
        Ok(Vectors { path, model: model.to_owned(), known, changed: false })
    }

    /// The vector kept under `key`.
    pub fn get(&self, key: &str) -> Option<&[f32]> {
        self.known.get(key).map(Vec::as_slice)
    }

    /// Keeps a vector under `key`, in memory until [`Vectors::save`].
    pub fn put(&mut self, key: String, vector: Vec<f32>) {
        self.known.insert(key, vector);
        self.changed = true;
    }

    /// Writes what is new.
    pub fn save(&mut self) -> Result<(), FileError> {
        if !self.changed {
            return Ok(());
        }
        // Sorted, so that equal contents give equal bytes.
        let mut keys: Vec<String> = self.known.keys().cloned().collect();
        keys.sort_unstable();
        let numbers: Vec<f32> =
            keys.iter().flat_map(|key| self.known[key].iter().copied()).collect();
        let dimension = numbers.len().checked_div(keys.len()).unwrap_or(0) as u64;
        let model = self.model.clone();
        record::write(&self.path, FORMAT, &Stored { model, keys, dimension, numbers })?;
        self.changed = false;
        Ok(())
    }
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
    fn a_damaged_file_costs_only_work() {
        let folder = tempfile::tempdir().unwrap();
        let mut vectors = Vectors::open(folder.path(), "one").unwrap();
        vectors.put("a".into(), vec![1.0]);
        vectors.save().unwrap();
        let path = vectors.path.clone();
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Vectors::open(folder.path(), "one").unwrap().get("a"), None);
    }
}
