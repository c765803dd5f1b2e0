//! Puts blocks together to a document; every reader ends here.

use std::collections::HashMap;

use florilegium_files::sha256_hex;

use crate::canonical;
use crate::document::{Block, BlockKind, Document, Metadata, SourceMap};
use crate::language;

/// What stands between two blocks of a canonical text.
pub const SEPARATOR: &str = "\n\n";
/// What joins the cells of a row.
pub(crate) const CELLS: &str = " | ";
/// As the language of a collection: each document's own.
pub const AUTO: &str = "auto";

/// What a reader has made of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Title as the source states it, if it does.
    pub title: Option<String>,
    /// BCP 47 tag as the source states it, if it does.
    pub language: Option<String>,
    /// Author, date and the like, as the source states them.
    pub meta: Metadata,
    /// Canonical text so far.
    pub text: String,
    /// Blocks of `text`, in order.
    pub blocks: Vec<Block>,
    /// Lines and pages of `text`; the notes are found at the end.
    pub map: SourceMap,
    /// Where a mark stood, and the id of its note.
    pub note_marks: Vec<(usize, String)>,
    /// The first block of each note, by the note's id.
    pub notes: HashMap<String, usize>,
    /// What a reader of the report should know about this file.
    pub warnings: Vec<Remark>,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line in the file, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
}

/// Something that an editor should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Line in the file, from 1, if it is about one.
    pub line: Option<usize>,
    /// What.
    pub message: String,
}

impl From<String> for Remark {
    fn from(message: String) -> Self {
        Remark { line: None, message }
    }
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

/// Something that begins or hangs at a place of a text that is being collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A line of the source.
    Line(u32),
    /// A page.
    Page(String),
    /// The mark of the note with this id.
    Note(String),
}

/// The text of a block as the source has it, and the marks in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Raw {
    text: String,
    marks: Vec<(usize, Mark)>,
}

impl Raw {
    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has neither text nor marks.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.marks.is_empty()
    }

    /// Adds text.
    pub fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a character.
    pub fn push(&mut self, c: char) {
        self.text.push(c);
    }

    /// Sets a mark before what comes next.
    pub fn mark(&mut self, mark: Mark) {
        self.marks.push((self.text.len(), mark));
    }

    /// Takes away the text behind this length.
    pub fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        for (at, _) in self.marks.iter_mut().rev().take_while(|(at, _)| *at > length) {
            *at = length;
        }
    }

    /// Adds text of several lines, the first of which is `line` in the source.
    pub fn push_lines(&mut self, text: &str, mut line: u32) {
        for part in text.split_inclusive('\n') {
            self.mark(Mark::Line(line));
            self.text.push_str(part);
            line = line.saturating_add(1);
        }
    }
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

    /// Makes canonical what was collected and appends it. Gives the canonical text.
    pub fn put(&mut self, raw: Raw, block: NewBlock) -> &str {
        let mut places: Vec<usize> = raw.marks.iter().map(|(at, _)| *at).collect();
        let text = match block.kind {
            BlockKind::Preformatted | BlockKind::Verse => {
                canonical::preformatted_with(&raw.text, &mut places)
            }
            _ => canonical::line_with(&raw.text, &mut places),
        };
        self.push(&text, block);
        let start = self.text.len() - text.len();
        for (at, (_, mark)) in places.into_iter().zip(raw.marks) {
            let at = start + at;
            match mark {
                Mark::Line(line) => begin(&mut self.map.lines, at, line),
                Mark::Page(page) => begin(&mut self.map.pages, at, page),
                Mark::Note(id) => {
                    // A mark hangs on the word before it, not on the one that follows.
                    let hangs = self.text[start..at].trim_end().len();
                    self.note_marks.push((start + hangs, id));
                }
            }
        }
        &self.text[start..]
    }

    /// Says that the block that comes next begins the note with this id.
    pub fn begin_note(&mut self, id: &str) {
        self.note_at(id, self.blocks.len());
    }

    /// Says that this block begins the note with this id.
    pub(crate) fn note_at(&mut self, id: &str, block: usize) {
        self.notes.entry(id.to_owned()).or_insert(block);
    }

    /// Appends another content, whose ids of notes and elements are renamed.
    pub fn append(&mut self, other: Content, rename: impl Fn(&str) -> String) {
        let blocks = self.blocks.len();
        let shift = match (self.text.is_empty(), other.text.is_empty()) {
            (true, _) | (_, true) => self.text.len(),
            _ => {
                self.text.push_str(SEPARATOR);
                self.text.len()
            }
        };
        self.text.push_str(&other.text);
        self.blocks.extend(other.blocks.into_iter().map(|block| Block {
            range: block.range.start + shift..block.range.end + shift,
            ..block
        }));
        let moved = |(at, label)| (at + shift, label);
        self.map.lines.extend(other.map.lines.into_iter().map(|(at, line)| (at + shift, line)));
        self.map.pages.extend(other.map.pages.into_iter().map(moved));
        let marks = other.note_marks.into_iter();
        self.note_marks.extend(marks.map(|(at, id)| (at + shift, rename(&id))));
        let notes = other.notes.into_iter();
        self.notes.extend(notes.map(|(id, block)| (rename(&id), block + blocks)));
        self.warnings.extend(other.warnings);
    }

    /// Leaves out the first `count` blocks.
    pub fn drop_first(&mut self, count: usize) {
        let whole = std::mem::take(self);
        let keep = count..whole.blocks.len();
        *self = whole.only(keep);
    }

    /// Leaves out all but these blocks.
    pub fn only(self, keep: std::ops::Range<usize>) -> Content {
        let start = self.blocks.get(keep.start).map_or(self.text.len(), |block| block.range.start);
        let last = keep.end.checked_sub(1).and_then(|last| self.blocks.get(last));
        let end = last.map_or(start, |block| block.range.end).max(start);
        let inside = |at: usize| (start..=end).contains(&at);
        let blocks = self.blocks.get(keep.clone()).unwrap_or_default().iter().cloned();
        Content {
            text: self.text.get(start..end).unwrap_or_default().to_owned(),
            blocks: blocks
                .map(|block| Block {
                    range: block.range.start - start..block.range.end - start,
                    ..block
                })
                .collect(),
            map: SourceMap {
                lines: cut(self.map.lines, start, end),
                pages: cut(self.map.pages, start, end),
                notes: Vec::new(),
            },
            note_marks: self
                .note_marks
                .into_iter()
                .filter(|(at, _)| inside(*at))
                .map(|(at, id)| (at - start, id))
                .collect(),
            notes: self
                .notes
                .into_iter()
                .filter(|(_, block)| keep.contains(block))
                .map(|(id, block)| (id, block - keep.start))
                .collect(),
            title: self.title,
            language: self.language,
            meta: self.meta,
            warnings: self.warnings,
        }
    }

    /// The document, named after its place in the archive.
    pub fn into_document(self, collection: &str, path: &str, language: &str) -> Document {
        let name = path.rsplit('/').next().unwrap_or(path);
        let title = self.title.filter(|title| !title.is_empty());
        let mut meta = self.meta;
        let language = match language_of(self.language.as_deref(), language) {
            tag if tag == AUTO => {
                let (tag, confidence) = language::guess(&self.text);
                meta.language_confidence = Some(confidence);
                tag
            }
            tag => tag,
        };
        let mut map = self.map;
        // A note without text has no block.
        let notes = |id: &str| self.notes.get(id).copied().filter(|at| *at < self.blocks.len());
        map.notes = self.note_marks.iter().filter_map(|(at, id)| Some((*at, notes(id)?))).collect();
        Document {
            id: format!("{collection}/{path}"),
            collection: collection.to_owned(),
            path: path.to_owned(),
            title: title.unwrap_or_else(|| name.to_owned()),
            language,
            text_hash: sha256_hex(self.text.as_bytes()),
            text: self.text,
            blocks: self.blocks,
            meta,
            map,
        }
    }
}

