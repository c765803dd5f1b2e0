//! What a canonical text is.
//!
//! - Unicode NFC. Letters are otherwise left as they are: ligatures (ﬁ), long s (ſ) and typographic
//!   quotation marks stay, since a quotation must show what the source says.
//! - White space inside a block collapses to one space. The no-break space (U+00A0) and the narrow
//!   no-break space (U+202F) are typography, before `! ? ; :` and inside « » for example: they are
//!   kept, and a run that holds one becomes that one alone. White space at either end goes.
//! - Characters that cannot be seen go: soft hyphens, zero-width characters, control characters,
//!   marks and overrides of direction, tags, noncharacters. The two joiners (U+200C, U+200D) stay
//!   where they change what is read: inside emoji and between letters of scripts that join.
//! - A soft hyphen at the end of a line says that the word goes on: the line break goes with it.
//! - In preformatted blocks line breaks and runs of spaces stay; tabs become spaces to the next
//!   multiple of eight; at most one blank line in a row is kept, none at either end, and no space at
//!   the end of a line.

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::sentence::floor;

/// Distance between tab stops in preformatted text, as browsers and terminals show it.
const TAB: usize = 8;

/// The canonical text of a block of running text.
pub fn line(raw: &str) -> String {
    line_with(raw, &mut [])
}

/// The canonical text of a block of running text. The ascending byte positions `marks` in `raw`
/// become those in the result at which what followed them now stands.
pub fn line_with(raw: &str, marks: &mut [usize]) -> String {
    let clean = visible(raw, marks);
    let mut out = String::with_capacity(clean.len());
    let mut gap: Option<char> = None;
    let mut next = 0;
    for (at, c) in clean.char_indices() {
        if c.is_whitespace() {
            let kept = if is_no_break_space(c) { c } else { ' ' };
            match gap {
                None | Some(' ') => gap = Some(kept),
                Some(_) => {}
            }
        } else {
            if let Some(space) = gap.take()
                && !out.is_empty()
            {
                out.push(space);
            }
            settle(marks, &mut next, at, out.len());
            out.push(c);
        }
    }
    settle(marks, &mut next, usize::MAX, out.len());
    out
}

/// The canonical text of a block whose line breaks count.
pub fn preformatted(raw: &str) -> String {
    preformatted_with(raw, &mut [])
}

/// The same, with marks as in [`line_with`]; they come to stand at the beginning of a line.
pub fn preformatted_with(raw: &str, marks: &mut [usize]) -> String {
    let clean = visible(raw, marks);
    let mut out = String::with_capacity(clean.len());
    let mut blank = 0usize;
    let mut next = 0;
    let mut end = 0;
    for source in clean.split(LINE_ENDS) {
        end += source.len() + clean[end + source.len()..].chars().next().map_or(0, char::len_utf8);
        let mut text = String::with_capacity(source.len());
        let mut column = 0usize;
        for c in source.chars() {
            if c == '\t' {
                let stop = (column / TAB + 1) * TAB;
                text.extend(std::iter::repeat_n(' ', stop - column));
                column = stop;
            } else {
                text.push(if c.is_whitespace() && !is_no_break_space(c) { ' ' } else { c });
                column += 1;
            }
        }
        let text = text.trim_end();
        if text.is_empty() {
            blank += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if blank > 0 { "\n\n" } else { "\n" });
        }
        blank = 0;
        settle(marks, &mut next, end - 1, out.len());
        out.push_str(text);
    }
    settle(marks, &mut next, usize::MAX, out.len());
    out
}

