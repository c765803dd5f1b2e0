//! What can be wrong with a collection, each with its remedy.

use std::io;
use std::path::PathBuf;

/// Errors that are listed at most.
const SHOWN: usize = 50;

/// Why a collection could not be read. An archive is never half-read: one unreadable source file
/// fails the whole collection.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The collection's folder is not there.
    #[error(
        "collection \"{collection}\": the folder {} does not exist; fetch the texts or correct `path`",
        path.display()
    )]
    FolderMissing {
        /// The collection.
        collection: String,
        /// Its folder.
        path: PathBuf,
    },
    /// The collection's path is a file.
    #[error("collection \"{collection}\": {} is not a folder; let `path` name the folder that holds the files", path.display())]
    NotAFolder {
        /// The collection.
        collection: String,
        /// Its path.
        path: PathBuf,
    },
    /// Nothing below the folder gave a document.
    #[error(
        "collection \"{collection}\": no readable text below {} ({detail}); put HTML, text, TEI, Markdown, EPUB, PDF or JSON Lines files there, or correct `path` or `exclude`",
        path.display()
    )]
    Empty {
        /// The collection.
        collection: String,
        /// Its folder.
        path: PathBuf,
        /// What was found instead.
        detail: String,
    },
    /// The operating system refused.
    #[error("cannot read {}: {source}; make it readable for this user, or leave it out with `exclude`", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The bytes are not text in the encoding that is declared or assumed.
    #[error(
        "{}: line {line}, byte {offset}: not valid {encoding} ({origin}); {remedy}",
        path.display()
    )]
    Encoding {
        /// The file.
        path: PathBuf,
        /// Line of the first fault, from 1.
        line: usize,
        /// Offset of the first fault in the file, from 0.
        offset: usize,
        /// The encoding tried.
        encoding: String,
        /// Where that encoding comes from.
        origin: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The page declares an encoding that does not exist.
    #[error(
        "{}: declares the charset \"{label}\", which is unknown; correct the declaration or convert the file to UTF-8",
        path.display()
    )]
    UnknownCharset {
        /// The file.
        path: PathBuf,
        /// What it declares.
        label: String,
    },
    /// The file is not what it should be.
    #[error("{}{}: {problem}; {remedy}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, from 1, where that is known.
        line: Option<usize>,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// Several files of a collection cannot be read.
    #[error("{} files cannot be read:{}", errors.len(), listed(errors))]
    Several {
        /// Why, file by file, in path order.
        errors: Vec<CorpusError>,
    },
    /// A file name that cannot be part of a document's id.
    #[error("{}: the name is not valid UTF-8; rename the file or folder", path.display())]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// A document path that is absolute, climbs out of the collection, or names no kind of file that is
    /// read.
    #[error("collection \"{collection}\": {path:?} names no document; give the path of a file below {} that is read", folder.display())]
    NoDocument {
        /// The collection.
        collection: String,
        /// The path asked for.
        path: String,
        /// The collection's folder.
        folder: PathBuf,
    },
}

/// The first errors, one a line.
fn listed(errors: &[CorpusError]) -> String {
    let shown = errors.iter().take(SHOWN).map(|error| format!("\n  {error}"));
    let rest = match errors.len().saturating_sub(SHOWN) {
        0 => String::new(),
        rest => format!("\n  and {rest} more"),
    };
    shown.chain([rest]).collect()
}
