//! A collection's folder to documents.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use walkdir::{DirEntry, WalkDir};

use crate::blocks::{Content, Remark};
use crate::catalogue::Catalogue;
use crate::document::{Collection, Document, Format};
use crate::encoding::Hints;
use crate::error::CorpusError;
use crate::{encoding, epub, gutenberg, html, jsonl, markdown, pack, pattern, pdf, plain, tei};

/// Bytes at the head of a file that tell what it is.
const HEAD: usize = 4096;
/// A language told from the text is worth a warning below this confidence, in per cent.
const UNSURE: u8 = 50;

/// What reading a collection came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Documents read.
    pub documents: usize,
    /// Passages they were cut into, once they are.
    pub passages: usize,
    /// Words in them: runs without white space that hold a letter or a digit.
    pub words: usize,
    /// Tokens of the passages.
    pub tokens: usize,
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
    /// Line in the file, from 1, if it is about one.
    pub line: Option<usize>,
    /// What.
    pub message: String,
}

/// A file that is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Path below the collection's folder, with `/`.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// When it was written last, in nanoseconds since 1970.
    pub modified: u64,
}

/// What one file gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    /// Its documents: one as a rule, several in JSON Lines, none if it was passed over.
    pub documents: Vec<Document>,
    /// Why it was passed over.
    pub skipped: Option<String>,
    /// What an editor should look at.
    pub warnings: Vec<Warning>,
}

/// The format that a name tells; nothing if its extension is unknown or says too little.
fn format_of_name(path: &str) -> Option<Format> {
    match extension(unpacked_name(path)).as_str() {
        "html" | "htm" | "xhtml" => Some(Format::Html),
        "txt" | "text" => Some(Format::Text),
        "tei" => Some(Format::Tei),
        "md" | "markdown" => Some(Format::Markdown),
        "epub" => Some(Format::Epub),
        "pdf" => Some(Format::Pdf),
        "jsonl" | "ndjson" => Some(Format::Jsonl),
        _ => None,
    }
}

/// The name without `.gz`.
fn unpacked_name(path: &str) -> &str {
    path.strip_suffix(".gz").or(path.strip_suffix(".GZ")).unwrap_or(path)
}

/// The format of a file: from the settings, its name, or its first bytes.
fn format_of(collection: &Collection, folder: &Path, path: &str) -> Option<Format> {
    collection.format.or_else(|| format_of_name(path)).or_else(|| {
        let tells_nothing = matches!(extension(unpacked_name(path)).as_str(), "" | "xml");
        tells_nothing
            .then(|| head(&folder.join(path)))
            .flatten()
            .and_then(|head| format_of_head(&head))
    })
}

/// The first bytes of a file, unpacked.
fn head(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(HEAD as u64).read_to_end(&mut bytes).ok()?;
    if pack::is_gzip(&bytes) {
        let mut unpacked = Vec::new();
        let reader = flate2::read::MultiGzDecoder::new(bytes.as_slice());
        // The file is cut off, so an error at its end means nothing.
        let _ = reader.take(HEAD as u64).read_to_end(&mut unpacked);
        bytes = unpacked;
    }
    Some(bytes)
}

/// The format that the first bytes of a file tell.
fn format_of_head(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"%PDF-") {
        return Some(Format::Pdf);
    }
    if head.starts_with(b"PK\x03\x04") {
        let name = b"application/epub+zip";
        return head.windows(name.len()).any(|window| window == name).then_some(Format::Epub);
    }
    let text = String::from_utf8_lossy(head);
    let first = |text: &str| {
        let tag =
            text.split('<').skip(1).find(|tag| tag.starts_with(|c: char| c.is_alphabetic()))?;
        let name = tag.split(|c: char| c.is_whitespace() || c == '>' || c == '/').next()?;
        Some(name.rsplit(':').next().unwrap_or(name).to_owned())
    };
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if !text.starts_with('<') {
        return None;
    }
    match first(text) {
        Some(name) if tei::is_root(&name) => Some(Format::Tei),
        Some(name) if name.eq_ignore_ascii_case("html") => Some(Format::Html),
        _ => None,
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
    let (files, mut report) = list_files(collection)?;
    let catalogue = Catalogue::of(collection)?;
    let read: Vec<Result<FileContent, CorpusError>> =
        files.par_iter().map(|file| read_file(collection, &catalogue, &file.path)).collect();
    let contents = all_or_errors(read)?;
    let mut documents = Vec::new();
    for (file, content) in files.iter().zip(contents) {
        report.add(&file.path, &content);
        documents.extend(content.documents);
    }
    finish(collection, &catalogue, &documents, &mut report)?;
    Ok((documents, report))
}

