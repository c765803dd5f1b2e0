//! Framed records: magic, version, lengths, checksum, then zstd-compressed bincode.
//!
//! ```text
//! offset  bytes  meaning
//!      0      8  magic, names the format
//!      8      4  version of the format, little endian
//!     12      8  length of the payload as stored
//!     20      8  length of the payload unpacked
//!     28     32  SHA-256 of bytes 0..28 and of the payload as stored
//!     60      -  payload: zstd(bincode 2, fixed-width integers, little endian)
//! ```
//!
//! A flipped bit anywhere is found before anything is decoded; a hostile length is refused before
//! memory is taken for it.

use std::io::Read;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::{FileError, read, write_atomic};

/// No record unpacks to more than this (4 GiB): a bound on what a damaged length can ask for.
const LIMIT: u64 = 1 << 32;
const HEADER: usize = 60;
const SUMMED: usize = 28;

/// One binary format of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Eight bytes that name the format.
    pub magic: [u8; 8],
    /// Raised whenever the shape of the value changes.
    pub version: u32,
}

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<{ LIMIT as usize }>()
}

/// The bytes of `value` as a record of `format`. Equal values give equal bytes.
pub fn encode<T: Serialize>(format: Format, value: &T) -> Result<Vec<u8>, String> {
    let plain = bincode::serde::encode_to_vec(value, config()).map_err(|e| e.to_string())?;
    let packed = zstd::bulk::compress(&plain, 3).map_err(|e| e.to_string())?;
    let mut bytes = Vec::with_capacity(HEADER + packed.len());
    bytes.extend_from_slice(&format.magic);
    bytes.extend_from_slice(&format.version.to_le_bytes());
    bytes.extend_from_slice(&(packed.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&(plain.len() as u64).to_le_bytes());
    let sum = checksum(&bytes, &packed);
    bytes.extend_from_slice(&sum);
    bytes.extend_from_slice(&packed);
    Ok(bytes)
}

/// The value in the bytes of a record, or what is wrong with them.
pub fn decode<T: DeserializeOwned>(format: Format, bytes: &[u8]) -> Result<T, String> {
    let Some((header, _)) = bytes.split_at_checked(HEADER) else {
        return Err(format!("truncated: {} bytes, a header has {HEADER}", bytes.len()));
    };
    if header[..8] != format.magic {
        return Err("not a file of this kind (wrong magic number)".into());
    }
    let version = u32::from_le_bytes(field(header, 8));
    if version != format.version {
        return Err(format!(
            "format version {version}; this program reads version {}",
            format.version
        ));
    }
    let (_, plain) = unpack(bytes)?;
    let (value, read) = bincode::serde::decode_from_slice(&plain, config())
        .map_err(|e| format!("damaged (bincode: {e})"))?;
    if read != plain.len() {
        return Err(format!("{} bytes left over", plain.len() - read));
    }
    Ok(value)
}

/// The format of a record, whatever it holds, once its checksum and lengths have been found right.
pub fn examine(bytes: &[u8]) -> Result<Format, String> {
    unpack(bytes).map(|(format, _)| format)
}

/// The format and the payload of a record whose checksum and lengths are right.
fn unpack(bytes: &[u8]) -> Result<(Format, Vec<u8>), String> {
    let Some((header, packed)) = bytes.split_at_checked(HEADER) else {
        return Err(format!("truncated: {} bytes, a header has {HEADER}", bytes.len()));
    };
    let format = Format { magic: field(header, 0), version: u32::from_le_bytes(field(header, 8)) };
    let stored = u64::from_le_bytes(field(header, 12));
    if stored != packed.len() as u64 {
        return Err(format!("truncated: {} bytes of {stored}", packed.len()));
    }
    if header[SUMMED..] != checksum(&header[..SUMMED], packed) {
        return Err("damaged (the checksum does not match)".into());
    }
    let unpacked = u64::from_le_bytes(field(header, 20));
    if unpacked > LIMIT {
        return Err(format!("claims {unpacked} bytes, more than the limit of {LIMIT}"));
    }
    let mut plain = Vec::new();
    zstd::stream::read::Decoder::new(packed)
        .and_then(|decoder| decoder.take(unpacked + 1).read_to_end(&mut plain))
        .map_err(|e| format!("damaged (zstd: {e})"))?;
    if plain.len() as u64 != unpacked {
        return Err(format!("unpacks to {} bytes, not {unpacked}", plain.len()));
    }
    Ok((format, plain))
}

/// Writes `value` to `path` as a record of `format`, atomically.
pub fn write<T: Serialize>(path: &Path, format: Format, value: &T) -> Result<(), FileError> {
    let bytes = encode(format, value)
        .map_err(|problem| FileError::Format { path: path.to_owned(), problem })?;
    write_atomic(path, &bytes)
}

/// Reads the record of `format` at `path`.
pub fn load<T: DeserializeOwned>(path: &Path, format: Format) -> Result<T, FileError> {
    decode(format, &read(path)?)
        .map_err(|problem| FileError::Format { path: path.to_owned(), problem })
}

fn checksum(header: &[u8], payload: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize().into()
}

/// `N` bytes of a header that is known to be long enough.
fn field<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMAT: Format = Format { magic: *b"FLORTEST", version: 1 };

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<Vec<(String, u64, Option<i8>)>>()) {
            let bytes = encode(FORMAT, &value).unwrap();
            prop_assert_eq!(decode::<Vec<(String, u64, Option<i8>)>>(FORMAT, &bytes).unwrap(), value);
        }

        #[test]
        fn any_flipped_bit_is_found(value in any::<Vec<u16>>(), at in any::<prop::sample::Index>(), bit in 0_u32..8) {
            let mut bytes = encode(FORMAT, &value).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(decode::<Vec<u16>>(FORMAT, &bytes).is_err());
            prop_assert!(examine(&bytes).is_err());
        }

        #[test]
        fn foreign_bytes_are_refused(bytes in any::<Vec<u8>>()) {
            prop_assert!(decode::<Vec<u16>>(FORMAT, &bytes).is_err());
            prop_assert!(examine(&bytes).is_err());
        }
    }

    #[test]
    fn a_record_is_examined_without_knowing_what_it_holds() {
        let bytes = encode(Format { version: 7, ..FORMAT }, &"anything").unwrap();
        assert_eq!(examine(&bytes).unwrap(), Format { version: 7, ..FORMAT });
    }

    #[test]
    fn another_version_is_named_not_misread() {
        let bytes = encode(Format { version: 7, ..FORMAT }, &1_u8).unwrap();
        let problem = decode::<u8>(FORMAT, &bytes).unwrap_err();
        assert!(problem.contains("version 7"), "{problem}");
    }

    #[test]
    fn the_first_version_is_still_read() {
        // Bytes as version 1 wrote them; they must be read for as long as version 1 is.
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/record.v1.bin");
        let value: Vec<String> = load(&path, FORMAT).unwrap();
        assert_eq!(value, ["florilegium", "ανθολόγιο", "florilège"]);
    }
}
