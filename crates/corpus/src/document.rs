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
    /// BCP 47 tag of the collection's language ("fr", "en", "el"); "auto" if each document has its own,
    /// stated in the file or told from its text.
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
    /// How all its files are read; when not given, each file tells by its extension or its content.
    #[serde(default)]
    pub format: Option<Format>,
    /// Encoding of the files that do not state theirs, as "windows-1253".
    #[serde(default)]
    pub encoding: Option<String>,
    /// Which wording a TEI text gives where it has two.
    #[serde(default)]
    pub reading: Reading,
    /// Whether words in braces are marks in plain text (`{17a}`): pages if they hold a number.
    #[serde(default)]
    pub braces: bool,
    /// A CSV with the columns `path` and any of `title, author, date, edition, licence, language,
    /// url`. What it says goes before what the files say.
    #[serde(default)]
    pub metadata: Option<PathBuf>,
}

/// A kind of file that is read; any of them may be packed with gzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// HTML and XHTML.
    Html,
    /// Plain text.
    Text,
    /// TEI XML.
    Tei,
    /// CommonMark with tables, footnotes and front matter.
    Markdown,
    /// EPUB 2 and 3.
    Epub,
    /// PDF that holds text.
    Pdf,
    /// One JSON object a line: `id, title, text, url, lang, author, date, edition, licence`.
    Jsonl,
}

/// Which wording is read where a text gives the original and an edited one: `orig`, `sic` and
/// `abbr`, or `reg`, `corr` and `expan`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// What the source has: a quotation shows what stands there.
    #[default]
    Original,
    /// What the editors made of it.
    Edited,
}

/// What is known of a document beside its title and language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Who wrote it.
    pub author: Option<String>,
    /// When this text was printed or written, as the source puts it.
    pub date: Option<String>,
    /// Which edition it is.
    pub edition: Option<String>,
    /// Its licence, where it is not the collection's.
    pub licence: Option<String>,
    /// Its own address, which goes before the collection's pattern.
    pub url: Option<String>,
    /// How sure the language is, in per cent, if neither the source nor the archive states it.
    pub language_confidence: Option<u8>,
}

impl Metadata {
    /// The first year in the date: four digits in a row.
    pub fn year(&self) -> Option<&str> {
        let date = self.date.as_deref()?;
        date.split(|c: char| !c.is_ascii_digit()).find(|digits| digits.len() == 4)
    }
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
    /// Author, date and the like.
    pub meta: Metadata,
    /// Lines, pages and notes of `text`.
    pub map: SourceMap,
}

/// Where lines and pages of the source begin in the canonical text, and where notes hang. Each list
/// is sorted by place; a line or page goes on until the next one begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMap {
    /// Byte in the canonical text, and the line of the source file (from 1) that begins there.
    pub lines: Vec<(usize, u32)>,
    /// Byte in the canonical text, and the name of the page that begins there: the printed one where
    /// the source states it, else its number.
    pub pages: Vec<(usize, String)>,
    /// Byte in the canonical text at which the mark of a note stood, and the index of the note's
    /// first block.
    pub notes: Vec<(usize, usize)>,
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
    /// Code, or anything else whose line breaks and spaces count.
    Preformatted,
    /// Verse: sentences in lines that count.
    Verse,
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
    /// First and last line in the source file, from 1, where its reader knows them.
    pub lines: Option<(u32, u32)>,
    /// First and last page, where the source has pages.
    pub pages: Option<(String, String)>,
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
    /// Which of `sentences` are only parts of one that is too long for a passage.
    pub parts: Vec<usize>,
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
        let first = self.blocks.partition_point(|block| block.range.end <= range.start);
        self.blocks[first..]
            .iter()
            .take_while(|block| block.range.start < range.end)
            .map(|block| {
                let inside = block.range.start.max(range.start)..block.range.end.min(range.end);
                self.place_in(block, &inside)
            })
            .collect()
    }

    /// Where `range` stands in the source: the element that it begins in, all its lines and pages.
    /// There is one for every range that is not empty and inside the text.
    pub fn place(&self, range: &Range<usize>) -> Option<Place> {
        if range.is_empty() || range.end > self.text.len() {
            return None;
        }
        // Between two blocks, the one before.
        let after = self.blocks.partition_point(|block| block.range.start <= range.start);
        Some(self.place_in(self.blocks.get(after.checked_sub(1)?)?, range))
    }

    fn place_in(&self, block: &Block, range: &Range<usize>) -> Place {
        let last = range.end.saturating_sub(1);
        let line = |at| in_force(&self.map.lines, at).copied();
        let page = |at| in_force(&self.map.pages, at).cloned();
        Place {
            path: self.path.clone(),
            element: block.element.clone(),
            anchor: block.anchor.clone(),
            lines: line(range.start).zip(line(last)),
            pages: page(range.start).zip(page(last)),
        }
    }

    /// The first blocks of the notes whose marks stand in `range` or at its end, in order.
    pub fn notes(&self, range: &Range<usize>) -> Vec<&Block> {
        let marks = &self.map.notes;
        let first = marks.partition_point(|(at, _)| *at <= range.start);
        marks[first..]
            .iter()
            .take_while(|(at, _)| *at <= range.end)
            .filter_map(|(_, block)| self.blocks.get(*block))
            .collect()
    }
}

/// What began at or before `at` last.
fn in_force<T>(marks: &[(usize, T)], at: usize) -> Option<&T> {
    let after = marks.partition_point(|(begin, _)| *begin <= at);
    marks.get(after.checked_sub(1)?).map(|(_, value)| value)
}