/// All results, or all errors.
pub fn all_or_errors<T>(results: Vec<Result<T, CorpusError>>) -> Result<Vec<T>, CorpusError> {
    let mut values = Vec::with_capacity(results.len());
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    match errors.len() {
        0 => Ok(values),
        1 => Err(errors.remove(0)),
        _ => Err(CorpusError::Several { errors }),
    }
}

impl Report {
    /// Counts what a file gave.
    pub fn add(&mut self, path: &str, content: &FileContent) {
        self.warnings.extend(content.warnings.iter().cloned());
        if let Some(reason) = &content.skipped {
            self.skipped.push(Skipped { path: path.to_owned(), reason: reason.clone() });
        }
        self.documents += content.documents.len();
        self.words +=
            content.documents.iter().map(|document| count_words(&document.text)).sum::<usize>();
    }
}

/// Looks at a collection as a whole, when all its files have been read.
pub fn finish(
    collection: &Collection,
    catalogue: &Catalogue,
    documents: &[Document],
    report: &mut Report,
) -> Result<(), CorpusError> {
    warn_of_case(documents, &mut report.warnings);
    for (line, path) in catalogue.unused(documents.iter()) {
        report.warnings.push(Warning {
            path: collection.metadata.as_deref().unwrap_or(Path::new("")).display().to_string(),
            line: usize::try_from(line).ok(),
            message: format!("there is no document {path}"),
        });
    }
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
    Ok(())
}

