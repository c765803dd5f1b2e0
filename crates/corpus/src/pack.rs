//! Files in files: gzip and zip, unpacked within a limit.

use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

/// No source file is larger, packed or unpacked, in bytes: a bound on what a hostile one can ask for.
pub const LARGEST: u64 = 512 << 20;

/// Whether these are the first bytes of a gzip file.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The bytes of a gzip file.
pub(crate) fn gunzip(bytes: &[u8], limit: u64) -> Result<Vec<u8>, String> {
    limited(MultiGzDecoder::new(bytes), limit).map_err(|problem| format!("gzip: {problem}"))
}

/// Reads to the end, which must come within the limit.
fn limited(reader: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("unpacks to more than {} MB", limit >> 20));
    }
    Ok(bytes)
}

/// An open zip file, with what may still be unpacked from it.
pub(crate) struct Zip<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: u64,
}

impl<'a> Zip<'a> {
    pub(crate) fn open(bytes: &'a [u8], limit: u64) -> Result<Self, String> {
        let archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| format!("not a zip file: {error}"))?;
        Ok(Zip { archive, left: limit })
    }

    /// The bytes of a member.
    pub(crate) fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let member = self.archive.by_name(name).map_err(|error| match error {
            zip::result::ZipError::FileNotFound => format!("{name} is missing from it"),
            error => format!("{name}: {error}"),
        })?;
        let bytes = limited(member, self.left).map_err(|problem| format!("{name}: {problem}"))?;
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_bomb_is_refused_before_it_unpacks() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&vec![0; 4 << 20]).unwrap();
        let packed = packed.finish().unwrap();
        assert!(packed.len() < 8192);
        assert!(gunzip(&packed, 1 << 20).unwrap_err().contains("more than 1 MB"));
        assert_eq!(gunzip(&packed, 4 << 20).unwrap().len(), 4 << 20);
        assert!(gunzip(&packed[..100], 4 << 20).is_err());

        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["a", "b"] {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(&vec![0; 3 << 20]).unwrap();
        }
        let packed = zip.finish().unwrap().into_inner();
        let mut opened = Zip::open(&packed, 4 << 20).unwrap();
        assert_eq!(opened.read("a").unwrap().len(), 3 << 20);
        // Each member alone is within the limit; together they are not.
        assert!(opened.read("b").unwrap_err().contains("more than"));
        assert!(opened.read("c").unwrap_err().contains("missing"));
    }
}
