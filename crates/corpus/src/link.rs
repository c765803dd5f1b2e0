//! Deep links: a collection's URL pattern, filled in.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::document::{Collection, Document};

/// Everything but the characters that RFC 3986 leaves unreserved.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same, and `/` between the segments of a path.
const PATH: &AsciiSet = &SEGMENT.remove(b'/');

impl Collection {
    /// The public address of a place in a document: the document's own address, if it has one, else
    /// the collection's pattern filled in.
    pub fn link_to(&self, document: &Document, anchor: Option<&str>) -> String {
        match &document.meta.url {
            Some(url) => url.clone(),
            None => self.link(&document.path, anchor),
        }
    }

    /// The public address of a place: `{path}` and `{anchor}` of the URL pattern replaced,
    /// percent-encoded. `{stem}` is the path without its last extension, for sites that put the
    /// language before it (`{stem}.fr.html`). Without an anchor, `#{anchor}` goes away whole.
    pub fn link(&self, path: &str, anchor: Option<&str>) -> String {
        let encoded = utf8_percent_encode(path, PATH).to_string();
        let stem = match encoded.rfind('.') {
            Some(dot) if !encoded[dot..].contains('/') => &encoded[..dot],
            _ => &encoded,
        };
        let anchor = anchor.filter(|anchor| !anchor.is_empty());
        let fragment = anchor.map(|anchor| utf8_percent_encode(anchor, SEGMENT).to_string());
        let pattern = match &fragment {
            Some(_) => self.url.clone(),
            None => self.url.replace("#{anchor}", ""),
        };
        // One pass, so that a path that holds the text "{anchor}" is not filled in again.
        let mut link = String::with_capacity(pattern.len() + encoded.len());
        let mut rest = pattern.as_str();
        while let Some(open) = rest.find('{') {
            link.push_str(&rest[..open]);
            rest = &rest[open..];
            let filled = [
                ("{path}", encoded.as_str()),
                ("{stem}", stem),
                ("{anchor}", fragment.as_deref().unwrap_or_default()),
            ];
            match filled.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    link.push_str(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    link.push('{');
                    rest = &rest[1..];
                }
            }
        }
        link.push_str(rest);
        link
    }
}

#[cfg(test)]
mod tests {
    use crate::document::{Collection, Role};

    fn collection(url: &str) -> Collection {
        Collection {
            id: "c".into(),
            title: "C".into(),
            path: "unused".into(),
            language: "fr".into(),
            role: Role::Synthesis,
            licence: "CC0".into(),
            url: url.into(),
            exclude: vec![],
            format: None,
            encoding: None,
            reading: Default::default(),
            braces: false,
            metadata: None,
        }
    }

    #[test]
    fn fills_and_encodes() {
        let c = collection("https://x.org/fr/{path}#{anchor}");
        assert_eq!(
            c.link("a/b c#1?.html", Some("é x")),
            "https://x.org/fr/a/b%20c%231%3F.html#%C3%A9%20x"
        );
        assert_eq!(c.link("a.html", None), "https://x.org/fr/a.html");
        assert_eq!(c.link("a.html", Some("")), "https://x.org/fr/a.html");
        assert_eq!(c.link("{anchor}.html", Some("s")), "https://x.org/fr/%7Banchor%7D.html#s");
    }

    #[test]
    fn puts_the_language_before_the_extension() {
        let c = collection("https://x.org/{stem}.el.html#{anchor}");
        assert_eq!(c.link("ch02s01.html", Some("idm1")), "https://x.org/ch02s01.el.html#idm1");
        assert_eq!(c.link("a.b/readme", None), "https://x.org/a.b/readme.el.html");
    }

    #[test]
    fn a_document_with_an_address_of_its_own_keeps_it() {
        let mut document = crate::plain::read("Text.").into_document("c", "a.jsonl/7", "fr");
        let c = collection("https://x.org/{path}");
        assert_eq!(c.link_to(&document, None), "https://x.org/a.jsonl/7");
        document.meta.url = Some("https://y.org/7".into());
        assert_eq!(c.link_to(&document, Some("s")), "https://y.org/7");
    }

    #[test]
    fn leaves_other_braces_alone() {
        assert_eq!(
            collection("https://x.org/{other}/{path}").link("p", None),
            "https://x.org/{other}/p"
        );
    }
}
