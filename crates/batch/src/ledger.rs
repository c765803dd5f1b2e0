//! What was computed before, each value by the hash of what it was made from: vectors, decisions.
//!
//! ```text
//! 0 … f    the values, by the first hexadecimal digit of their hash; a damaged file costs a sixteenth
//! new/     what was added since they were written, a file a call of save, named by its hash
//! ```
//!
//! A save writes what is new and nothing else, so that it costs the same on the first day and after
//! years, and so that several machines may add to one folder; the run that publishes folds it all
//! together. Equal contents are equal bytes, however they came together.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::store::load_if_whole;

/// Folder of what was added since the buckets were written.
const NEW: &str = "new";
const DIGITS: [char; 16] =
    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Values by the hash of what they were made from.
#[derive(Debug)]
pub(crate) struct Ledger<V> {
    folder: PathBuf,
    format: Format,
    /// What made the values; those of another maker are never read.
    maker: String,
    known: HashMap<String, V>,
    /// Known, and not saved yet.
    unsaved: Vec<String>,
    /// Files of what was added, to be removed once they are folded in.
    added: Vec<PathBuf>,
    /// The buckets that lack something.
    lacking: BTreeSet<char>,
}

#[derive(Serialize, Deserialize)]
struct Stored<V> {
    maker: String,
    /// Sorted by key.
    values: Vec<(String, V)>,
}

impl<V: Serialize + DeserializeOwned + Clone> Ledger<V> {
    /// Opens what `maker` made, kept below `path`. A damaged file is reported in the log, and what
    /// it held is computed again.
    pub fn open(path: &Path, format: Format, maker: &str) -> Result<Self, FileError> {
        let mut ledger = Ledger {
            folder: path.join(folder_name(maker)),
            format,
            maker: maker.to_owned(),
            known: HashMap::new(),
            unsaved: Vec::new(),
            added: Vec::new(),
            lacking: BTreeSet::new(),
        };
        for digit in DIGITS {
            let path = ledger.folder.join(digit.to_string());
            if let Some(stored) = load_if_whole::<Stored<V>>(&path, format)?
                && stored.maker == maker
            {
                ledger.known.extend(stored.values);
            } else if path.exists() {
                // Damaged: not to be taken for one that lacks nothing.
                ledger.lacking.insert(digit);
            }
        }
        ledger.open_added()?;
        Ok(ledger)
    }

    fn open_added(&mut self) -> Result<(), FileError> {
        let folder = self.folder.join(NEW);
        let Ok(listed) = fs::read_dir(&folder) else { return Ok(()) };
        let mut added: Vec<PathBuf> = listed
            .flatten()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| entry.path())
            .collect();
        added.sort_unstable();
        for path in &added {
            let stored = load_if_whole::<Stored<V>>(path, self.format)?;
            for (key, value) in
                stored.filter(|s| s.maker == self.maker).into_iter().flat_map(|s| s.values)
            {
                self.lacking.insert(bucket(&key));
                self.known.insert(key, value);
            }
        }
        self.added = added;
        Ok(())
    }

    /// The value kept under `key`.
    pub fn get(&self, key: &str) -> Option<&V> {
        self.known.get(key)
    }

    /// Keeps a value under `key`, in memory until [`Ledger::save`].
    pub fn put(&mut self, key: String, value: V) {
        self.unsaved.push(key.clone());
        self.known.insert(key, value);
    }

    /// Writes what is new, and nothing else.
    pub fn save(&mut self) -> Result<(), FileError> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        self.unsaved.sort_unstable();
        self.unsaved.dedup();
        let stored = self.stored(self.unsaved.iter());
        let bytes = record::encode(self.format, &stored)
            .map_err(|problem| FileError::Format { path: self.folder.clone(), problem })?;
        let path = self.folder.join(NEW).join(sha256_hex(&bytes));
        florilegium_files::write_atomic(&path, &bytes)?;
        for key in self.unsaved.drain(..) {
            self.lacking.insert(bucket(&key));
        }
        self.added.push(path);
        Ok(())
    }

    /// Folds all that was added into the buckets. Killed in between, it is done again: what was added
    /// goes last.
    pub fn fold(&mut self) -> Result<(), FileError> {
        self.save()?;
        let mut keys: Vec<&String> = self.known.keys().collect();
        keys.sort_unstable();
        for &digit in &self.lacking {
            let own = keys.iter().copied().filter(|key| bucket(key) == digit);
            record::write(&self.folder.join(digit.to_string()), self.format, &self.stored(own))?;
        }
        self.lacking.clear();
        for path in self.added.drain(..) {
            fs::remove_file(&path).or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(FileError::io("remove", &path, error)),
            })?;
        }
        Ok(())
    }

    /// Keeps only the values that `wanted` names; gives how many went.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) -> usize {
        let before = self.known.len();
        let lacking = &mut self.lacking;
        self.known.retain(|key, _| {
            let stays = wanted(key);
            if !stays {
                lacking.insert(bucket(key));
            }
            stays
        });
        self.unsaved.retain(|key| wanted(key));
        before - self.known.len()
    }

    fn stored<'a>(&self, keys: impl Iterator<Item = &'a String>) -> Stored<V> {
        let values = keys.filter_map(|key| Some((key.clone(), self.known.get(key)?.clone())));
        Stored { maker: self.maker.clone(), values: values.collect() }
    }
}

