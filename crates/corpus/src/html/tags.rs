//! Where the tags of a page are, for what must be rewritten before it is parsed.

/// A stretch of a page; all of them together are the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A start tag, with its `<` and `>`.
    Start {
        /// All of it.
        raw: &'a str,
        /// Its name as written.
        name: &'a str,
    },
    /// An end tag.
    End {
        /// All of it.
        raw: &'a str,
        /// Its name as written.
        name: &'a str,
    },
    /// What is in a CDATA section.
    Cdata(&'a str),
    /// Text, comments, scripts.
    Other(&'a str),
}

/// The pieces of a page. In XHTML an empty-element tag has no content, and there are CDATA sections.
pub(super) struct Pieces<'a> {
    rest: &'a str,
    xhtml: bool,
    /// Name of the script or style sheet that `rest` is the content of.
    raw_text: Option<&'a str>,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(page: &'a str, xhtml: bool) -> Self {
        Pieces { rest: page, xhtml, raw_text: None }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (piece, rest) = self.rest.split_at(length);
        self.rest = rest;
        piece
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some(name) = self.raw_text.take() {
            let end = end_of_raw_text(self.rest, name);
            if end > 0 {
                return Some(Piece::Other(self.take(end)));
            }
        }
        let Some(at) = self.rest.find('<') else {
            return Some(Piece::Other(self.take(self.rest.len())));
        };
        if at > 0 {
            return Some(Piece::Other(self.take(at)));
        }
        if self.rest.starts_with("<!--") {
            let end = self.rest.find("-->").map_or(self.rest.len(), |end| end + 3);
            return Some(Piece::Other(self.take(end)));
        }
        if self.xhtml && self.rest.starts_with("<![CDATA[") {
            let end = self.rest.find("]]>").map_or(self.rest.len(), |end| end + 3);
            let section = self.take(end);
            let inner = section.strip_prefix("<![CDATA[").unwrap_or_default();
            return Some(Piece::Cdata(inner.strip_suffix("]]>").unwrap_or(inner)));
        }
        let is_end = self.rest.starts_with("</");
        let after = &self.rest[if is_end { 2 } else { 1 }..];
        let length = match after.chars().next() {
            Some(first) if first.is_ascii_alphabetic() => tag_length(self.rest),
            _ => None,
        };
        let Some(length) = length else {
            return Some(Piece::Other(self.take(1)));
        };
        let end = after
            .find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>')
            .unwrap_or(after.len());
        let name = &after[..end];
        let raw = self.take(length);
        if is_end {
            return Some(Piece::End { raw, name });
        }
        let is_raw_text = ["script", "style"].iter().any(|raw| name.eq_ignore_ascii_case(raw));
        if is_raw_text && !(self.xhtml && raw.ends_with("/>")) {
            self.raw_text = Some(name);
        }
        Some(Piece::Start { raw, name })
    }
}

/// Bytes of a tag, quoted `>` passed over; nothing if it never ends.
fn tag_length(rest: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in rest.bytes().enumerate() {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            None if byte == b'>' => return Some(at + 1),
            None => {}
        }
    }
    // An unbalanced quotation mark, as in <p title=it's>.
    rest.find('>').map(|at| at + 1)
}

/// Where the end tag of a script or style sheet begins.
fn end_of_raw_text(rest: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let after = &rest[from + at + 2..];
        if after.get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name)) {
            return from + at;
        }
        from += at + 2;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn raw<'a>(piece: &Piece<'a>) -> &'a str {
        match piece {
            Piece::Start { raw, .. } | Piece::End { raw, .. } => raw,
            Piece::Cdata(text) | Piece::Other(text) => text,
        }
    }

    #[test]
    fn finds_tags() {
        let page = "a<p title='x>y'>b<!-- <i> --></P ><script>'<b>'</script>1 < 2 <br/>";
        let tags: Vec<&str> = Pieces::of(page, false)
            .filter(|piece| matches!(piece, Piece::Start { .. } | Piece::End { .. }))
            .map(|piece| raw(&piece))
            .collect();
        assert_eq!(tags, ["<p title='x>y'>", "</P >", "<script>", "</script>", "<br/>"]);
    }

    #[test]
    fn an_unbalanced_quotation_mark_takes_no_long() {
        let page = "<p title=it's>".repeat(3) + &"<a b='".repeat(2_000);
        assert!(Pieces::of(&page, false).count() > 3);
    }

    proptest! {
        #[test]
        fn pieces_are_the_page(page in "(<|>|/|!|--|style|a|é|\"|'| |<p>|</script>){0,40}") {
            let pieces: String = Pieces::of(&page, false).map(|piece| raw(&piece)).collect();
            prop_assert_eq!(pieces, page);
        }
    }
}