/// What ends a line of preformatted text.
const LINE_ENDS: [char; 6] = ['\n', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Gives the marks from `next` on that stand at or before `at` their new position.
fn settle(marks: &mut [usize], next: &mut usize, at: usize, position: usize) {
    while let Some(mark) = marks.get_mut(*next).filter(|mark| **mark <= at) {
        *mark = position;
        *next += 1;
    }
}

/// NFC without the characters that cannot be seen; white space is left as it is, `\r` aside. Marks
/// move with the text.
fn visible(raw: &str, marks: &mut [usize]) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut skip_to = 0usize;
    let mut next = 0;
    for (at, c) in raw.char_indices() {
        if at < skip_to {
            continue;
        }
        settle(marks, &mut next, at, out.len());
        let rest = &raw[at + c.len_utf8()..];
        match c {
            '\r' => {
                if !rest.starts_with('\n') {
                    out.push('\n');
                }
            }
            '\u{ad}' => {
                if let Some(taken) = line_break_inside_word(&out, rest) {
                    skip_to = raw.len() - rest.len() + taken;
                }
            }
            '\u{200c}' | '\u{200d}' => {
                if joiner_matters(out.chars().next_back(), rest.chars().next()) {
                    out.push(c);
                }
            }
            _ if is_unseen(c) => {}
            _ => out.push(c),
        }
    }
    settle(marks, &mut next, usize::MAX, out.len());
    if is_nfc(&out) { out } else { composed(&out, marks) }
}

/// NFC of a text, its marks moved along.
fn composed(text: &str, marks: &mut [usize]) -> String {
    let whole: String = text.nfc().collect();
    let (mut from, mut length) = (0, 0);
    for mark in marks {
        // A mark never parts a letter from its accents, so that the parts compose as the whole does.
        let rest = &text[*mark..];
        let accents = rest.find(|c| !is_combining_mark(c)).unwrap_or(rest.len());
        let to = (*mark + accents).max(from);
        length += text[from..to].nfc().map(char::len_utf8).sum::<usize>();
        from = to;
        // Where they do not (the parts of a Hangul syllable), the position is a character's at least.
        *mark = floor(&whole, length);
    }
    whole
}

/// Bytes of white space to drop after a soft hyphen that stands before a line break in a word.
fn line_break_inside_word(before: &str, after: &str) -> Option<usize> {
    let word = after.trim_start_matches(char::is_whitespace);
    let gap = &after[..after.len() - word.len()];
    let broken = gap.contains('\n')
        && before.chars().next_back().is_some_and(char::is_alphabetic)
        && word.chars().next().is_some_and(char::is_lowercase);
    broken.then_some(gap.len())
}

/// The white space that canonical text keeps as it is.
pub fn is_no_break_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{202f}')
}

/// Characters without a shape of their own that a canonical text never holds.
pub fn is_unseen(c: char) -> bool {
    let control = c.is_control() && !c.is_whitespace();
    control
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || (c as u32) & 0xfffe == 0xfffe
}

/// Whether a joiner between these two changes what is read.
fn joiner_matters(before: Option<char>, after: Option<char>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return false;
    };
    (is_pictograph(before) && is_pictograph(after)) || (joins(before) && joins(after))
}

