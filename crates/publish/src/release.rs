//! Releases: complete folders, and a link that is switched from one to the next.
//!
//! ```text
//! public/
//!   handbook -> releases/handbook-1f3a09c2d4e5
//!   releases/
//!     handbook-1f3a09c2d4e5/   the current one
//!     handbook-77b0c1a29e3d/   the one before
//! ```
//!
//! A release is written in a folder beside its place and renamed, complete, into it; the link is
//! switched last. A run that is killed in between leaves the old link, and a folder that the next
//! run clears away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use florilegium_files::{FileError, create_dir, point, read, sha256_hex_parts, write_atomic};

use crate::error::PublishError;
use crate::site::check_id;

/// The file that shows that a folder is a release; no other folder is ever removed.
pub const MARKER: &str = ".florilegium-release";

/// How many releases of a site are kept, the current one included.
pub const RELEASES_KEPT: usize = 3;

/// Characters of the hash in the name of a release.
const HASH_LENGTH: usize = 12;

/// Publishes `files` as the site `site_id` and returns the folder of the release.
///
/// A release that is there already, with the same files, is not written again.
pub fn release(
    public: &Path,
    site_id: &str,
    files: &[(String, Vec<u8>)],
) -> Result<PathBuf, PublishError> {
    check_id("site id", site_id)?;
    files.iter().try_for_each(|(path, _)| check_path(path))?;
    let link = public.join(site_id);
    let replaced = current(&link, site_id)?;

    let hash = hash(files);
    let name = format!("{site_id}-{}", hash.get(..HASH_LENGTH).unwrap_or(&hash));
    let releases = public.join("releases");
    create_dir(&releases)?;
    let folder = releases.join(&name);
    let marker = format!("site {site_id}\nhash {hash}\n");
    if is_release(&folder, site_id) {
        mend(&folder, files)?;
    } else {
        if folder.symlink_metadata().is_ok() {
            return Err(PublishError::NotOurs { path: folder, what: "a file or folder" });
        }
        let temporary = releases.join(format!(".{name}.{}.tmp", std::process::id()));
        // Left by a killed run that had the same process number.
        if has_marker(&temporary, site_id) {
            remove(&temporary)?;
        }
        let written = write(&temporary, &marker, files).and_then(|()| {
            fs::rename(&temporary, &folder)
                .map_err(|error| FileError::io("move into place", &folder, error).into())
        });
        if written.is_err() {
            let _ = fs::remove_dir_all(&temporary);
        }
        written?;
    }
    let target = Path::new("releases").join(&name);
    if replaced.as_ref() != Some(&target) {
        // The time of the marker tells which releases are the latest.
        touch(&folder.join(MARKER))?;
        point(&link, &target)?;
    }
    clean(&releases, site_id, &name, replaced.as_deref())?;
    Ok(folder)
}

/// What the link of the site points at now; refuses anything that is not such a link.
fn current(link: &Path, site_id: &str) -> Result<Option<PathBuf>, PublishError> {
    let refuse = |what| Err(PublishError::NotOurs { path: link.to_owned(), what });
    let metadata = match link.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io("look at", link, error).into()),
    };
    if metadata.is_dir() {
        return refuse("a folder");
    }
    if !metadata.is_symlink() {
        return refuse("a file");
    }
    let target =
        fs::read_link(link).map_err(|error| FileError::io("read the link", link, error))?;
    let name = target.strip_prefix("releases").ok().and_then(Path::to_str);
    match name {
        Some(name) if is_name(name, site_id) => Ok(Some(target)),
        _ => refuse("a link to somewhere else"),
    }
}

/// Writes a complete release: the marker, so that what a killed run leaves can be cleared away; then
/// assets, so that no page is there before its style; then pages.
fn write(folder: &Path, marker: &str, files: &[(String, Vec<u8>)]) -> Result<(), PublishError> {
    write_atomic(&folder.join(MARKER), marker.as_bytes())?;
    let is_asset = |path: &str| path.starts_with("assets/");
    let assets = files.iter().filter(|(path, _)| is_asset(path));
    let pages = files.iter().filter(|(path, _)| !is_asset(path));
    for (path, bytes) in assets.chain(pages) {
        write_atomic(&folder.join(path), bytes)?;
    }
    Ok(())
}

