//! The edge index: the curated questions and their variants in all languages, in small files that a
//! browser fetches as it needs them. No server is asked.
//!
//! A wording that is *equal* to a curated one after folding opens its page ([`Reader::exact`]). What is
//! merely *like* one is suggested ([`Reader::suggest`]), never opened: "A defeats B" is not "B defeats
//! A".
//!
//! # Files
//!
//! ```text
//! edge/root.flx              the only file whose name stays: which index this is, and how it is cut
//! edge/<id>/e-<shard>.flx    exact: hashes of folded wordings, all languages together
//! edge/<id>/w-<language>-<shard>.flx    words, in order, each with the questions it stands in
//! edge/<id>/t-<language>-<shard>.flx    texts: ids and wordings of questions, 16 a file
//! ```
//!
//! `<id>` is a hash of everything in the index, so that those files may be cached for ever and two
//! indexes are never mixed. Each file is packed by itself: gzip for browsers, which have no zstd;
//! zstd for programs. Unpacked, it is 32 bytes of header, then a payload, little endian throughout:
//!
//! ```text
//! offset bytes
//!      0     8  "FLOREDGE"
//!      8     2  version of the format
//!     10     1  kind: 1 root, 2 exact, 3 words, 4 texts
//!     11     1  number of the language, in the order of the root; 0 for root and exact
//!     12     4  number of the shard
//!     16     8  id of the index
//!     24     4  length of the payload
//!     28     4  CRC-32 of bytes 0 to 27 and the payload
//!     32     -  payload: bincode 2 with integers of fixed width
//! ```
//!
//! In the payloads, `string` and `list` are a 64-bit length and the bytes or items. Numbers in
//! `postings` are variable: seven bits a byte, the lowest first, the high bit set on all but the last.
//!
//! ```text
//! root     u8 bits of a hash that choose a shard, u32 questions in a text shard,
//!          list of {string language, u32 questions, string first words of the word shards, by \n}
//! exact    list of u32 hashes, in order; list of u32 owners: language << 24 | question
//! words    string of words, in order, by \n; list of u8 postings: for each word its number of
//!          questions, then the questions, each as the distance from the one before. A word in too
//!          many questions to tell them apart has none.
//! texts    string: a line a question: id, question, variants, by tabs
//! ```
//!
//! The hash of a folded wording is FNV-1a (32 bits) over its UTF-8, its bits then mixed as MurmurHash3
//! does at its end. It only says where to look: the texts decide whether a wording is equal.

mod format;
mod likeness;
mod reader;
mod terms;
mod writer;

pub use format::{EdgeError, FORMAT_VERSION, Packing};
pub use reader::{Fetch, Found, Reader, Suggestion};
pub use writer::{EdgeIndex, Entry, ROOT};

#[cfg(test)]
mod tests;
