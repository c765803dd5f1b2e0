//! Puts blocks together to a document; every reader ends here.

use florilegium_files::sha256_hex;

use crate::document::{Block, BlockKind, Document};

/// What stands between two blocks of a canonical text.
pub const SEPARATOR: &str = "\n\n";

/// What a reader has made of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Title as the source states it, if it does.
    pub title: Option<String>,
    /// BCP 47 tag as the source states it, if it does.
    pub language: Option<String>,
    /// Canonical text so far.
    pub text: String,
    /// Blocks of `text`, in order.
    pub blocks: Vec<Block>,
    /// What a reader of the report should know about this file.
    pub warnings: Vec<String>,
}

/// A block without its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBlock {
    /// What it is.
    pub kind: BlockKind,
    /// Headings above it.
    pub headings: Vec<String>,
    /// The nearest `id`.
    pub anchor: Option<String>,
    /// Path of the element.
    pub element: String,
}

impl Content {
    /// Appends a block with this canonical text; a block without text is no block.
    pub fn push(&mut self, text: &str, block: NewBlock) {
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(SEPARATOR);
        }
        let start = self.text.len();
        self.text.push_str(text);
        let NewBlock { kind, headings, anchor, element } = block;
        self.blocks.push(Block { range: start..self.text.len(), kind, headings, anchor, element });
    }

    /// The document, named after its place in the archive.
    pub fn into_document(self, collection: &str, path: &str, language: &str) -> Document {
        let name = path.rsplit('/').next().unwrap_or(path);
        let title = self.title.filter(|title| !title.is_empty());
        Document {
            id: format!("{collection}/{path}"),
            collection: collection.to_owned(),
            path: path.to_owned(),
            title: title.unwrap_or_else(|| name.to_owned()),
            language: language_of(self.language.as_deref(), language),
            text_hash: sha256_hex(self.text.as_bytes()),
            text: self.text,
            blocks: self.blocks,
        }
    }
}

/// The page's language where it is another one than the collection's; of two tags for the same
/// language (`fr-FR`, `fr`) the collection's, since that is the one the archive is asked for.
fn language_of(page: Option<&str>, collection: &str) -> String {
    let primary = |tag: &str| tag.split(['-', '_']).next().unwrap_or(tag).to_ascii_lowercase();
    match page.map(str::trim) {
        Some(page)
            if !page.is_empty()
                && page.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
                && primary(page) != primary(collection) =>
        {
            page.replace('_', "-")
        }
        _ => collection.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::language_of;

    #[test]
    fn language_of_a_page() {
        assert_eq!(language_of(None, "fr"), "fr");
        assert_eq!(language_of(Some("fr-FR"), "fr"), "fr");
        assert_eq!(language_of(Some("en_US"), "fr"), "en-US");
        assert_eq!(language_of(Some("  "), "el"), "el");
        assert_eq!(language_of(Some("<b>"), "el"), "el");
    }
}
