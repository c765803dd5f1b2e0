//! Nesting without sense, cut to size before parsing.
//!
//! For many tags the parser walks up all open elements; a page of a hundred thousand open `div`s would
//! keep it busy for minutes. Browsers stop nesting at some 512 levels, and so does this: deeper blocks
//! become breaks between blocks, deeper inline elements nothing. No text is lost.

use std::borrow::Cow;

use super::rules;
use super::tags::{Piece, Pieces};

/// Levels that are kept.
const LEVELS: usize = 512;
/// What ends a block and has no content.
const BREAK: &str = "<hr>";
/// Unclosed formatting elements that are kept. Careless pages have many, one in another.
const FORMATTING_LEVELS: usize = 4096;

/// Elements that end where the next one begins, closed or not, or have no content.
const NEVER_DEEP: &[&str] = &[
    "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "caption", "colgroup",
    "option", "optgroup", "rt", "rp", "html", "head", "body", "a", "area", "base", "br", "col",
    "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr", "basefont",
    "bgsound", "frame", "keygen",
];

/// Elements that the parser opens again where they were not closed.
const FORMATTING: &[&str] =
    &["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];

/// The page, no deeper than what is kept.
pub(super) fn bounded(page: &str) -> Cow<'_, str> {
    if page.bytes().filter(|&byte| byte == b'<').count() <= LEVELS || !is_deeper(page) {
        return Cow::Borrowed(page);
    }
    let mut out = String::with_capacity(page.len());
    let mut levels = Levels::default();
    for piece in Pieces::of(page, false) {
        let deep = levels.pass(&piece);
        match piece {
            Piece::Start { name, .. } | Piece::End { name, .. } if deep => {
                // One break is as good as many.
                if rules::is_block(&name.to_ascii_lowercase()) && !out.ends_with(BREAK) {
                    out.push_str(BREAK);
                }
            }
            Piece::Start { raw, .. } | Piece::End { raw, .. } => out.push_str(raw),
            Piece::Cdata(text) | Piece::Other(text) => out.push_str(text),
        }
    }
    Cow::Owned(out)
}

fn is_deeper(page: &str) -> bool {
    let mut levels = Levels::default();
    Pieces::of(page, false).any(|piece| levels.pass(&piece))
}

#[derive(Debug, Default)]
struct Levels {
    elements: usize,
    formatting: usize,
}

impl Levels {
    /// Counts a piece, and says whether it is a tag below what is kept.
    fn pass(&mut self, piece: &Piece<'_>) -> bool {
        let (Piece::Start { name, .. } | Piece::End { name, .. }) = piece else {
            return false;
        };
        let is = |names: &[&str]| names.iter().any(|other| name.eq_ignore_ascii_case(other));
        let starts = matches!(piece, Piece::Start { .. });
        if is(FORMATTING) {
            if starts {
                self.formatting += 1;
            }
            let deep = self.formatting > FORMATTING_LEVELS || self.elements > LEVELS;
            if !starts {
                self.formatting = self.formatting.saturating_sub(1);
            }
            return deep;
        }
        let deep = self.elements > LEVELS;
        if is(NEVER_DEEP) {
            return deep;
        }
        if starts {
            self.elements += 1;
            self.elements > LEVELS
        } else {
            self.elements = self.elements.saturating_sub(1);
            deep
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_pages_alone() {
        let flat = "<ul><li>x<p>y<a name=z></ul><div><b>x</b></div><font>".repeat(2_000);
        assert!(matches!(bounded(&flat), Cow::Borrowed(_)));
    }

    #[test]
    fn cuts_what_is_too_deep() {
        let page =
            format!("{}x{}<p>y</p>", "<div>".repeat(LEVELS + 2), "</div>".repeat(LEVELS + 2));
        let cut = bounded(&page);
        assert_eq!(cut.matches("<div>").count(), LEVELS);
        assert_eq!(cut.matches("</div>").count(), LEVELS);
        assert!(cut.contains("<hr>x<hr></div>") && cut.ends_with("</div><p>y</p>"));
    }
}
