//! What an archive is made of: collections, documents, blocks and passages.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a collection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Its passages feed answers, and are searched.
    Synthesis,
    /// Its passages are searched, and never quoted in an answer.
    Search,
}

/// A collection as the pipeline file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Short name, unique in the archive; part of every document's id.
    pub id: String,
    /// Name shown to readers.
    pub title: String,
    /// Folder that holds the files.
    pub path: PathBuf,
    /// BCP 47 tag of the collection's language ("fr", "en", "el").
    pub language: String,
    /// What the collection is for.
    pub role: Role,
    /// Licence line shown beside every quotation.
    pub licence: String,
    /// Deep link to a place in a document; `{path}` and `{anchor}` are replaced.
    pub url: String,
    /// File names (or `folder/name` paths) left out; `*` stands for any run of characters.
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// One text of the archive. Its canonical text is never edited; every position is a byte range in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// `collection/path`, unique in the archive.
    pub id: String,
    /// Id of the collection.
    pub collection: String,
    /// Path of the source file below the collection's folder, with `/`.
    pub path: String,
    /// Title, from the document itself.
    pub title: String,
    /// BCP 47 tag.
    pub language: String,
    /// Canonical text: NFC, blocks separated by a blank line, white space inside a block collapsed.
    pub text: String,
    /// SHA-256 of `text`, hexadecimal.
    pub text_hash: String,
    /// The blocks of `text`, in order; they cover it but for the blank lines between them.
    pub blocks: Vec<Block>,
}

/// What a block is in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockKind {
    /// A heading of this level, 1 to 6.
    Heading(u8),
    /// Running text.
    Paragraph,
    /// A list item, or a definition.
    Item,
    /// A row of a table, cells separated by " | ".
    Row,
    /// Code or verse whose line breaks count.
    Preformatted,
    /// A footnote, kept apart from the sentence it hangs on.
    Note,
}

/// A stretch of the canonical text that was one block in the source; also the source map's unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Bytes in the canonical text.
    pub range: Range<usize>,
    /// What it is.
    pub kind: BlockKind,
    /// Headings above it, outermost first, without the document's title.
    pub headings: Vec<String>,
    /// The nearest `id` at or before it in the source, for a deep link.
    pub anchor: Option<String>,
    /// Path of the element in the source, as `body/div[2]/p[3]`.
    pub element: String,
}

/// Where a range of the canonical text stands in its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Path of the source file below the collection's folder.
    pub path: String,
    /// Path of the element.
    pub element: String,
    /// The nearest `id`, for a deep link.
    pub anchor: Option<String>,
}

/// A range of a canonical text that is retrieved, judged and quoted from: whole sentences under one
/// heading path, within a token budget. Passages do not overlap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// `document#xxxxxxxxxxxx`: the document and the start of the text's hash (and `-2`, `-3` … when
    /// a document says the same thing again). An edit elsewhere leaves it as it is.
    pub id: String,
    /// Id of the document.
    pub document: String,
    /// Id of the collection.
    pub collection: String,
    /// BCP 47 tag.
    pub language: String,
    /// Bytes in the document's canonical text.
    pub range: Range<usize>,
    /// The sentences, as bytes in the document's canonical text; in order, inside `range`.
    pub sentences: Vec<Range<usize>>,
    /// Headings above it, outermost first, without the document's title.
    pub headings: Vec<String>,
    /// The nearest `id` in the source, for a deep link.
    pub anchor: Option<String>,
    /// SHA-256 of the passage's text, hexadecimal. Equal in editions that say the same.
    pub text_hash: String,
    /// Tokens of the text, counted with the embedding model's tokenizer.
    pub tokens: usize,
}

impl Document {
    /// The canonical text of `range`, or nothing when it is not a range of whole characters here.
    pub fn slice(&self, range: &Range<usize>) -> Option<&str> {
        self.text.get(range.clone())
    }

    /// Where the blocks that `range` touches stand in the source, in order.
    pub fn places(&self, range: &Range<usize>) -> Vec<Place> {
        self.blocks
            .iter()
            .filter(|block| block.range.start < range.end && range.start < block.range.end)
            .map(|block| Place {
                path: self.path.clone(),
                element: block.element.clone(),
                anchor: block.anchor.clone(),
            })
            .collect()
    }
}
