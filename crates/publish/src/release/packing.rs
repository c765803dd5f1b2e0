//! The same file, packed ahead for hosts that serve what they find: `.gz`, `.br`, `.zst`.

use std::io::Write;

use florilegium_files::FileError;

/// Raised when a packer or its level changes, so that nothing is taken over from an older release.
pub(super) const METHOD: &str = "gzip-6 brotli-5 zstd-9";

/// Below this, a file fits into one packet as it is.
const SMALLEST: usize = 1_200;

/// The endings of packed files.
pub(super) const ENDINGS: [&str; 3] = ["gz", "br", "zst"];

/// Whether a file is packed: what browsers load to show a page. The index is packed in itself; data and
/// references are fetched once by those who want them, and would treble the number of files.
pub(super) fn is_packed(path: &str, bytes: &[u8]) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    bytes.len() >= SMALLEST && matches!(ending, "html" | "css" | "js" | "svg" | "xml")
}

/// The packed forms, in the order of [`ENDINGS`]. The same bytes give the same bytes.
pub(super) fn pack(bytes: &[u8]) -> Result<[Vec<u8>; 3], FileError> {
    let failed = |error| FileError::io("pack", "a page", error);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).map_err(failed)?;
    let gzip = gzip.finish().map_err(failed)?;
    let mut brotli = Vec::new();
    // A window as large as the file: the usual one of 4 MB takes longer to clear than a page to pack.
    let window = usize::BITS - bytes.len().leading_zeros();
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: 5,
        lgwin: window.clamp(12, 22) as i32,
        size_hint: bytes.len(),
        ..Default::default()
    };
    brotli::BrotliCompress(&mut &*bytes, &mut brotli, &parameters).map_err(failed)?;
    let zstd = zstd::bulk::compress(bytes, 9).map_err(failed)?;
    Ok([gzip, brotli, zstd])
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn packed_files_unpack_to_the_same_and_are_the_same_each_time() {
        let text: String = (0..400)
            .map(|n| format!("{} quotations are cut from source {}. ", n * n, n % 7))
            .collect();
        let packed = pack(text.as_bytes()).unwrap();
        assert_eq!(packed, pack(text.as_bytes()).unwrap());
        let mut unpacked = [String::new(), String::new(), String::new()];
        flate2::read::GzDecoder::new(packed[0].as_slice())
            .read_to_string(&mut unpacked[0])
            .unwrap();
        brotli::Decompressor::new(packed[1].as_slice(), 4096)
            .read_to_string(&mut unpacked[1])
            .unwrap();
        zstd::Decoder::new(packed[2].as_slice()).unwrap().read_to_string(&mut unpacked[2]).unwrap();
        assert!(unpacked.iter().all(|unpacked| *unpacked == text));
    }

    #[test]
    fn only_text_is_packed() {
        let long = [b'a'; SMALLEST];
        assert!(is_packed("en/index.html", &long) && !is_packed("en/index.html", b"short"));
        assert!(!is_packed("edge/00/e-0.flx", &long) && !is_packed("a/html", &long));
        assert!(!is_packed("en/q/a/answer.json", &long));
    }
}
