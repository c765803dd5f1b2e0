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
//! run clears away. Files that have not changed are hard links to those of the release before.
//!
//! A page that was fetched just before the switch asks for its style just after it: a release also
//! carries the assets and the index of the one that it replaces.
//!
//! Hosts that cannot follow links get the site [in place](Layout::InPlace): the release is made in
//! the same way, then its files are put over those of the site one by one, assets first, then pages,
//! then the root of the index, and the list of sums last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use florilegium_edge::ROOT;
use florilegium_files::{
    FileError, create_dir, link_or_copy, name_folder, point, read, replace_with, sha256_hex,
    sha256_hex_parts, sync_all_in, write_atomic, write_unsynced,
};
use rayon::prelude::*;

use crate::error::PublishError;
use crate::hosting::is_immutable;
use crate::site::check_id;

mod packing;

/// The file that shows that a folder is a release; no other folder is ever removed.
pub const MARKER: &str = ".florilegium-release";

/// The sums of all files, as `sha256sum` writes them; the last file that is written.
pub const SUMS: &str = "SHA256SUMS";

/// How many releases of a site are kept, the current one included, unless told otherwise.
pub const RELEASES_KEPT: usize = 3;

/// Characters of the hash in the name of a release.
const HASH_LENGTH: usize = 12;

/// Where readers find the site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// A symbolic link to the current release, switched in one step.
    #[default]
    Link,
    /// A folder whose files are replaced one by one, for hosts that cannot follow links.
    InPlace,
}

/// How a site is released.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Where readers find it.
    pub layout: Layout,
    /// Releases kept, the current one included; at least one.
    pub keep: usize,
    /// Whether packed forms are written beside the files.
    pub packed: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { layout: Layout::Link, keep: RELEASES_KEPT, packed: true }
    }
}

/// A release that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// Its name: the site's id and a hash of its files.
    pub name: String,
    /// When it was published last.
    pub published: SystemTime,
    /// Whether readers see it.
    pub current: bool,
}

/// Called between any two steps of a release; a test stops there, as a kill would.
type Watch<'a> = &'a (dyn Fn(&str) -> Result<(), PublishError> + Sync);

/// Files as pairs of path and content.
type Files = [(String, Vec<u8>)];

/// Publishes `files` as the site `site_id` and returns the folder of the release.
///
/// A release that is there already, with the same files, is not written again.
pub fn release(
    public: &Path,
    site_id: &str,
    files: &Files,
    settings: &Settings,
) -> Result<PathBuf, PublishError> {
    let released = release_watched(public, site_id, files, settings, &|_| Ok(()));
    if released.is_err() {
        // Only what this process has begun; what a killed one left is cleared by the next release.
        let _ = clear(&public.join("releases"), site_id, |process| process == std::process::id());
    }
    released
}

fn release_watched(
    public: &Path,
    site_id: &str,
    files: &Files,
    settings: &Settings,
    watch: Watch<'_>,
) -> Result<PathBuf, PublishError> {
    check_id("site id", site_id)?;
    files.iter().try_for_each(|(path, _)| check_path(path))?;
    let site = public.join(site_id);
    let replaced = current(public, site_id, settings.layout)?;

    let hash = hash(files, settings);
    let name = format!("{site_id}-{}", hash.get(..HASH_LENGTH).unwrap_or(&hash));
    let releases = public.join("releases");
    create_dir(&releases)?;
    let folder = releases.join(&name);
    let before = replaced.as_ref().map(|replaced| releases.join(replaced));
    // The release that is current may be published again, after someone has altered it.
    let before = before.filter(|before| *before != folder && is_release(before, site_id));
    let before = Before::read(before.as_deref());
    if is_release(&folder, site_id) {
        mend(&folder, files, settings, &before, watch)?;
    } else {
        if folder.symlink_metadata().is_ok() {
            return Err(PublishError::NotOurs { path: folder, what: "a file or folder" });
        }
        clear(&releases, site_id, |process| process == std::process::id())?;
        let temporary = releases.join(format!(".{name}.{}.tmp", std::process::id()));
        let marker = format!("site {site_id}\nhash {hash}\n");
        write(&temporary, &marker, files, settings, &before, watch)?;
        watch("written")?;
        sync_all_in(&temporary)?;
        name_folder(&temporary, &folder)?;
    }
    watch("named")?;
    let switched = replaced.as_deref() != Some(&name);
    if switched {
        // The time of the marker tells which releases are the latest.
        touch(&folder.join(MARKER))?;
    }
    match settings.layout {
        Layout::Link if switched => point(&site, &Path::new("releases").join(&name))?,
        Layout::Link => {}
        Layout::InPlace => put_in_place(&folder, &site, site_id, &name, watch)?,
    }
    watch("switched")?;
    clean(&releases, site_id, &name, replaced.as_deref(), settings.keep, watch)?;
    Ok(folder)
}

