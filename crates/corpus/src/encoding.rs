//! Bytes of a file to text, without ever guessing silently.
//!
//! A byte order mark decides; then what the file declares (in HTML and XML its charset, in plain text
//! Project Gutenberg's header or an editor's line); then what the collection's settings say. Else the
//! file is UTF-8. In HTML and XML a byte that is not is an error; plain text has no place to declare
//! anything, so its code page is told from the content, with a warning. One declaration is not
//! believed: a single-byte charset over bytes that are valid UTF-8 and hold characters of more than one
//! byte. Text does not look like that by accident, so it is read as UTF-8, with a warning.

use std::path::Path;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::blocks::Remark;
use crate::error::CorpusError;

/// How much of a page is searched for a declaration.
const PRESCAN: usize = 4096;

/// Decoded text, and what was odd about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text, without byte order mark and NUL characters.
    pub text: String,
    /// For the report.
    pub warnings: Vec<Remark>,
}

/// What is known of a file from elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints<'a> {
    /// The encoding that the settings name.
    pub encoding: Option<&'a str>,
    /// BCP 47 tag of the language that it is probably in.
    pub language: &'a str,
}

/// Decodes a plain text file.
pub fn decode_plain(path: &Path, bytes: &[u8], hints: Hints<'_>) -> Result<Decoded, CorpusError> {
    let declared = declared_in_text(bytes).or(hints.encoding.map(str::to_owned));
    if declared.is_some() || Encoding::for_bom(bytes).is_some() {
        return decode(path, bytes, declared);
    }
    let (encoding, why) = if let Some(encoding) = utf16(bytes) {
        (encoding, "looks like UTF-16 without a byte order mark")
    } else if std::str::from_utf8(bytes).is_ok() {
        return decode(path, bytes, None);
    } else {
        (code_page(bytes, hints.language), "is not UTF-8, and says nothing of its encoding")
    };
    let mut decoded = decode(path, bytes, Some(encoding.name().to_owned()))?;
    let message = format!(
        "{why}; read as {}: if that is right, say it with `encoding` in the settings",
        encoding.name()
    );
    let line = std::str::from_utf8(bytes).err().map(|fault| line_of(bytes, fault.valid_up_to()));
    decoded.warnings.insert(0, Remark { line, message });
    Ok(decoded)
}

/// Decodes a page or an XML file, honouring the charset it declares.
pub fn decode_html(path: &Path, bytes: &[u8], hints: Hints<'_>) -> Result<Decoded, CorpusError> {
    decode(path, bytes, declared_charset(bytes).or(hints.encoding.map(str::to_owned)))
}

/// UTF-16 whose every other byte is zero for the most part, as in Latin scripts.
fn utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(PRESCAN) & !1];
    let zeros = |from: usize| head.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, half) = (zeros(0), zeros(1), head.len() / 2);
    if half == 0 || !bytes.len().is_multiple_of(2) {
        None
    } else if odd * 2 > half && even * 10 < half {
        Some(UTF_16LE)
    } else if even * 2 > half && odd * 10 < half {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// The code page that these bytes look like, the language being what it is.
fn code_page(bytes: &[u8], language: &str) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let top_level_domain: Option<&[u8]> = match language.split('-').next() {
        Some("el" | "grc") => Some(b"gr"),
        Some("ru") => Some(b"ru"),
        Some("fr") => Some(b"fr"),
        Some("de") => Some(b"de"),
        _ => None,
    };
    detector.guess(top_level_domain, Utf8Detection::Deny)
}

/// The encoding that a plain text says it is in: in Project Gutenberg's header, or in a line for an
/// editor (`-*- coding: latin-1 -*-`).
fn declared_in_text(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(PRESCAN)];
    let head: String = head.iter().map(|&byte| char::from(byte).to_ascii_lowercase()).collect();
    let gutenberg =
        head.lines().find_map(|line| line.trim().strip_prefix("character set encoding:"));
    let editor = || {
        let mut first = head.lines().take(2).filter(|line| line.contains("-*-"));
        first.find_map(|line| line.split_once("coding:")).map(|(_, rest)| rest)
    };
    let value = gutenberg.or_else(editor)?.trim();
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    let label = &value[..end.unwrap_or(value.len())];
    // What no encoding is called is no declaration: "character set encoding: see below".
    Encoding::for_label(label.as_bytes()).map(|_| label.to_owned())
}

