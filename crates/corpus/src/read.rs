//! A collection's folder to documents.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use walkdir::{DirEntry, WalkDir};

use crate::blocks::Content;
use crate::document::{Collection, Document};
use crate::error::CorpusError;
use crate::{encoding, html, pattern, plain};

/// What reading a collection came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Documents read.
    pub documents: usize,
    /// Words in them: runs without white space that hold a letter or a digit.
    pub words: usize,
    /// Files passed over, in path order.
    pub skipped: Vec<Skipped>,
    /// Files that are no texts (images, style sheets …), only counted, by extension.
    pub other_files: BTreeMap<String, usize>,
    /// What an editor should look at, in path order.
    pub warnings: Vec<Warning>,
}

/// A file passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Path below the collection's folder.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Something odd about a file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Path below the collection's folder; empty if it is about the collection.
    pub path: String,
    /// What.
    pub message: String,
}

/// A kind of file that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Plain,
}

impl Format {
    fn of(path: &str) -> Option<Format> {
        match extension(path).as_str() {
            "html" | "htm" | "xhtml" => Some(Format::Html),
            "txt" => Some(Format::Plain),
            _ => None,
        }
    }
}

/// Extension in lower case, or nothing.
fn extension(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension.to_lowercase(),
        _ => String::new(),
    }
}

/// Reads a collection: every supported file below its folder, in path order, in parallel. The result
/// does not depend on the order of files on disk.
///
/// One file that cannot be read fails the collection: an archive is never half-read. Symbolic links
/// are followed to files inside the folder, and to nothing else.
pub fn read_collection(collection: &Collection) -> Result<(Vec<Document>, Report), CorpusError> {
    let folder = folder(collection)?;
    let mut report = Report::default();
    let paths = list(collection, &folder, &mut report)?;
    let mut read: Vec<Result<(Document, Vec<String>), CorpusError>> =
        paths.par_iter().map(|path| read_file(collection, &folder, path)).collect();
    let mut documents = Vec::with_capacity(read.len());
    for (path, result) in paths.iter().zip(read.drain(..)) {
        let (document, warnings) = result?;
        report
            .warnings
            .extend(warnings.into_iter().map(|message| Warning { path: path.clone(), message }));
        if document.blocks.is_empty() {
            report.skipped.push(Skipped { path: path.clone(), reason: "holds no text".to_owned() });
            continue;
        }
        report.documents += 1;
        report.words += count_words(&document.text);
        documents.push(document);
    }
    warn_of_case(&documents, &mut report.warnings);
    report.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    report.warnings.sort_by(|a, b| a.path.cmp(&b.path));
    if documents.is_empty() {
        let other: usize = report.other_files.values().sum();
        let detail = format!("{} passed over, {other} of other kinds", report.skipped.len());
        return Err(CorpusError::Empty {
            collection: collection.id.clone(),
            path: collection.path.clone(),
            detail,
        });
    }
    Ok((documents, report))
}

/// Reads one file of a collection anew.
pub fn read_document(
    collection: &Collection,
    relative_path: &str,
) -> Result<Document, CorpusError> {
    let folder = folder(collection)?;
    let inside =
        Path::new(relative_path).components().all(|part| matches!(part, Component::Normal(_)));
    if !inside || Format::of(relative_path).is_none() {
        return Err(CorpusError::NoDocument {
            collection: collection.id.clone(),
            path: relative_path.to_owned(),
            folder,
        });
    }
    read_file(collection, &folder, relative_path).map(|(document, _)| document)
}

