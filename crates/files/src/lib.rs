//! The one module that writes files.
//!
//! Everything the project keeps goes through here, so that a killed run, a full disk or a second
//! writer never leaves a half-written file under a final name: bytes go to a temporary file in the
//! same folder, are synced, and are renamed over the final name; the folder is synced last.
//!
//! [`record`] adds a framed, checksummed, compressed format on top; every binary file of the
//! project is one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

pub mod lock;
pub mod record;

/// Why a file could not be written or read. Names the path and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), remedy(source))]
    Io {
        /// What was being done, as a verb phrase ("write", "create the folder").
        action: &'static str,
        /// The file or folder concerned.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not one of this format, or not one of a known version.
    #[error("{}: {problem}; remove the file and run again: it is made anew", path.display())]
    Format {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// What an operator can do about the commonest refusals.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a folder this user may write to"
        }
        io::ErrorKind::StorageFull => "; free some space on this disk",
        io::ErrorKind::NotFound => "; check that the path is right",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "; a part of this path is a file: choose another path"
        }
        _ => "",
    }
}

impl FileError {
    /// Wraps an [`io::Error`] with what was being done to which path.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        FileError::Io { action, path: path.into(), source }
    }

    /// True when the reason is that the file is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Creates a folder and its parents.
pub fn create_dir(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(|e| FileError::io("create the folder", path, e))
}

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(|e| FileError::io("read", path, e))
}

/// Writes `bytes` to `path` so that `path` holds either what it held before or all of `bytes`.
///
/// The folder is created when missing. The temporary file is removed on failure.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let temporary = temporary_beside(path)?;
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        file.write_all(bytes)
    })();
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(FileError::io("write", path, error));
    }
    persist(&temporary, path)
}

/// Writes a file into a folder that nobody reads yet: not synced by itself, for [`sync_all_in`] does that
/// for all of them before the folder gets its name. The parent folder must exist.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(bytes));
    written.map_err(|e| FileError::io("write", path, e))
}

/// Gives `to` the content of `from`, which must never be changed in place: a hard link, or a copy where
/// the file system allows none. The copy, too, is only synced by [`sync_all_in`].
pub fn link_or_copy(from: &Path, to: &Path) -> Result<(), FileError> {
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    write_unsynced(to, &read(from)?)
}

/// Gives `to` the content of `from` in one step, whatever was there.
pub fn replace_with(from: &Path, to: &Path) -> Result<(), FileError> {
    let temporary = temporary_beside(to)?;
    link_or_copy(from, &temporary)?;
    fs::rename(&temporary, to).map_err(|e| {
        let _ = fs::remove_file(&temporary);
        FileError::io("write", to, e)
    })?;
    // Two names of one file: such a rename does nothing and leaves the first.
    let _ = fs::remove_file(&temporary);
    Ok(())
}

/// Makes everything durable that was written to the file system of `folder`.
pub fn sync_all_in(folder: &Path) -> Result<(), FileError> {
    let synced =
        File::open(folder).and_then(|file| rustix::fs::syncfs(&file).map_err(io::Error::from));
    synced.map_err(|e| FileError::io("write", folder, e))
}

/// Gives a complete folder its final name, and makes that durable.
pub fn name_folder(temporary: &Path, path: &Path) -> Result<(), FileError> {
    fs::rename(temporary, path).map_err(|e| FileError::io("move into place", path, e))?;
    sync_parent(path);
    Ok(())
}

/// Gives a finished temporary file its final name: sync, rename, sync of the folder.
///
/// Both must be on one file system; the temporary file is removed on failure.
pub fn persist(temporary: &Path, path: &Path) -> Result<(), FileError> {
    let moved = File::open(temporary)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(temporary, path));
    if let Err(error) = moved {
        let _ = fs::remove_file(temporary);
        return Err(FileError::io("write", path, error));
    }
    sync_parent(path);
    Ok(())
}

/// A name for a temporary file in the folder of `path`, unique in this process and among processes.
pub fn temporary_beside(path: &Path) -> Result<PathBuf, FileError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = parent(path);
    create_dir(folder)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A file name may have 255 bytes: a long one is cut, at a character.
    let stem: String = name.chars().take(40).collect();
    Ok(folder.join(format!(".{stem}.{}@{}.{number}.tmp", std::process::id(), lock::host())))
}

