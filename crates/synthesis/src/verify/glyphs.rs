//! Glyphs that say the same: what may differ between a quotation and its source without changing a
//! letter, a digit, a diacritic or the case.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// A text in plain glyphs: canonically decomposed (Unicode NFD), white space in one blank, one kind of
/// quotation mark, apostrophe and dash, ligatures in letters, soft hyphens and zero-width characters
/// left out.
pub(super) fn plain(text: &str) -> String {
    plain_with_origins(text).0.trim().to_owned()
}

/// The plain text, and for each of its bytes the bytes of `text` it comes from.
pub(super) fn plain_with_origins(text: &str) -> (String, Vec<Range<usize>>) {
    let mut out = String::with_capacity(text.len());
    let mut origins: Vec<Range<usize>> = Vec::with_capacity(text.len());
    let mut from = 0;
    while let Some(first) = text[from..].chars().next() {
        // A letter with the marks upon it: the marks' order has no meaning.
        let mut end = from + first.len_utf8();
        while let Some(mark) =
            text[end..].chars().next().filter(|&c| canonical_combining_class(c) != 0)
        {
            end += mark.len_utf8();
        }
        for c in text[from..end].nfd() {
            let written = out.len();
            match c {
                '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
                c if c.is_whitespace() => {
                    if out.ends_with(' ') {
                        if let Some(origin) = origins.last_mut() {
                            origin.end = end;
                        }
                    } else {
                        out.push(' ');
                    }
                }
                '«' | '»' | '“' | '”' | '„' | '‟' | '″' | '＂' => out.push('"'),
                '‘' | '’' | '‚' | '‛' | 'ʼ' | '‹' | '›' | '′' | '＇' => {
                    out.push('\'')
                }
                '‐'..='―' | '−' | '－' => out.push('-'),
                'ﬀ' => out.push_str("ff"),
                'ﬁ' => out.push_str("fi"),
                'ﬂ' => out.push_str("fl"),
                'ﬃ' => out.push_str("ffi"),
                'ﬄ' => out.push_str("ffl"),
                'ﬅ' | 'ﬆ' => out.push_str("st"),
                c => out.push(c),
            }
            origins.extend((written..out.len()).map(|_| from..end));
        }
        from = end;
    }
    drop_blanks_inside_quotation_marks(&mut out, &mut origins);
    (out, origins)
}

/// French sets a blank inside its quotation marks and before high punctuation; others do not.
fn drop_blanks_inside_quotation_marks(out: &mut String, origins: &mut Vec<Range<usize>>) {
    let bytes = std::mem::take(out).into_bytes();
    let old = std::mem::take(origins);
    let beside_mark = |at: usize| {
        let mark = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&b'"');
        mark(at.checked_sub(1)) || mark(Some(at + 1))
    };
    let kept: Vec<usize> =
        (0..bytes.len()).filter(|&at| bytes[at] != b' ' || !beside_mark(at)).collect();
    origins.extend(kept.iter().map(|&at| old[at].clone()));
    // Only blanks, of one byte, were left out: what remains is as valid as before.
    *out = String::from_utf8(kept.iter().map(|&at| bytes[at]).collect()).unwrap_or_default();
}

/// Where `sought` stands in `plain`, in bytes of the text that `plain` was made from. A place that
/// begins or ends within what was one character of the text (half a ligature, a letter without its
/// accent) is none.
pub(super) fn places(sought: &str, plain: &str, origins: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) =
        plain.get(from..).filter(|_| !sought.is_empty()).and_then(|r| r.find(sought))
    {
        let start = from + at;
        let end = start + sought.len();
        let apart = |at: usize| at == 0 || at >= origins.len() || origins[at - 1] != origins[at];
        let whole = apart(start) && apart(end);
        if let (true, Some(first), Some(last)) = (whole, origins.get(start), origins.get(end - 1)) {
            places.push(first.start..last.end);
        }
        from = start + plain[start..].chars().next().map_or(1, char::len_utf8);
    }
    places
}