/// The collection's folder, checked.
fn folder(collection: &Collection) -> Result<PathBuf, CorpusError> {
    match fs::metadata(&collection.path) {
        Ok(meta) if meta.is_dir() => Ok(collection.path.clone()),
        Ok(_) => Err(CorpusError::NotAFolder {
            collection: collection.id.clone(),
            path: collection.path.clone(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(CorpusError::FolderMissing {
                collection: collection.id.clone(),
                path: collection.path.clone(),
            })
        }
        Err(source) => Err(CorpusError::Io { path: collection.path.clone(), source }),
    }
}

/// The paths of the files to read, sorted; what is passed over goes to the report.
fn list(
    collection: &Collection,
    folder: &Path,
    report: &mut Report,
) -> Result<Vec<String>, CorpusError> {
    let root = fs::canonicalize(folder)
        .map_err(|source| CorpusError::Io { path: folder.to_owned(), source })?;
    let mut paths = Vec::new();
    let mut used = vec![false; collection.exclude.len()];
    let mut walk = WalkDir::new(folder).follow_root_links(true).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            let source =
                error.into_io_error().unwrap_or_else(|| std::io::Error::other("loop of links"));
            CorpusError::Io { path, source }
        })?;
        if entry.depth() == 0 {
            continue;
        }
        let path = relative(&entry, folder)?;
        let mut skip = |reason: String| report.skipped.push(Skipped { path: path.clone(), reason });
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            if entry.file_type().is_dir() {
                walk.skip_current_dir();
                skip("hidden folder".to_owned());
            } else if Format::of(&path).is_some() {
                skip("hidden file".to_owned());
            }
            continue;
        }
        if entry.file_type().is_dir() {
            continue;
        }
        let excluded: Vec<usize> = (0..used.len())
            .filter(|&index| pattern::covers(&collection.exclude[index], &path))
            .collect();
        for &index in &excluded {
            used[index] = true;
        }
        if let Some(&index) = excluded.first() {
            skip(format!("excluded by \"{}\"", collection.exclude[index]));
            continue;
        }
        if entry.path_is_symlink() {
            match fs::canonicalize(entry.path()) {
                Ok(target) if !target.starts_with(&root) => {
                    skip("symbolic link that leaves the folder".to_owned());
                    continue;
                }
                Ok(target) if target.is_dir() => {
                    skip("symbolic link to a folder that is read under its own name".to_owned());
                    continue;
                }
                Ok(target) if target.is_file() => {}
                Ok(_) => {
                    skip("symbolic link to something that is no file".to_owned());
                    continue;
                }
                Err(_) => {
                    skip("symbolic link that leads nowhere".to_owned());
                    continue;
                }
            }
        } else if !entry.file_type().is_file() {
            skip("neither file nor folder".to_owned());
            continue;
        }
        if Format::of(&path).is_some() {
            paths.push(path);
        } else {
            *report.other_files.entry(extension(&path)).or_default() += 1;
        }
    }
    for (pattern, _) in collection.exclude.iter().zip(&used).filter(|(_, used)| !**used) {
        report.warnings.push(Warning {
            path: String::new(),
            message: format!("the exclude pattern \"{pattern}\" covers no file"),
        });
    }
    paths.sort();
    Ok(paths)
}

/// Path below the folder, with `/`.
fn relative(entry: &DirEntry, folder: &Path) -> Result<String, CorpusError> {
    let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
    let parts: Option<Vec<&str>> =
        path.components().map(|part| part.as_os_str().to_str()).collect();
    match parts {
        Some(parts) => Ok(parts.join("/")),
        None => Err(CorpusError::Name { path: entry.path().to_owned() }),
    }
}

fn read_file(
    collection: &Collection,
    folder: &Path,
    relative_path: &str,
) -> Result<(Document, Vec<String>), CorpusError> {
    let path = folder.join(relative_path);
    let bytes = fs::read(&path).map_err(|source| CorpusError::Io { path: path.clone(), source })?;
    let (decoded, read): (_, fn(&str) -> Content) = match Format::of(relative_path) {
        Some(Format::Html) => (encoding::decode_html(&path, &bytes)?, html::read),
        _ => (encoding::decode_plain(&path, &bytes)?, plain::read),
    };
    let mut content = read(&decoded.text);
    let mut warnings = decoded.warnings;
    warnings.append(&mut content.warnings);
    let document = content.into_document(&collection.id, relative_path, &collection.language);
    Ok((document, warnings))
}

/// Files whose names differ only in case are one file on some publishing hosts and disks.
fn warn_of_case(documents: &[Document], warnings: &mut Vec<Warning>) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for document in documents {
        if let Some(other) = seen.insert(document.path.to_lowercase(), &document.path) {
            warnings.push(Warning {
                path: document.path.clone(),
                message: format!("differs from {other} only in case"),
            });
        }
    }
}

/// Words of a text: runs without white space that hold a letter or a digit.
fn count_words(text: &str) -> usize {
    text.split_whitespace().filter(|run| run.chars().any(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests;