/// Removes the temporary files below `folder` that killed processes of this machine have left; gives
/// how many. What cannot be read or removed stays.
pub fn sweep(folder: &Path) -> usize {
    let mut swept = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            swept += sweep(&entry.path());
        } else if entry.file_name().to_str().is_some_and(is_left_over) {
            swept += usize::from(fs::remove_file(entry.path()).is_ok());
        }
    }
    swept
}

/// Whether a file name is that of a temporary file whose process on this machine is gone.
fn is_left_over(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    let owner = inner.and_then(|inner| inner.rsplit_once('.')).map(|(rest, _)| rest);
    // A host may have dots in its name; a number has none.
    let Some((before, host)) = owner.and_then(|owner| owner.rsplit_once('@')) else { return false };
    let process = before.rsplit('.').next().and_then(|process| process.parse::<u32>().ok());
    host == lock::host()
        && process.is_some_and(|process| {
            process != std::process::id() && !Path::new("/proc").join(process.to_string()).exists()
        })
}

/// Points the symbolic link `link` at `target` in one step; readers see the old or the new one.
pub fn point(link: &Path, target: &Path) -> Result<(), FileError> {
    let temporary = temporary_beside(link)?;
    std::os::unix::fs::symlink(target, &temporary)
        .and_then(|()| fs::rename(&temporary, link))
        .map_err(|e| {
            let _ = fs::remove_file(&temporary);
            FileError::io("replace the link", link, e)
        })?;
    sync_parent(link);
    Ok(())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes a rename in the folder of `path` durable. Some file systems refuse to sync a folder; the
/// rename itself has happened, so that is no failure.
fn sync_parent(path: &Path) {
    if let Ok(folder) = File::open(parent(path)) {
        let _ = folder.sync_all();
    }
}

/// SHA-256 of `bytes`, in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of several parts. Each is preceded by its length, so that moving a byte from one part to
/// the next changes the hash.
pub fn sha256_hex_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

/// SHA-256 of a file, read in pieces.
pub fn sha256_hex_file(path: &Path) -> Result<String, FileError> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path).map_err(|e| FileError::io("read", path, e))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FileError::io("read", path, error)),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_is_the_standard_one() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn parts_do_not_run_together() {
        let one = sha256_hex_parts([b"ab".as_slice(), b"c"]);
        let other = sha256_hex_parts([b"a".as_slice(), b"bc"]);
        assert_ne!(one, other);
    }

    #[test]
    fn write_atomic_replaces_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/file");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn a_folder_that_is_a_file_is_named_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        let message = write_atomic(&file.join("x"), b"").unwrap_err().to_string();
        assert!(message.contains("file") && message.contains("choose another path"), "{message}");
    }

    #[test]
    fn only_what_dead_processes_of_this_machine_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("deep");
        create_dir(&deep).unwrap();
        let here = lock::host();
        let own = temporary_beside(&deep.join("mine")).unwrap();
        fs::write(&own, b"").unwrap();
        let dead = deep.join(format!(".answer.4194999@{here}.0.tmp"));
        fs::write(&dead, b"").unwrap();
        let others = [".answer.4194999@elsewhere-x.0.tmp", ".x.tmp", "answer", ".4194999.tmp"];
        others.iter().for_each(|name| fs::write(deep.join(name), b"").unwrap());
        assert_eq!(sweep(folder.path()), 1);
        assert!(own.exists() && !dead.exists());
        assert!(others.iter().all(|name| deep.join(name).exists()));
    }

    #[test]
    fn a_linked_file_is_replaced_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        write_unsynced(&path("old"), b"old").unwrap();
        assert!(write_unsynced(&path("old"), b"new").is_err(), "never over another file");
        link_or_copy(&path("old"), &path("link")).unwrap();
        write_unsynced(&path("new"), b"new").unwrap();
        replace_with(&path("new"), &path("link")).unwrap();
        assert_eq!(fs::read(path("old")).unwrap(), b"old");
        assert_eq!(fs::read(path("link")).unwrap(), b"new");
        replace_with(&path("new"), &path("link")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside");
        sync_all_in(folder.path()).unwrap();
    }

    #[test]
    fn point_switches_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("current");
        point(&link, Path::new("a")).unwrap();
        point(&link, Path::new("b")).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("b"));
    }
}