/// The releases of a site that are kept, the latest first.
pub fn releases(
    public: &Path,
    site_id: &str,
    layout: Layout,
) -> Result<Vec<Released>, PublishError> {
    check_id("site id", site_id)?;
    let current = current(public, site_id, layout)?;
    let folder = public.join("releases");
    let mut found = Vec::new();
    let listed = match fs::read_dir(&folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(FileError::io("list", folder, error).into()),
    };
    for entry in listed.flatten() {
        let path = entry.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if is_release(&path, site_id) {
            let published = published(&path);
            let current = current.as_deref() == Some(name);
            found.push(Released { name: name.to_owned(), published, current });
        }
    }
    found.sort_by(|a, b| b.published.cmp(&a.published).then(b.name.cmp(&a.name)));
    Ok(found)
}

/// Goes back to the release `to`, or to the one published before the current one; returns its name.
pub fn rollback(
    public: &Path,
    site_id: &str,
    layout: Layout,
    to: Option<&str>,
) -> Result<String, PublishError> {
    let known = releases(public, site_id, layout)?;
    let missing = |problem: String| PublishError::NoRelease { problem };
    let target = match to {
        Some(name) => known
            .iter()
            .find(|release| release.name == name)
            .ok_or_else(|| missing(format!("there is no release {name} of {site_id}")))?,
        None => {
            let at = known.iter().position(|release| release.current).ok_or_else(|| {
                missing(format!("{site_id} is not published in {}", public.display()))
            })?;
            known.get(at + 1).ok_or_else(|| {
                missing(format!("there is no release of {site_id} before the current one"))
            })?
        }
    };
    let site = public.join(site_id);
    match layout {
        Layout::Link => point(&site, &Path::new("releases").join(&target.name))?,
        Layout::InPlace => {
            let folder = public.join("releases").join(&target.name);
            put_in_place(&folder, &site, site_id, &target.name, &|_| Ok(()))?;
        }
    }
    Ok(target.name.clone())
}

/// The name of the release that readers see; refuses anything in its place that is not ours.
fn current(public: &Path, site_id: &str, layout: Layout) -> Result<Option<String>, PublishError> {
    let site = public.join(site_id);
    let refuse = |what| Err(PublishError::NotOurs { path: site.clone(), what });
    let metadata = match site.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io("look at", site, error).into()),
    };
    if metadata.is_symlink() {
        let target =
            fs::read_link(&site).map_err(|error| FileError::io("read the link", &site, error))?;
        let name = target.strip_prefix("releases").ok().and_then(Path::to_str);
        match (name.filter(|name| is_name(name, site_id)), layout) {
            (Some(name), Layout::Link) => return Ok(Some(name.to_owned())),
            (Some(_), Layout::InPlace) => return refuse("a link to a release, not a folder"),
            (None, Layout::Link) => return refuse("a link to somewhere else"),
            // The operator's own link to where the host wants the site.
            (None, Layout::InPlace) => {}
        }
    } else if metadata.is_dir() && layout == Layout::Link {
        return refuse("a folder");
    } else if !metadata.is_dir() {
        return refuse("a file");
    }
    let marker = fs::read_to_string(site.join(MARKER)).unwrap_or_default();
    let mut lines = marker.lines();
    if lines.next() == Some(&format!("site {site_id}")) {
        return Ok(lines.find_map(|line| line.strip_prefix("release ")).map(str::to_owned));
    }
    let listed = fs::read_dir(&site).map_err(|error| FileError::io("list", &site, error))?;
    if listed.flatten().next().is_some() {
        return refuse("a folder with files that no release has put there");
    }
    Ok(None)
}

