//! One writer at a time: an advisory lock on a file, released by the kernel when its owner dies.
//!
//! The owner writes who it is into the file and empties it when it is done. An owner's name in a file
//! that can be locked therefore means that it was killed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::{FileError, create_dir};

/// A lock held until it is dropped, or until the process ends however it ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    stale: Option<Owner>,
}

/// Who holds a lock, or held it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Number of the process.
    pub process: u32,
    /// Name of its machine.
    pub host: String,
}

impl Owner {
    /// This process.
    pub fn this() -> Self {
        Owner { process: std::process::id(), host: host() }
    }

    fn read(text: &str) -> Option<Self> {
        let (process, host) = text.trim().split_once(" on ")?;
        Some(Owner { process: process.parse().ok()?, host: host.to_owned() })
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.process, self.host)
    }
}

/// Name of this machine.
pub fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    if name.is_empty() { "an unnamed host".to_owned() } else { name }
}

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("{} is held by process {owner}; wait for it to end, or stop it", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the owner wrote: its process id and host.
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
        let locked = file.try_lock();
        let mut owner = String::new();
        // Whatever the file holds: it is only a name. A damaged one is none.
        let _ = Read::by_ref(&mut file).take(1024).read_to_string(&mut owner);
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let owner = owner.trim().to_owned();
                return Err(LockError::Held { path: path.to_owned(), owner });
            }
            Err(TryLockError::Error(e)) => return Err(FileError::io("lock", path, e).into()),
        }
        let noted = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", Owner::this()));
        noted.map_err(|e| FileError::io("write the lock", path, e))?;
        Ok(Lock { file, stale: Owner::read(&owner) })
    }

    /// The owner before this one, if it died without giving the lock back.
    pub fn stale(&self) -> Option<&Owner> {
        self.stale.as_ref()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Should this fail, the next owner is told of a killed run that was none.
        let _ = self.file.set_len(0);
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
        assert_eq!(held.stale(), None);
        let message = Lock::take(&path).unwrap_err().to_string();
        assert!(message.contains(&std::process::id().to_string()), "{message}");
        assert!(message.contains(&host()), "{message}");
        drop(held);
        assert_eq!(Lock::take(&path).unwrap().stale(), None, "it was given back");
    }

    #[test]
    fn the_lock_of_a_killed_owner_is_taken_and_its_owner_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "4711 on elsewhere\n").unwrap();
        let lock = Lock::take(&path).unwrap();
        assert_eq!(lock.stale(), Some(&Owner { process: 4711, host: "elsewhere".into() }));
        drop(lock);
        for odd in [b"\xff\xfe garbage".as_slice(), b"x on y", b"12"] {
            fs::write(&path, odd).unwrap();
            assert_eq!(Lock::take(&path).unwrap().stale(), None);
        }
    }
}