/// Emoji, and what may stand at the end of one (skin tone, presentation).
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{fe0f}' | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Letters and marks of the scripts whose spelling uses the joiners: Arabic and its kin, the Indic
/// scripts and their neighbours, Mongolian.
fn joins(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{18af}'
        | '\u{a840}'..='\u{abff}' | '\u{fb50}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}' | '\u{10a00}'..='\u{11fff}' | '\u{1e900}'..='\u{1e95f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn collapses_white_space() {
        assert_eq!(line("  a \t\r\n b\u{2009}c\u{3000}d  "), "a b c d");
        assert_eq!(line("\u{a0}\u{a0}"), "");
    }

    #[test]
    fn keeps_no_break_spaces() {
        assert_eq!(
            line("Quoi\u{202f}! «\u{a0}Oui\u{a0}»\u{a0}: non"),
            "Quoi\u{202f}! «\u{a0}Oui\u{a0}»\u{a0}: non"
        );
        assert_eq!(line("a\u{a0}\n b"), "a\u{a0}b");
        assert_eq!(line("a \u{202f}\u{a0} b"), "a\u{202f}b");
    }

    #[test]
    fn removes_what_cannot_be_seen() {
        assert_eq!(
            line("in\u{ad}for\u{200b}ma\u{2060}tion\u{feff}\u{0}\u{7}\u{9f}"),
            "information"
        );
        assert_eq!(line("a\u{202e}b\u{202c}\u{200f}c\u{2067}\u{e0041}\u{fffe}"), "abc");
        assert_eq!(line("abc \u{200b} def"), "abc def");
    }

    #[test]
    fn joins_a_word_broken_at_a_soft_hyphen() {
        assert_eq!(line("infor\u{ad}\n   mation"), "information");
        assert_eq!(line("infor\u{ad}\r\nmation"), "information");
        assert_eq!(line("a\u{ad} b"), "a b");
        assert_eq!(line("fin\u{ad}\nDébut"), "fin Début");
    }

    #[test]
    fn composes() {
        assert_eq!(line("e\u{301}te\u{301}"), "été");
        // Oxia becomes tonos; the Greek question mark and ano teleia become ; and the middle dot.
        assert_eq!(line("\u{1f71}\u{37e}\u{387}"), "\u{3ac};\u{b7}");
        // Polytonic: alpha, psili, oxia, iota below.
        assert_eq!(line("\u{3b1}\u{313}\u{301}\u{345}"), "\u{1f84}");
        // A character that goes must not keep its neighbours from composing.
        assert_eq!(line("e\u{200b}\u{301}"), "é");
    }

    #[test]
    fn keeps_letters_as_they_are() {
        assert_eq!(line("ﬁn eﬀet oﬃce ſtatue œuvre"), "ﬁn eﬀet oﬃce ſtatue œuvre");
        assert_eq!(line("שלום عليكم"), "שלום عليكم");
    }

    #[test]
    fn keeps_joiners_that_matter() {
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(line(family), family);
        assert_eq!(line("❤\u{fe0f}\u{200d}🔥"), "❤\u{fe0f}\u{200d}🔥");
        assert_eq!(line("می\u{200c}خواهم"), "می\u{200c}خواهم");
        assert_eq!(line("a\u{200d}b\u{200c}c"), "abc");
    }

    #[test]
    fn keeps_lines_of_preformatted_text() {
        assert_eq!(preformatted("\n\n# a  \n\tb\n\n\n\n  c\t\n \n"), "# a\n        b\n\n  c");
        assert_eq!(preformatted("ab\tc\r\nd"), "ab      c\nd");
        assert_eq!(preformatted(" \n\t\n"), "");
    }

    proptest! {
        #[test]
        fn is_stable_and_clean(raw in "\\PC{0,40}|[a \u{a0}\u{202f}\u{ad}\u{200b}\u{200d}\n\t\r\u{301}👩é]{0,30}") {
            for (text, again) in [
                (line(&raw), line(&line(&raw))),
                (preformatted(&raw), preformatted(&preformatted(&raw))),
            ] {
                prop_assert_eq!(&text, &again);
                prop_assert!(is_nfc(&text));
                prop_assert!(!text.chars().any(|c| is_unseen(c) || (c.is_control() && c != '\n')));
            }
            prop_assert!(!line(&raw).contains("  ") && line(&raw).trim() == line(&raw));
        }

        #[test]
        fn marks_stay_with_what_follows_them(
            pieces in proptest::collection::vec("[a-zé \u{a0}\u{ad}\u{200b}]{0,4}|[e\u{301}α\u{313}]{1,3}", 0..12),
        ) {
            // The letter behind each mark shows where it went.
            let mut raw = String::new();
            let mut marks = Vec::new();
            for piece in &pieces {
                marks.push(raw.len());
                raw.push('ß');
                raw.push_str(piece);
            }
            let text = line_with(&raw, &mut marks);
            let expected: Vec<usize> = text.match_indices('ß').map(|(at, _)| at).collect();
            prop_assert_eq!(marks, expected);
        }

        #[test]
        fn marks_of_lines_stay_with_their_lines(lines in proptest::collection::vec("[ \t]{0,3}|[ \t]{0,2}ß[a-z ]{0,5}", 0..12)) {
            let mut raw = String::new();
            let mut marks = Vec::new();
            for line in lines.iter() {
                if line.contains('ß') {
                    marks.push(raw.len());
                }
                raw.push_str(line);
                raw.push('\n');
            }
            let text = preformatted_with(&raw, &mut marks);
            let starts: Vec<usize> =
                text.match_indices('ß').map(|(at, _)| text[..at].rfind('\n').map_or(0, |at| at + 1)).collect();
            prop_assert_eq!(marks, starts);
        }
    }
}