/// The release that is being replaced: what may be taken over from it.
struct Before<'a> {
    folder: Option<&'a Path>,
    /// Sums by path.
    sums: BTreeMap<String, String>,
    /// Whether its packed files were made in the way of this program.
    same_packing: bool,
}

impl<'a> Before<'a> {
    fn read(folder: Option<&'a Path>) -> Self {
        let (sums, method) = folder.map(|folder| read_sums(&folder.join(SUMS))).unwrap_or_default();
        Before { folder, sums, same_packing: method.as_deref() == Some(packing::METHOD) }
    }

    /// The file at `path`, if it has exactly these bytes. The file is read: a sum would not tell that
    /// someone has altered it.
    fn same(&self, path: &str, bytes: &[u8]) -> Option<PathBuf> {
        let own = self.folder?.join(path);
        let same = own.metadata().is_ok_and(|metadata| metadata.len() == bytes.len() as u64)
            && fs::read(&own).is_ok_and(|known| known == bytes);
        same.then_some(own)
    }

    /// A packed form, if it is as it was written.
    fn packed(&self, path: &str) -> Option<PathBuf> {
        let own = self.folder?.join(path);
        let sum = self.sums.get(path).filter(|_| self.same_packing)?;
        fs::read(&own).is_ok_and(|known| sha256_hex(&known) == *sum).then_some(own)
    }

    /// The assets and index files of its own, not those that it carried for the one before it.
    fn carried(&self) -> impl Iterator<Item = &str> {
        self.sums.keys().map(String::as_str).filter(|path| is_immutable(path))
    }
}

/// Sums by path, and how the packed files were made. A line `# carried PATH` is passed over.
fn read_sums(path: &Path) -> (BTreeMap<String, String>, Option<String>) {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut method = None;
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        if let Some(stated) = line.strip_prefix("# packed ") {
            method = Some(stated.to_owned());
        } else if let Some((sum, path)) = line.split_once("  ") {
            sums.insert(path.to_owned(), sum.to_owned());
        }
    }
    (sums, method)
}

/// What is written at one path: its bytes, and those of its packed forms, linked where they are known.
fn write_file(
    folder: &Path,
    (path, bytes): &(String, Vec<u8>),
    settings: &Settings,
    before: &Before<'_>,
) -> Result<Vec<(String, String)>, PublishError> {
    let target = folder.join(path);
    let known = before.same(path, bytes);
    match &known {
        Some(known) => link_or_copy(known, &target)?,
        None => write_unsynced(&target, bytes)?,
    }
    let mut sums = vec![(path.clone(), sha256_hex(bytes))];
    if !settings.packed || !packing::is_packed(path, bytes) {
        return Ok(sums);
    }
    let names = packing::ENDINGS.map(|ending| format!("{path}.{ending}"));
    let linked: Option<Vec<PathBuf>> = match known {
        Some(_) => names.iter().map(|name| before.packed(name)).collect(),
        None => None,
    };
    if let Some(linked) = linked {
        for (name, known) in names.iter().zip(&linked) {
            link_or_copy(known, &folder.join(name))?;
            sums.extend(before.sums.get(name).map(|sum| (name.clone(), sum.clone())));
        }
        return Ok(sums);
    }
    for (name, packed) in names.into_iter().zip(packing::pack(bytes)?) {
        write_unsynced(&folder.join(&name), &packed)?;
        let sum = sha256_hex(&packed);
        sums.push((name, sum));
    }
    Ok(sums)
}