fn decode(path: &Path, bytes: &[u8], declared: Option<String>) -> Result<Decoded, CorpusError> {
    let mut warnings: Vec<Remark> = Vec::new();
    let (encoding, body, origin) = if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        (encoding, &bytes[mark..], "by its byte order mark")
    } else if let Some(label) = declared {
        let Some(encoding) = Encoding::for_label(label.as_bytes()) else {
            return Err(CorpusError::UnknownCharset { path: path.to_owned(), label });
        };
        // A page whose declaration could be read as ASCII is not UTF-16, whatever it says.
        let is_wide = [UTF_16LE, UTF_16BE].contains(&encoding);
        let encoding = if is_wide && utf16(bytes).is_none() { UTF_8 } else { encoding };
        if encoding.is_single_byte() && !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok() {
            warnings.push(format!("declares {label} but is UTF-8; read as UTF-8").into());
            (UTF_8, bytes, "by its content")
        } else {
            (encoding, bytes, "as declared")
        }
    } else {
        (UTF_8, bytes, "assumed, since nothing else is declared")
    };
    let text = if encoding == UTF_8 {
        // The standard library says where the fault is.
        std::str::from_utf8(body).map(str::to_owned).map_err(|fault| {
            let offset = bytes.len() - body.len() + fault.valid_up_to();
            CorpusError::Encoding {
                path: path.to_owned(),
                line: line_of(bytes, offset),
                offset,
                encoding: "UTF-8".to_owned(),
                origin,
                remedy: if origin == "as declared" {
                    "correct the declaration, or convert the file, for example with `iconv -f WINDOWS-1252 -t UTF-8`"
                } else {
                    "convert the file, for example with `iconv -f WINDOWS-1252 -t UTF-8`, or, in HTML, declare its charset in a meta element"
                },
            }
        })?
    } else {
        let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(body) else {
            let offset = bytes.len() - body.len() + first_fault(encoding, body);
            return Err(CorpusError::Encoding {
                path: path.to_owned(),
                line: line_of(bytes, offset),
                offset,
                encoding: encoding.name().to_owned(),
                origin,
                remedy: "correct the declaration, or convert the file to UTF-8",
            });
        };
        if encoding == WINDOWS_1252 && text.chars().any(|c| matches!(c, '\u{80}'..='\u{9f}')) {
            warnings.push(remark(
                &text,
                |c| matches!(c, '\u{80}'..='\u{9f}'),
                |_| "holds bytes that windows-1252 does not define; they are left out".to_owned(),
            ));
        }
        text.into_owned()
    };
    let text = if text.contains('\0') {
        warnings.push(remark(
            &text,
            |c| c == '\0',
            |nuls| format!("holds {nuls} NUL characters; they are left out"),
        ));
        text.replace('\0', "")
    } else {
        text
    };
    if text.contains('\u{fffd}') {
        warnings.push(remark(&text, |c| c == '\u{fffd}', |count| {
            format!("holds {count} replacement characters (U+FFFD), perhaps from an earlier conversion")
        }));
    }
    Ok(Decoded { text, warnings })
}

/// A warning about some characters: the line of the first, and what is said of their number.
fn remark(text: &str, odd: impl Fn(char) -> bool, say: impl Fn(usize) -> String) -> Remark {
    let first = text.find(&odd).map(|at| line_of(text.as_bytes(), at));
    Remark { line: first, message: say(text.chars().filter(|c| odd(*c)).count()) }
}

/// Line of a byte, from 1.
fn line_of(bytes: &[u8], offset: usize) -> usize {
    1 + bytes[..offset.min(bytes.len())].iter().filter(|&&byte| byte == b'\n').count()
}

/// Offset of the first malformed sequence.
fn first_fault(encoding: &'static Encoding, bytes: &[u8]) -> usize {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let size = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
    let mut out = vec![0u8; size.unwrap_or(bytes.len().saturating_mul(4))];
    let (result, read, _) = decoder.decode_to_utf8_without_replacement(bytes, &mut out, true);
    match result {
        encoding_rs::DecoderResult::Malformed(length, after) => {
            read.saturating_sub(usize::from(length) + usize::from(after))
        }
        _ => read,
    }
}

/// The charset of the first `meta` element or XML declaration that states one.
fn declared_charset(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(PRESCAN)];
    // One character a byte: offsets stay, and only ASCII matters here.
    let head: String = head.iter().map(|&byte| char::from(byte).to_ascii_lowercase()).collect();
    let xml = head.starts_with("<?xml").then(|| head.split("?>").next().unwrap_or_default());
    if let Some(label) = xml.and_then(|declaration| value_after(declaration, "encoding")) {
        return Some(label);
    }
    let mut rest = head.as_str();
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        if rest.starts_with("<!--") {
            rest = rest.find("-->").map_or("", |end| &rest[end..]);
        } else if rest.starts_with("<meta") {
            let tag = rest.split('>').next().unwrap_or_default();
            if let Some(label) = value_after(tag, "charset") {
                return Some(label);
            }
            rest = &rest[tag.len()..];
        } else {
            rest = &rest[1..];
        }
    }
    None
}

