//! The cache folder: what is in it, and which of it has been proven.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use florilegium_files::{FileError, sha256_hex_file, write_atomic};

use crate::Model;

/// The state of one model in a cache folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// There is no file of that name.
    Missing,
    /// The file is there and, as far as was looked, right.
    Present,
    /// There is something of that name, but not the model.
    Wrong(Fault),
}

/// What is wrong with a file that bears a model's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It has another size.
    #[error("size is {found} bytes, expected {expected}")]
    Size {
        /// The size that the list states, in bytes.
        expected: u64,
        /// The size found, in bytes.
        found: u64,
    },
    /// It has another hash.
    #[error("sha256 is {found}, expected {expected}")]
    Sha256 {
        /// The hash that the list states.
        expected: String,
        /// The hash found.
        found: String,
    },
    /// It is a folder or something else that is no file.
    #[error("is not a file")]
    NotAFile,
}

impl Model {
    /// The path that the model has, or will have, in a cache folder.
    pub fn path(&self, cache_dir: &Path) -> PathBuf {
        cache_dir.join(&self.file)
    }

    /// A quick look: is the file there, with the right size?
    pub fn status(&self, cache_dir: &Path) -> Status {
        self.look(&self.path(cache_dir))
    }

    /// A thorough look: the file is read and its SHA-256 compared. A good result is remembered.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn verify(&self, cache_dir: &Path) -> Result<Status, FileError> {
        let path = self.path(cache_dir);
        let status = self.verify_file(&path)?;
        if status == Status::Present {
            self.remember(&path);
        }
        Ok(status)
    }

    fn look(&self, path: &Path) -> Status {
        match fs::metadata(path) {
            Err(_) => Status::Missing,
            Ok(found) if !found.is_file() => Status::Wrong(Fault::NotAFile),
            Ok(found) if found.len() != self.size => {
                Status::Wrong(Fault::Size { expected: self.size, found: found.len() })
            }
            Ok(_) => Status::Present,
        }
    }

    /// Size, then hash, of any file.
    pub(crate) fn verify_file(&self, path: &Path) -> Result<Status, FileError> {
        match self.look(path) {
            Status::Present => {}
            other => return Ok(other),
        }
        let found = sha256_hex_file(path)?;
        Ok(if found == self.sha256 {
            Status::Present
        } else {
            Status::Wrong(Fault::Sha256 { expected: self.sha256.clone(), found })
        })
    }

    /// True when this very file has been proven before and has not changed since, going by its size
    /// and the time of its last change.
    pub(crate) fn is_remembered(&self, path: &Path) -> bool {
        match (self.stamp(path), fs::read_to_string(memo(path))) {
            (Some(stamp), Ok(noted)) => noted == stamp,
            _ => false,
        }
    }

    /// Notes that the file has been proven. A cache that cannot be written to only costs another
    /// reading the next time, so a failure is no error.
    pub(crate) fn remember(&self, path: &Path) {
        if self.is_remembered(path) {
            return;
        }
        if let Some(stamp) = self.stamp(path)
            && let Err(error) = write_atomic(&memo(path), stamp.as_bytes())
        {
            tracing::debug!("the verification of {} is not remembered: {error}", path.display());
        }
    }

    fn stamp(&self, path: &Path) -> Option<String> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        if found.len() != self.size {
            return None;
        }
        let changed = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(format!("{} {} {changed}\n", self.sha256, self.size))
    }
}

fn memo(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".verified");
    path.with_file_name(name)
}
