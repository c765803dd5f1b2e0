//! Header, payloads, packing.

use std::io::{Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Raised whenever a file would be misread by an earlier reader. `site/florilegium.js` has the same
/// number.
pub const FORMAT_VERSION: u16 = 1;

const MAGIC: &[u8; 8] = b"FLOREDGE";
const HEADER: usize = 32;
const SUMMED: usize = 28;
/// No file unpacks to more.
const LIMIT: usize = 16 << 20;

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// For browsers.
    Gzip,
    /// For programs.
    Zstd,
}

/// Why an index could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EdgeError {
    /// More of something than the format has room for.
    #[error(
        "{what}: {count}, the index holds at most {most}; publish the questions as several archives"
    )]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many at most.
        most: usize,
    },
    /// A text that would be taken for two.
    #[error("the question \"{id}\" holds a tab or a line break in a wording; write it on one line")]
    Broken {
        /// Id of the question.
        id: String,
    },
    /// A value cannot be encoded.
    #[error("the index cannot be encoded: {0}")]
    Encode(String),
    /// A file is not there.
    #[error("{path} is missing; publish again")]
    Missing {
        /// Its path.
        path: String,
    },
    /// A file of another format.
    #[error("{path}: format version {found}, this program reads {FORMAT_VERSION}; publish again")]
    Version {
        /// Its path.
        path: String,
        /// Its version.
        found: u16,
    },
    /// A file of another index, or another file of this one.
    #[error("{path} is part of another index; publish again")]
    Mixed {
        /// Its path.
        path: String,
    },
    /// A file that is not whole.
    #[error("{path}: {problem}; publish again")]
    Damaged {
        /// Its path.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kind: u8,
    pub(crate) language: u8,
    pub(crate) shard: u32,
}

pub(crate) const ROOT_PART: Part = Part { kind: 1, language: 0, shard: 0 };

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Root {
    pub(crate) exact_bits: u8,
    pub(crate) block: u32,
    pub(crate) languages: Vec<Language>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Language {
    pub(crate) tag: String,
    pub(crate) questions: u32,
    /// The first word of each word shard, by line feeds.
    pub(crate) first_words: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Exact {
    pub(crate) hashes: Vec<u32>,
    pub(crate) owners: Vec<u32>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Words {
    pub(crate) words: String,
    pub(crate) postings: Vec<u8>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Texts {
    pub(crate) lines: String,
}

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<LIMIT>()
}

pub(crate) fn payload(value: &impl Serialize) -> Result<Vec<u8>, EdgeError> {
    let bytes = bincode::serde::encode_to_vec(value, config())
        .map_err(|error| EdgeError::Encode(error.to_string()))?;
    if bytes.len() + HEADER > LIMIT {
        let (what, count) = ("bytes in one file of the edge index", bytes.len());
        return Err(EdgeError::TooMany { what, count, most: LIMIT - HEADER });
    }
    Ok(bytes)
}

/// A file, from its payload.
pub(crate) fn file(part: Part, id: [u8; 8], payload: &[u8], packing: Packing) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&[part.kind, part.language]);
    bytes.extend_from_slice(&part.shard.to_le_bytes());
    bytes.extend_from_slice(&id);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    let sum = checksum(&bytes, payload);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(payload);
    pack(&bytes, packing)
}

fn pack(bytes: &[u8], packing: Packing) -> Vec<u8> {
    // Writing to memory does not fail; if it did, an empty file is found damaged by every reader.
    match packing {
        Packing::Gzip => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
        }
        Packing::Zstd => zstd::bulk::compress(bytes, 19).unwrap_or_default(),
    }
}

/// The value in a file, and the id of the index that it is part of.
pub(crate) fn open<T: DeserializeOwned>(
    path: &str,
    part: Part,
    packed: &[u8],
) -> Result<([u8; 8], T), EdgeError> {
    let damaged = |problem: String| EdgeError::Damaged { path: path.to_owned(), problem };
    let bytes = unpack(packed).map_err(damaged)?;
    let Some((header, payload)) = bytes.split_at_checked(HEADER) else {
        return Err(damaged(format!("{} bytes, a header has {HEADER}", bytes.len())));
    };
    if header[..8] != *MAGIC {
        return Err(damaged("not a file of an edge index".to_owned()));
    }
    let found = u16::from_le_bytes(field(header, 8));
    if found != FORMAT_VERSION {
        return Err(EdgeError::Version { path: path.to_owned(), found });
    }
    if u32::from_le_bytes(field(header, 24)) as usize != payload.len() {
        return Err(damaged("truncated".to_owned()));
    }
    if u32::from_le_bytes(field(header, SUMMED)) != checksum(&header[..SUMMED], payload) {
        return Err(damaged("the checksum does not match".to_owned()));
    }
    let stated = Part {
        kind: header[10],
        language: header[11],
        shard: u32::from_le_bytes(field(header, 12)),
    };
    if stated != part {
        return Err(EdgeError::Mixed { path: path.to_owned() });
    }
    let (value, read) = bincode::serde::decode_from_slice(payload, config())
        .map_err(|error| damaged(error.to_string()))?;
    if read != payload.len() {
        return Err(damaged(format!("{} bytes left over", payload.len() - read)));
    }
    Ok((field(header, 16), value))
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let limit = LIMIT as u64 + 1;
    match packed {
        [0x1f, 0x8b, ..] => {
            flate2::read::GzDecoder::new(packed).take(limit).read_to_end(&mut bytes)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd::stream::read::Decoder::new(packed)
            .and_then(|decoder| decoder.take(limit).read_to_end(&mut bytes)),
        // A host that unpacked it on the way.
        plain => plain.take(limit).read_to_end(&mut bytes),
    }
    .map_err(|error| error.to_string())?;
    if bytes.len() > LIMIT {
        return Err(format!("unpacks to more than {LIMIT} bytes"));
    }
    Ok(bytes)
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(header);
    crc.update(payload);
    crc.sum()
}

/// `N` bytes of a header that is known to be long enough.
fn field<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

/// Appends a variable number.
pub(crate) fn put_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a variable number and moves on; none at the end, or where it is longer than 32 bits.
pub(crate) fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number: u32 = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u32::from(byte & 0x7f);
        if shift == 28 && bits > 0xf {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