/// Notes that something begins at `at`; what began at the same place is over already.
fn begin<T: PartialEq>(marks: &mut Vec<(usize, T)>, at: usize, value: T) {
    match marks.last_mut() {
        Some((_, last)) if *last == value => {}
        Some((place, last)) if *place == at => *last = value,
        _ => marks.push((at, value)),
    }
}

/// The marks of a part of a text; what was in force at its start begins there.
fn cut<T>(marks: Vec<(usize, T)>, start: usize, end: usize) -> Vec<(usize, T)> {
    let first = marks.partition_point(|(at, _)| *at <= start).saturating_sub(1);
    marks
        .into_iter()
        .skip(first)
        .take_while(|(at, _)| *at <= end)
        .map(|(at, value)| (at.saturating_sub(start), value))
        .collect()
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
    use super::*;

    #[test]
    fn language_of_a_page() {
        assert_eq!(language_of(None, "fr"), "fr");
        assert_eq!(language_of(Some("fr-FR"), "fr"), "fr");
        assert_eq!(language_of(Some("en_US"), "fr"), "en-US");
        assert_eq!(language_of(Some("  "), "el"), "el");
        assert_eq!(language_of(Some("<b>"), "el"), "el");
    }

    fn block(kind: BlockKind) -> NewBlock {
        NewBlock { kind, headings: vec![], anchor: None, element: "p".into() }
    }

    fn sample() -> Content {
        let mut content = Content::default();
        for (line, (page, text)) in [("i", "One  two."), ("ii", "Three.")].into_iter().enumerate() {
            let mut raw = Raw::default();
            raw.mark(Mark::Page(page.into()));
            raw.push_lines(text, line as u32 + 1);
            raw.mark(Mark::Note("n".into()));
            content.put(raw, block(BlockKind::Paragraph));
        }
        content.begin_note("n");
        content.push("The note.", block(BlockKind::Note));
        content
    }

    #[test]
    fn marks_lead_back_to_lines_pages_and_notes() {
        let document = sample().into_document("c", "a.txt", "en");
        let three = document.text.find("Three").unwrap();
        let place = document.place(&(4..three + 5)).unwrap();
        assert_eq!(place.lines, Some((1, 2)));
        assert_eq!(place.pages, Some(("i".into(), "ii".into())));
        assert_eq!(document.notes(&(0..8)).len(), 1);
        assert_eq!(document.notes(&(0..3)).len(), 0);
        // Between two blocks too.
        assert!(document.place(&(9..10)).is_some() && document.place(&(3..3)).is_none());
    }

    #[test]
    fn a_part_keeps_its_marks() {
        let mut part = sample();
        part.drop_first(1);
        let document = part.into_document("c", "a.txt", "en");
        assert_eq!(document.text, "Three.\n\nThe note.");
        assert_eq!(document.place(&(0..6)).unwrap().pages, Some(("ii".into(), "ii".into())));
        assert_eq!(document.map.notes, [(6, 1)]);
    }

    #[test]
    fn appended_contents_keep_their_marks() {
        let mut book = Content::default();
        for name in ["a", "b"] {
            book.append(sample(), |id| format!("{name}#{id}"));
        }
        let document = book.into_document("c", "a.epub", "en");
        assert_eq!(document.map.notes.len(), 4);
        let last = document.text.rfind("Three.").unwrap();
        assert_eq!(document.notes(&(last..last + 6))[0].range.end, document.text.len());
        assert_eq!(document.place(&(last..last + 6)).unwrap().lines, Some((2, 2)));
    }
}
