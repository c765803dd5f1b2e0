//! XHTML as an HTML parser needs it.
//!
//! The parser is an HTML parser, since most pages that call themselves XHTML are not well-formed. To
//! it `<title/>` and `<script src="…"/>` are open tags that swallow the rest of the page, `<a id="x"/>`
//! an anchor without end, and a CDATA section a comment. Both are rewritten before parsing.

use std::borrow::Cow;

use super::tags::{Piece, Pieces};

/// Elements that are written without an end tag in HTML too.
const VOID: &[&str] = &[
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
];

/// Whether the page says that it is XHTML.
fn is_xhtml(page: &str) -> bool {
    let end = page.char_indices().nth(2000).map_or(page.len(), |(at, _)| at);
    let head = &page[..end];
    head.trim_start().starts_with("<?xml") || head.contains("http://www.w3.org/1999/xhtml")
}

/// The page with empty-element tags spelt out and CDATA sections as text.
pub(super) fn for_html_parser(page: &str) -> Cow<'_, str> {
    if !is_xhtml(page) || !(page.contains("/>") || page.contains("<![CDATA[")) {
        return Cow::Borrowed(page);
    }
    let mut out = String::with_capacity(page.len() + page.len() / 16);
    for piece in Pieces::of(page, true) {
        match piece {
            Piece::Start { raw, name } => match raw.strip_suffix("/>") {
                Some(open) if !VOID.iter().any(|void| name.eq_ignore_ascii_case(void)) => {
                    out.push_str(open);
                    out.push_str("></");
                    out.push_str(name);
                    out.push('>');
                }
                _ => out.push_str(raw),
            },
            Piece::End { raw, .. } => out.push_str(raw),
            Piece::Cdata(text) => out.push_str(&text.replace('&', "&amp;").replace('<', "&lt;")),
            Piece::Other(text) => out.push_str(text),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\">";

    #[test]
    fn spells_out_empty_elements() {
        let page =
            format!("{HEAD}<title/><script src='a>b'/><p>a<a id=\"x\" />b<br/>c</p><!-- <a/> -->");
        let expected = format!(
            "{HEAD}<title></title><script src='a>b'></script><p>a<a id=\"x\" ></a>b<br/>c</p><!-- <a/> -->"
        );
        assert_eq!(for_html_parser(&page), expected);
    }

    #[test]
    fn keeps_cdata_as_text_and_scripts_as_they_are() {
        let page =
            format!("{HEAD}<p><![CDATA[a < b & c]]></p><script>if (a) x = '<b/>';</script><i/>");
        let expected =
            format!("{HEAD}<p>a &lt; b &amp; c</p><script>if (a) x = '<b/>';</script><i></i>");
        assert_eq!(for_html_parser(&page), expected);
    }

    #[test]
    fn leaves_html_alone() {
        let page = "<!doctype html><p>a<b/>c";
        assert!(matches!(for_html_parser(page), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn never_panics(tail in "(<|>|/|!|--|\\[CDATA\\[|\\]\\]>|script|style|a|é|\"|'| ){0,40}") {
            let _ = for_html_parser(&format!("{HEAD}{tail}/>"));
        }
    }
}
