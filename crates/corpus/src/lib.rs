//! Sources to documents with one canonical text, and documents to passages.
//!
//! A reader for each format ([`html`], [`tei`], [`markdown`], [`plain`], [`epub`], [`pdf`], [`jsonl`])
//! only collects blocks. [`read_collection`] reads every file of a collection's folder; [`read_document`] reads one anew.
//! Both give [`Document`]s: a canonical text that is never edited afterwards, and the blocks it is
//! made of, each with its place in the source. [`segment`] cuts a document into [`Passage`]s: whole
//! sentences under one heading path, within a budget of tokens.
//!
//! The readers only collect blocks ([`blocks`]); what a canonical text is, is decided in one place
//! ([`canonical`]), whatever the format.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod archive;

pub mod blocks;
pub mod canonical;
mod catalogue;
pub mod document;
pub mod editions;
pub mod encoding;
pub mod epub;
mod error;
mod gutenberg;
pub mod html;
pub mod jsonl;
pub mod language;
mod link;
pub mod markdown;
pub mod pack;
mod pattern;
pub mod pdf;
pub mod plain;
mod read;
mod segment;
pub mod sentence;
pub mod tei;

pub use archive::Archive;
pub use catalogue::Catalogue;
pub use document::{
    Block, BlockKind, Collection, Document, Format, Metadata, Passage, Place, Reading, Role,
    SourceMap,
};
pub use error::CorpusError;
pub use read::{
    FileContent, Report, Skipped, SourceFile, Warning, all_or_errors, finish, list_files,
    read_collection, read_document, read_file,
};
pub use segment::segment;

#[cfg(test)]
mod tests;