/// Writes a complete release: the marker, so that what a killed run leaves can be cleared away; then
/// assets, so that no page is there before its style; then pages.
fn write(
    folder: &Path,
    marker: &str,
    files: &Files,
    settings: &Settings,
    before: &Before<'_>,
    watch: Watch<'_>,
) -> Result<(), PublishError> {
    write_atomic(&folder.join(MARKER), marker.as_bytes())?;
    watch("marked")?;
    let folders: BTreeSet<&Path> =
        files.iter().filter_map(|(path, _)| Path::new(path).parent()).collect();
    for parent in folders {
        create_dir(&folder.join(parent))?;
    }
    let mut sums: BTreeMap<String, String> = BTreeMap::new();
    for part in [Stage::Assets, Stage::Pages, Stage::Root] {
        let part: Vec<&(String, Vec<u8>)> =
            files.iter().filter(|(path, _)| Stage::of(path) == part).collect();
        let written: Vec<Vec<(String, String)>> = part
            .into_par_iter()
            .map(|file| {
                watch(&file.0)?;
                write_file(folder, file, settings, before)
            })
            .collect::<Result<_, _>>()?;
        sums.extend(written.into_iter().flatten());
    }
    let carried = carry(folder, before, &sums)?;
    watch("carried")?;
    write_atomic(&folder.join(SUMS), sums_text(&sums, &carried).as_bytes())?;
    Ok(())
}

fn sums_text(sums: &BTreeMap<String, String>, carried: &[String]) -> String {
    let mut text = format!("# packed {}\n", packing::METHOD);
    for path in carried {
        text += &format!("# carried {path}\n");
    }
    for (path, sum) in sums {
        text += &format!("{sum}  {path}\n");
    }
    text
}

/// Takes over what pages of the release before may still ask for.
fn carry(
    folder: &Path,
    before: &Before<'_>,
    own: &BTreeMap<String, String>,
) -> Result<Vec<String>, PublishError> {
    let Some(old) = before.folder else { return Ok(Vec::new()) };
    let mut carried = Vec::new();
    for path in before.carried().filter(|path| !own.contains_key(*path)) {
        let (from, to) = (old.join(path), folder.join(path));
        if !from.is_file() || check_path(path).is_err() || to.exists() {
            continue;
        }
        if let Some(parent) = to.parent() {
            create_dir(parent)?;
        }
        link_or_copy(&from, &to)?;
        carried.push(path.to_owned());
    }
    Ok(carried)
}

/// In which order files are replaced in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Nothing refers to them yet: their names carry hashes.
    Assets,
    /// They refer to assets.
    Pages,
    /// The root of the index refers to its files.
    Root,
}

impl Stage {
    fn of(path: &str) -> Self {
        if path == ROOT {
            Stage::Root
        } else if is_immutable(path) {
            Stage::Assets
        } else {
            Stage::Pages
        }
    }
}