/// Puts back what someone has altered in a release, and writes nothing else.
fn mend(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<(), PublishError> {
    for (path, bytes) in files {
        let path = folder.join(path);
        if read(&path).ok().as_ref() != Some(bytes) {
            write_atomic(&path, bytes)?;
        }
    }
    Ok(())
}

fn touch(marker: &Path) -> Result<(), PublishError> {
    fs::OpenOptions::new()
        .append(true)
        .open(marker)
        .and_then(|file| file.set_modified(SystemTime::now()))
        .map_err(|error| FileError::io("write", marker, error).into())
}

/// Removes all but the last releases of the site, and what killed runs have left.
fn clean(
    releases: &Path,
    site_id: &str,
    current: &str,
    replaced: Option<&Path>,
) -> Result<(), PublishError> {
    let mut old = Vec::new();
    let listed = fs::read_dir(releases).map_err(|error| FileError::io("list", releases, error))?;
    for entry in listed.flatten() {
        let folder = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if is_left_over(name, site_id) && has_marker(&folder, site_id) {
            remove(&folder)?;
        } else if name != current && is_release(&folder, site_id) {
            // The release that has just been replaced may still be being read: it goes last.
            let is_replaced = replaced.is_some_and(|path| path.ends_with(name));
            let time = folder.join(MARKER).metadata().and_then(|marker| marker.modified());
            old.push((is_replaced, time.unwrap_or(SystemTime::UNIX_EPOCH), folder));
        }
    }
    old.sort();
    old.reverse();
    old.iter().skip(RELEASES_KEPT - 1).try_for_each(|(_, _, folder)| remove(folder))
}

fn remove(folder: &Path) -> Result<(), PublishError> {
    fs::remove_dir_all(folder).map_err(|error| FileError::io("remove", folder, error).into())
}

/// True for the folder of a complete release of this site.
fn is_release(folder: &Path, site_id: &str) -> bool {
    let named = folder.file_name().and_then(|name| name.to_str());
    named.is_some_and(|name| is_name(name, site_id)) && has_marker(folder, site_id)
}

fn has_marker(folder: &Path, site_id: &str) -> bool {
    let real = folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let marker = fs::read_to_string(folder.join(MARKER)).unwrap_or_default();
    real && marker.lines().next() == Some(&format!("site {site_id}"))
}

/// True for `<site>-<hash>`. The length is checked, for one site's id may begin another's.
fn is_name(name: &str, site_id: &str) -> bool {
    name.strip_prefix(site_id).and_then(|rest| rest.strip_prefix('-')).is_some_and(|hash| {
        hash.len() == HASH_LENGTH && hash.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// True for the folder of a run that is no longer there.
fn is_left_over(name: &str, site_id: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    let Some((name, process)) = inner.and_then(|inner| inner.rsplit_once('.')) else {
        return false;
    };
    is_name(name, site_id)
        && process.parse::<u32>().is_ok_and(|process| {
            process != std::process::id() && !Path::new("/proc").join(process.to_string()).exists()
        })
}

fn check_path(path: &str) -> Result<(), PublishError> {
    let sound = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0', ':'])
    };
    if path.split('/').all(sound) {
        Ok(())
    } else {
        Err(PublishError::Path { path: path.to_owned() })
    }
}

/// The hash of all files, whatever their order.
fn hash(files: &[(String, Vec<u8>)]) -> String {
    let mut sorted: Vec<_> = files.iter().collect();
    sorted.sort();
    sha256_hex_parts(sorted.iter().flat_map(|(path, bytes)| [path.as_bytes(), bytes.as_slice()]))
}

#[cfg(test)]
mod tests;
