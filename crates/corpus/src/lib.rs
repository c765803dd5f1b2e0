//! Sources to documents with one canonical text, and documents to passages.
//!
//! [`read_collection`] reads every file of a collection's folder; [`read_document`] reads one anew.
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
pub mod document;
pub mod encoding;
mod error;
pub mod html;
pub mod language;
mod link;
mod pattern;
pub mod plain;
mod read;
mod segment;
pub mod sentence;

pub use archive::Archive;
pub use document::{Block, BlockKind, Collection, Document, Passage, Place, Role};
pub use error::CorpusError;
pub use read::{Report, Skipped, Warning, read_collection, read_document};
pub use segment::segment;