/// Puts the files of a complete release over those of the site, and removes what the release before
/// had and this one has not. Each file is replaced in one step.
fn put_in_place(
    release: &Path,
    site: &Path,
    site_id: &str,
    name: &str,
    watch: Watch<'_>,
) -> Result<(), PublishError> {
    create_dir(site)?;
    let (old, _) = read_sums(&site.join(SUMS));
    let text = fs::read_to_string(release.join(SUMS)).unwrap_or_default();
    let (new, _) = read_sums(&release.join(SUMS));
    let carried: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# carried ")).collect();
    // Marked as ours before the first file, so that a killed run can be gone on with.
    if !site.join(MARKER).exists() {
        write_atomic(&site.join(MARKER), format!("site {site_id}\n").as_bytes())?;
    }
    let mut order: Vec<&str> =
        new.keys().map(String::as_str).chain(carried.iter().copied()).collect();
    order.sort_by_key(|path| (Stage::of(path), *path));
    for path in order {
        let (from, to) = (release.join(path), site.join(path));
        let bytes = read(&from)?;
        if fs::read(&to).is_ok_and(|known| known == bytes) {
            continue;
        }
        watch(path)?;
        if let Some(parent) = to.parent() {
            create_dir(parent)?;
        }
        replace_with(&from, &to)?;
    }
    sync_all_in(site)?;
    let marker = format!("site {site_id}\nrelease {name}\n");
    // What the sums list may be removed next time; what goes now stays listed until it is gone.
    for path in old.keys().filter(|path| !new.contains_key(*path) && !is_immutable(path)) {
        watch(path)?;
        if check_path(path).is_ok() {
            remove_file(&site.join(path))?;
        }
    }
    for path in immutable_files(site)? {
        if !new.contains_key(&path) && !carried.contains(path.as_str()) {
            watch(&path)?;
            remove_file(&site.join(&path))?;
        }
    }
    watch("replaced")?;
    write_atomic(&site.join(SUMS), text.as_bytes())?;
    Ok(write_atomic(&site.join(MARKER), marker.as_bytes())?)
}

/// Assets and files of indexes that lie in the site: those of earlier releases, and of killed runs.
fn immutable_files(site: &Path) -> Result<Vec<String>, PublishError> {
    let mut found = Vec::new();
    for top in ["assets", "edge"] {
        let mut folders = vec![top.to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(listed) = fs::read_dir(site.join(&folder)) else { continue };
            for entry in listed.flatten() {
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                let path = format!("{folder}/{name}");
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                } else if is_immutable(&path) {
                    found.push(path);
                }
            }
        }
    }
    Ok(found)
}

/// Removes a file, and the folders that are empty without it.
fn remove_file(path: &Path) -> Result<(), PublishError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(FileError::io("remove", path, error).into());
        }
        _ => {}
    }
    let mut folder = path.parent();
    while let Some(parent) = folder.filter(|parent| fs::remove_dir(parent).is_ok()) {
        folder = parent.parent();
    }
    Ok(())
}