/// The value in `name = "value"`, with or without quotation marks.
fn value_after(text: &str, name: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        rest = &rest[at + name.len()..];
        let Some(value) = rest.trim_start().strip_prefix('=') else {
            continue;
        };
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let end = value
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '>' | '/'))
            .unwrap_or(value.len());
        if end > 0 {
            return Some(value[..end].to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn html(bytes: &[u8]) -> Result<Decoded, CorpusError> {
        decode_html(Path::new("page.html"), bytes, Hints::default())
    }

    #[test]
    fn utf8_with_and_without_mark() {
        assert_eq!(html("é".as_bytes()).unwrap().text, "é");
        assert_eq!(html("\u{feff}é".as_bytes()).unwrap().text, "é");
    }

    #[test]
    fn honours_declarations() {
        let latin = b"<meta charset=iso-8859-1><p>\xe9\x80</p>";
        assert!(html(latin).unwrap().text.ends_with("<p>é€</p>"));
        let greek =
            b"<meta http-equiv='Content-Type' content='text/html; charset=windows-1253'>\xe1";
        assert!(html(greek).unwrap().text.ends_with('α'));
        let xml = b"<?xml version='1.0' encoding='ISO-8859-7'?><p>\xe1";
        assert!(html(xml).unwrap().text.ends_with('α'));
        assert!(html(b"<!-- <meta charset=latin1> --><p>\xe9").is_err());
    }

    #[test]
    fn utf16_by_its_mark() {
        let bytes: Vec<u8> = "\u{feff}αβ".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode_plain(Path::new("a.txt"), &bytes, Hints::default()).unwrap().text, "αβ");
    }

    #[test]
    fn plain_text_in_the_code_pages_of_its_languages() {
        let read = |bytes: &[u8], language| {
            let hints = Hints { encoding: None, language };
            decode_plain(Path::new("a.txt"), bytes, hints).unwrap()
        };
        let french = "Le c\u{153}ur a ses raisons que la raison ne conna\u{ee}t point\u{a0}; on le sait en mille choses. \u{ab} \u{c9}t\u{e9} \u{bb}";
        let greek = "\u{397} \u{3b1}\u{3c1}\u{3c7}\u{3ae} \u{3b5}\u{3af}\u{3bd}\u{3b1}\u{3b9} \u{3c4}\u{3bf} \u{3ae}\u{3bc}\u{3b9}\u{3c3}\u{3c5} \u{3c4}\u{3bf}\u{3c5} \u{3c0}\u{3b1}\u{3bd}\u{3c4}\u{3cc}\u{3c2}";
        for (text, page, language) in
            [(french, WINDOWS_1252, "fr"), (greek, encoding_rs::WINDOWS_1253, "el")]
        {
            let (bytes, _, _) = page.encode(text);
            let decoded = read(&bytes, language);
            assert_eq!(decoded.text, text);
            assert_eq!(decoded.warnings.len(), 1);
            assert_eq!(decoded.warnings[0].line, Some(1));
            // Declared, in the settings or by the text, it is no guess.
            let hints = Hints { encoding: Some(page.name()), language };
            assert!(decode_plain(Path::new("a.txt"), &bytes, hints).unwrap().warnings.is_empty());
        }
        let wide: Vec<u8> = french.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&wide, "fr").text, french);
        let gutenberg = b"Title: X\n\nCharacter set encoding: ISO-8859-1\n\n\xe9t\xe9";
        let decoded = read(gutenberg, "el");
        assert!(decoded.text.ends_with("\u{e9}t\u{e9}") && decoded.warnings.is_empty());
    }

    #[test]
    fn invalid_utf8_names_line_and_byte() {
        let error = html(b"<p>one\ntwo \xe9").unwrap_err().to_string();
        assert!(error.contains("page.html: line 2, byte 11"), "{error}");
        assert!(error.contains("iconv"), "{error}");
        let declared = html(b"<meta charset=utf-8>\n\xff").unwrap_err().to_string();
        assert!(
            declared.contains("as declared") && declared.contains("line 2, byte 21"),
            "{declared}"
        );
    }

    #[test]
    fn unknown_charset() {
        let error = html(b"<meta charset='klingon'>").unwrap_err().to_string();
        assert!(error.contains("klingon"), "{error}");
    }

    #[test]
    fn malformed_multibyte_names_the_byte() {
        let error = html(b"<meta charset=shift_jis>\n\x81").unwrap_err().to_string();
        assert!(error.contains("line 2, byte 25"), "{error}");
    }

    #[test]
    fn a_wrong_declaration_is_seen_through() {
        let decoded = html("<meta charset=iso-8859-1>été".as_bytes()).unwrap();
        assert!(decoded.text.ends_with("été"));
        assert_eq!(decoded.warnings.len(), 1);
    }

    #[test]
    fn nul_characters_go_with_a_warning() {
        let decoded = html(b"a\0b").unwrap();
        assert_eq!((decoded.text.as_str(), decoded.warnings.len()), ("ab", 1));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), label in "[a-z0-9-]{0,12}") {
            let _ = decode_plain(Path::new("x"), &bytes, Hints::default());
            let mut page = format!("<meta charset={label}>").into_bytes();
            page.extend_from_slice(&bytes);
            let _ = html(&page);
            let _ = html(&bytes);
        }
    }
}
