//! Reads the quotations of a page back, for a comparison with the stored texts.

use crate::text::unescape;

/// A quotation as it stands in a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownQuotation {
    /// Id of the document it claims to be from.
    pub document: String,
    /// First byte in the document's canonical text.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// What the reader sees.
    pub text: String,
}

/// Every quotation in a page that this crate has rendered. None where something looks like a
/// quotation and cannot be read: a page that was tampered with, or another program's.
pub fn shown_quotations(html: &str) -> Option<Vec<ShownQuotation>> {
    const OPENING: &str = "<blockquote class=\"quotation\"";
    html.split(OPENING)
        .skip(1)
        .map(|rest| {
            let (attributes, rest) = rest.split_once('>')?;
            let attribute = |name: &str| {
                let (_, value) = attributes.split_once(&format!(" {name}=\""))?;
                Some(unescape(value.split_once('"')?.0))
            };
            let (text, _) = rest.strip_prefix("<p>")?.split_once("</p></blockquote>")?;
            // Text that an escape was forgotten in would be read as markup.
            if text.contains('<') {
                return None;
            }
            Some(ShownQuotation {
                document: attribute("data-document")?,
                start: attribute("data-start")?.parse().ok()?,
                end: attribute("data-end")?.parse().ok()?,
                text: unescape(text),
            })
        })
        .collect()
}
