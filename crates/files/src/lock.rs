//! One writer at a time: an advisory lock on a file, released by the kernel when its owner dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::{FileError, create_dir};

/// A lock held until it is dropped, or until the process ends however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("{} is held by process {owner}; wait for it to end, or stop it", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the owner wrote: its process id.
        owner: String,
    },
    /// The lock file itself could not be made.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Lock {
    /// Takes the lock at `path` (created when missing), or says who holds it.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        if let Some(folder) = path.parent() {
            create_dir(folder)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| FileError::io("open the lock", path, e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                let owner = owner.trim().to_owned();
                return Err(LockError::Held { path: path.to_owned(), owner });
            }
            Err(TryLockError::Error(e)) => return Err(FileError::io("lock", path, e).into()),
        }
        let noted = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(|e| FileError::io("write the lock", path, e))?;
        Ok(Lock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_refused_and_told_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Lock::take(&path).unwrap();
        let message = Lock::take(&path).unwrap_err().to_string();
        assert!(message.contains(&std::process::id().to_string()), "{message}");
        drop(held);
        Lock::take(&path).unwrap();
    }
}