/// Puts back what someone has altered in a release, and writes nothing else.
fn mend(
    folder: &Path,
    files: &Files,
    settings: &Settings,
    before: &Before<'_>,
    watch: Watch<'_>,
) -> Result<(), PublishError> {
    let (known, method) = read_sums(&folder.join(SUMS));
    let same_method = method.as_deref() == Some(packing::METHOD);
    let mended =
        files.par_iter().map(|(path, bytes)| -> Result<Vec<(String, String)>, PublishError> {
            watch(path)?;
            let target = folder.join(path);
            let mut sums = vec![(path.clone(), sha256_hex(bytes))];
            if fs::read(&target).ok().as_ref() != Some(bytes) {
                write_atomic(&target, bytes)?;
            }
            if !settings.packed || !packing::is_packed(path, bytes) {
                return Ok(sums);
            }
            let names = packing::ENDINGS.map(|ending| format!("{path}.{ending}"));
            let whole = same_method
                && names.iter().all(|name| {
                    let own = fs::read(folder.join(name));
                    own.is_ok_and(|own| known.get(name) == Some(&sha256_hex(&own)))
                });
            if whole {
                sums.extend(
                    names.iter().filter_map(|name| Some((name.clone(), known.get(name)?.clone()))),
                );
                return Ok(sums);
            }
            for (name, packed) in names.into_iter().zip(packing::pack(bytes)?) {
                write_atomic(&folder.join(&name), &packed)?;
                let sum = sha256_hex(&packed);
                sums.push((name, sum));
            }
            Ok(sums)
        });
    let mended: Vec<Vec<(String, String)>> = mended.collect::<Result<_, _>>()?;
    let sums: BTreeMap<String, String> = mended.into_iter().flatten().collect();
    let carried = carry(folder, before, &sums)?;
    let text = fs::read_to_string(folder.join(SUMS)).unwrap_or_default();
    let (stated, _) = read_sums(&folder.join(SUMS));
    if stated != sums || !same_method || !carried.is_empty() {
        let earlier = text.lines().filter_map(|line| line.strip_prefix("# carried "));
        let all: BTreeSet<String> = earlier.map(str::to_owned).chain(carried).collect();
        let all: Vec<String> = all.into_iter().collect();
        write_atomic(&folder.join(SUMS), sums_text(&sums, &all).as_bytes())?;
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

fn published(folder: &Path) -> SystemTime {
    let time = folder.join(MARKER).metadata().and_then(|marker| marker.modified());
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Removes all but the last releases of the site, and what killed runs have left.
fn clean(
    releases: &Path,
    site_id: &str,
    current: &str,
    replaced: Option<&str>,
    keep: usize,
    watch: Watch<'_>,
) -> Result<(), PublishError> {
    clear(releases, site_id, |process| {
        process != std::process::id() && !Path::new("/proc").join(process.to_string()).exists()
    })?;
    let mut old = Vec::new();
    let listed = fs::read_dir(releases).map_err(|error| FileError::io("list", releases, error))?;
    for entry in listed.flatten() {
        let folder = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name != current && is_release(&folder, site_id) {
            // The release that has just been replaced may still be being read: it goes last.
            old.push((replaced == Some(name), published(&folder), folder));
        }
    }
    old.sort();
    old.reverse();
    old.iter().skip(keep.max(1) - 1).try_for_each(|(_, _, folder)| {
        watch("cleaned")?;
        remove(folder)
    })
}

/// Removes the unfinished folders of processes for which `of` holds.
fn clear(releases: &Path, site_id: &str, of: impl Fn(u32) -> bool) -> Result<(), PublishError> {
    let Ok(listed) = fs::read_dir(releases) else { return Ok(()) };
    for entry in listed.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| unfinished(name, site_id));
        if !process.is_some_and(&of) {
            continue;
        }
        if has_marker(&entry.path(), site_id) {
            remove(&entry.path())?;
        } else {
            remove_if_only_begun(&entry.path());
        }
    }
    Ok(())
}

/// Removes a folder that was made and not yet marked: nothing is in it but perhaps the marker under its
/// temporary name. A folder with anything else is not empty and stays.
fn remove_if_only_begun(folder: &Path) {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in listed {
        let name = entry.file_name();
        let begun = format!(".{MARKER}.");
        if name.to_str().is_some_and(|name| name.starts_with(&begun) && name.ends_with(".tmp")) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
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

/// The process that began the unfinished release in a folder of this name.
fn unfinished(name: &str, site_id: &str) -> Option<u32> {
    let inner = name.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (name, process) = inner.rsplit_once('.')?;
    is_name(name, site_id).then(|| process.parse().ok()).flatten()
}

fn check_path(path: &str) -> Result<(), PublishError> {
    let sound = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0', ':', '\n'])
    };
    if path.split('/').all(sound) && path != SUMS {
        Ok(())
    } else {
        Err(PublishError::Path { path: path.to_owned() })
    }
}

/// The hash of all files, whatever their order, and of how they are written.
fn hash(files: &Files, settings: &Settings) -> String {
    let method = if settings.packed { packing::METHOD } else { "plain" };
    let sums: Vec<String> = files.par_iter().map(|(_, bytes)| sha256_hex(bytes)).collect();
    let mut sorted: Vec<(&str, &str)> =
        files.iter().zip(&sums).map(|((path, _), sum)| (path.as_str(), sum.as_str())).collect();
    sorted.sort_unstable();
    let parts = sorted.iter().flat_map(|(path, sum)| [path.as_bytes(), sum.as_bytes()]);
    sha256_hex_parts([method.as_bytes()].into_iter().chain(parts))
}

#[cfg(test)]
mod tests;
