//! Bytes to text.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

use crate::fault::Faults;

const SAVE_AS: &str = "save the list again as \"CSV UTF-8\" (in LibreOffice: Save As, Edit filter settings, Unicode (UTF-8))";

/// Decodes a file, with line ends as `\n`. On failure the fault is recorded and None comes back:
/// text in an unknown encoding is refused, for a wrong guess would change the questions silently.
pub(crate) fn decode(bytes: &[u8], faults: &mut Faults) -> Option<String> {
    let text = match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes, faults)?,
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes, faults)?,
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest, faults)?,
        _ => utf8(bytes, faults)?,
    };
    Some(if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text })
}

fn utf8(bytes: &[u8], faults: &mut Faults) -> Option<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.to_owned()),
        Err(error) => {
            let at = error.valid_up_to();
            let before = bytes.get(..at).unwrap_or_default();
            let line = before.split(|&byte| byte == b'\n').count();
            let byte = bytes.get(at).copied().unwrap_or_default();
            let zeros = bytes.iter().filter(|&&byte| byte == 0).count();
            if zeros > bytes.len() / 4 {
                faults.row(
                    line,
                    format!("the byte 0x{byte:02X} is not UTF-8: the file seems to be in UTF-16 without a byte order mark"),
                    SAVE_AS,
                );
                return None;
            }
            let page = code_page(bytes);
            faults.row(
                line,
                format!("the byte 0x{byte:02X} is not UTF-8: the file seems to be in the code page {page}"),
                format!("{SAVE_AS}, or convert it: iconv -f {page} -t UTF-8 OLD > NEW, and read the result"),
            );
            None
        }
    }
}

/// The code page that a text which is not UTF-8 is most likely in, as `iconv` calls it.
fn code_page(bytes: &[u8]) -> String {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Deny).name().to_uppercase()
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, faults: &mut Faults) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        faults.file("the file is UTF-16 and ends in half a character", SAVE_AS);
        return None;
    }
    let mut text = String::with_capacity(bytes.len());
    let mut line = 1;
    for c in char::decode_utf16(pairs.iter().map(|&pair| unit(pair))) {
        match c {
            Ok(c) => {
                line += usize::from(c == '\n');
                text.push(c);
            }
            Err(error) => {
                let unit = error.unpaired_surrogate();
                let problem =
                    format!("the file is UTF-16 and holds the broken character 0x{unit:04X}");
                faults.row(line, problem, SAVE_AS);
                return None;
            }
        }
    }
    Some(text)
}