/// Reads one document of a collection anew. Its path is that of its file; of a record in JSON Lines,
/// the file's, `/` and the record's id.
pub fn read_document(
    collection: &Collection,
    relative_path: &str,
) -> Result<Document, CorpusError> {
    let folder = folder(collection)?;
    let inside =
        Path::new(relative_path).components().all(|part| matches!(part, Component::Normal(_)));
    let no_document = || CorpusError::NoDocument {
        collection: collection.id.clone(),
        path: relative_path.to_owned(),
        folder: folder.clone(),
    };
    if !inside || relative_path.is_empty() {
        return Err(no_document());
    }
    // The whole path, or a part of it that ends before a slash.
    let ends = relative_path.match_indices('/').map(|(at, _)| at).chain([relative_path.len()]);
    let file = ends
        .map(|end| &relative_path[..end])
        .find(|path| folder.join(path).is_file())
        .unwrap_or(relative_path);
    if format_of(collection, &folder, file).is_none() {
        return Err(no_document());
    }
    let content = read_file(collection, &Catalogue::of(collection)?, file)?;
    let mut documents = content.documents.into_iter();
    documents.find(|document| document.path == relative_path).ok_or_else(no_document)
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

/// The files to read, by path; what is passed over goes to the report.
pub fn list_files(collection: &Collection) -> Result<(Vec<SourceFile>, Report), CorpusError> {
    let folder = &folder(collection)?;
    let mut report = Report::default();
    let root = fs::canonicalize(folder)
        .map_err(|source| CorpusError::Io { path: folder.to_owned(), source })?;
    let mut files = Vec::new();
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
            } else if format_of_name(&path).is_some() {
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
        if format_of(collection, folder, &path).is_some() {
            let meta = fs::metadata(entry.path())
                .map_err(|source| CorpusError::Io { path: entry.path().to_owned(), source })?;
            let modified =
                meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let modified = modified.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(0));
            files.push(SourceFile { path, size: meta.len(), modified });
        } else {
            *report.other_files.entry(extension(&path)).or_default() += 1;
        }
    }
    for (pattern, _) in collection.exclude.iter().zip(&used).filter(|(_, used)| !**used) {
        report.warnings.push(Warning {
            path: String::new(),
            line: None,
            message: format!("the exclude pattern \"{pattern}\" covers no file"),
        });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((files, report))
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

/// Reads one file of a collection.
pub fn read_file(
    collection: &Collection,
    catalogue: &Catalogue,
    relative_path: &str,
) -> Result<FileContent, CorpusError> {
    let folder = folder(collection)?;
    let path = folder.join(relative_path);
    let io = |source| CorpusError::Io { path: path.clone(), source };
    let fault =
        |line, problem, remedy| CorpusError::Content { path: path.clone(), line, problem, remedy };
    let too_large = "split the file, or leave it out with `exclude`";
    let size = fs::metadata(&path).map_err(io)?.len();
    if size > pack::LARGEST {
        let problem = format!("has {} MB; a file has {} at most", size >> 20, pack::LARGEST >> 20);
        return Err(fault(None, problem, too_large));
    }
    let mut bytes = fs::read(&path).map_err(io)?;
    if pack::is_gzip(&bytes) {
        bytes = pack::gunzip(&bytes, pack::LARGEST)
            .map_err(|problem| fault(None, problem, too_large))?;
    }
    let hints = Hints { encoding: collection.encoding.as_deref(), language: &collection.language };
    let broken = "mend the file, or leave it out with `exclude`";
    let mut remarks: Vec<Remark> = Vec::new();
    let mut decoded = |plain: bool| {
        let decode = if plain { encoding::decode_plain } else { encoding::decode_html };
        let decoded = decode(&path, &bytes, hints)?;
        remarks.extend(decoded.warnings);
        Ok::<String, CorpusError>(decoded.text)
    };
    let contents: Vec<(Option<String>, Content)> =
        match format_of(collection, &folder, relative_path) {
            Some(Format::Html) => vec![(None, gutenberg::stripped(html::read(&decoded(false)?)))],
            Some(Format::Tei) => {
                let content = tei::read(&decoded(false)?, relative_path, collection.reading);
                vec![(None, content.map_err(|at| fault(Some(at.line), at.problem, broken))?)]
            }
            Some(Format::Markdown) => vec![(None, markdown::read(&decoded(true)?))],
            Some(Format::Jsonl) => {
                let records = jsonl::read(&decoded(true)?)
                    .map_err(|at| fault(Some(at.line), at.problem, "correct this line"))?;
                records.into_iter().map(|(id, content)| (Some(id), content)).collect()
            }
            Some(Format::Epub) => {
                vec![(None, epub::read(&bytes).map_err(|problem| fault(None, problem, broken))?)]
            }
            Some(Format::Pdf) => match pdf::read(&bytes) {
                Ok(content) => vec![(None, content)],
                // What its parser cannot do is no fault of the archive, but nobody should miss it.
                Err(reason) => {
                    let message = format!("is not in the archive: {reason}");
                    let warning = Warning { path: relative_path.to_owned(), line: None, message };
                    let skipped = Some(reason);
                    return Ok(FileContent {
                        documents: Vec::new(),
                        skipped,
                        warnings: vec![warning],
                    });
                }
            },
            Some(Format::Text) | None if collection.braces => {
                vec![(None, plain::read_with_marks(&decoded(true)?))]
            }
            Some(Format::Text) | None => vec![(None, plain::read(&decoded(true)?))],
        };
    let mut file = FileContent::default();
    for (id, mut content) in contents {
        remarks.append(&mut content.warnings);
        let path = match id {
            Some(id) => format!("{relative_path}/{id}"),
            None => relative_path.to_owned(),
        };
        let mut document = content.into_document(&collection.id, &path, &collection.language);
        catalogue.apply(&mut document);
        if let Some(confidence) = document.meta.language_confidence.filter(|c| *c < UNSURE) {
            let message = format!(
                "its language was told from the text, and not surely: {} ({confidence} %); state it in the file or in `metadata`",
                document.language
            );
            remarks.push(message.into());
        }
        if document.blocks.is_empty() {
            file.skipped = Some("holds no text".to_owned());
        } else {
            file.documents.push(document);
        }
    }
    if !file.documents.is_empty() {
        file.skipped = None;
    }
    file.warnings = remarks
        .into_iter()
        .map(|Remark { line, message }| Warning { path: relative_path.to_owned(), line, message })
        .collect();
    Ok(file)
}

/// Files whose names differ only in case are one file on some publishing hosts and disks.
fn warn_of_case(documents: &[Document], warnings: &mut Vec<Warning>) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for document in documents {
        if let Some(other) = seen.insert(document.path.to_lowercase(), &document.path) {
            warnings.push(Warning {
                path: document.path.clone(),
                line: None,
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