/// The folder of what a maker made.
pub(crate) fn folder_name(maker: &str) -> String {
    let mut name = sha256_hex(maker.as_bytes());
    name.truncate(16);
    name
}

/// The bucket of a key: the first digit of its hash, which may follow a prefix with a colon.
fn bucket(key: &str) -> char {
    let hash = key.rsplit(':').next().unwrap_or_default();
    hash.chars().next().filter(|c| DIGITS.contains(c)).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMAT: Format = Format { magic: *b"FLORTEST", version: 1 };

    fn open(folder: &Path) -> Ledger<u64> {
        Ledger::open(folder, FORMAT, "maker").unwrap()
    }

    fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    }

    #[test]
    fn another_maker_sees_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = open(folder.path());
        ledger.put("ab".into(), 1);
        ledger.fold().unwrap();
        assert_eq!(open(folder.path()).get("ab"), Some(&1));
        let other = Ledger::<u64>::open(folder.path(), FORMAT, "other").unwrap();
        assert_eq!(other.get("ab"), None);
    }

    #[test]
    fn two_writers_add_to_one_folder_and_a_third_folds_it() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut two) = (open(folder.path()), open(folder.path()));
        one.put("a1".into(), 1);
        two.put("b2".into(), 2);
        one.save().unwrap();
        two.save().unwrap();
        let mut third = open(folder.path());
        third.fold().unwrap();
        assert_eq!((third.get("a1"), third.get("b2")), (Some(&1), Some(&2)));
        assert_eq!(fs::read_dir(third.folder.join(NEW)).unwrap().count(), 0);
        assert_eq!(open(folder.path()).get("b2"), Some(&2));
    }

    #[test]
    fn a_flipped_byte_costs_one_bucket_which_is_then_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = open(folder.path());
        for (key, value) in [("a1", 1), ("a2", 2), ("query:b1", 3)] {
            ledger.put(key.into(), value);
        }
        ledger.fold().unwrap();
        let whole = tree(&ledger.folder);
        let path = ledger.folder.join("a");
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
        let mut ledger = open(folder.path());
        assert_eq!((ledger.get("a1"), ledger.get("query:b1")), (None, Some(&3)));
        ledger.put("a1".into(), 1);
        ledger.put("a2".into(), 2);
        ledger.fold().unwrap();
        assert_eq!(tree(&ledger.folder), whole);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

        #[test]
        fn however_values_came_together_the_bytes_are_the_same(
            values in prop::collection::btree_map("(query:)?[0-9a-f]{4}", any::<u64>(), 1..20),
            every in 1_usize..5,
            interrupted in any::<bool>(),
        ) {
            let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let mut at_once = open(one.path());
            for (key, value) in &values {
                at_once.put(key.clone(), *value);
            }
            at_once.fold().unwrap();
            let mut in_steps = open(other.path());
            for (at, (key, value)) in values.iter().rev().enumerate() {
                in_steps.put(key.clone(), *value);
                if at % every == 0 {
                    in_steps.save().unwrap();
                    if interrupted {
                        in_steps = open(other.path());
                    } else if at % 2 == 0 {
                        in_steps.fold().unwrap();
                    }
                }
            }
            in_steps.fold().unwrap();
            let names = |tree: Vec<(PathBuf, Vec<u8>)>| -> Vec<_> {
                tree.into_iter().map(|(path, bytes)| (path.file_name().unwrap().to_owned(), bytes)).collect()
            };
            prop_assert_eq!(names(tree(&at_once.folder)), names(tree(&in_steps.folder)));
        }
    }
}
