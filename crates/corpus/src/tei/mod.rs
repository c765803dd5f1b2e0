//! TEI XML to blocks.
//!
//! What the encoding says about words is believed: `lb`, `pb` and `cb` part words, unless
//! `break="no"` says that the word goes on. A paragraph that a page parts into two is one: the next
//! one goes on with it if a word does, or if a page lies between and it goes on in lower case in the
//! middle of a sentence. Printed page numbers (`fw`) are no text; they name the pages. A note is a
//! block of its own behind the paragraph in which its mark stands, and the mark is no text either.
//!
//! The tree is walked without recursion.

mod header;
mod rules;

use roxmltree::{Document as Xml, Node, NodeId, ParsingOptions};

use crate::blocks::{CELLS, Content, Fault, Mark, NewBlock, Raw};
use crate::document::{BlockKind, Reading};

/// Deepest nesting that is read.
const LEVELS: usize = 512;

/// How far back an open parenthesis is looked for, in characters.
const NEAR: usize = 400;
/// Marks that may wait for their notes.
const WAITING: usize = 500;

/// Parses XML. External entities are not fetched.
pub(crate) fn parse(source: &str) -> Result<Xml<'_>, Fault> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Xml::parse_with_options(source, options).map_err(|error| Fault {
        line: error.pos().row as usize,
        problem: format!("not well-formed XML: {error}"),
    })
}

/// Whether this is the name of a TEI document's root.
pub(crate) fn is_root(name: &str) -> bool {
    matches!(name, "TEI" | "TEI.2" | "teiCorpus")
}

/// Reads a TEI text. `file` is its name, which may tell which of several editions it is.
pub fn read(source: &str, file: &str, reading: Reading) -> Result<Content, Fault> {
    let xml = parse(source)?;
    let root = xml.root_element();
    if !is_root(root.tag_name().name()) {
        let problem = format!("the root element is <{}>, not <TEI>", root.tag_name().name());
        return Err(Fault { line: 1, problem });
    }
    let mut walker = Walker::new(source, root, header::read(root, file), reading);
    let mut node = root;
    'walk: loop {
        if walker.enter(node)? {
            if let Some(child) = node.first_child() {
                node = child;
                continue;
            }
            walker.leave(node);
        }
        loop {
            if node == root {
                break 'walk;
            }
            if let Some(next) = node.next_sibling() {
                node = next;
                continue 'walk;
            }
            let Some(parent) = node.parent() else { break 'walk };
            node = parent;
            walker.leave(node);
        }
    }
    walker.end();
    Ok(walker.content)
}

/// An open element.
struct Frame {
    name: String,
    position: usize,
    children: std::collections::HashMap<String, usize>,
    id: Option<String>,
    /// It ends the block before it and its own last one.
    block: bool,
    /// Inside a paragraph or the like, where quotations, titles and directions are part of a line.
    inline: bool,
    kind: BlockKind,
    /// Only this child is read.
    only: Option<NodeId>,
    /// Divisions it stands in.
    divisions: usize,
}

/// The block that is being collected.
struct Open {
    kind: BlockKind,
    anchor: Option<String>,
    element: String,
}

/// A note that is kept until the paragraph it hangs on is done.
#[derive(Default)]
struct Note {
    ids: Vec<String>,
    blocks: Vec<(Raw, NewBlock)>,
}

/// What is put aside while a note is read.
struct Aside {
    raw: Raw,
    open: Option<Open>,
    held: bool,
    joins: bool,
    note: Note,
}

struct Heading {
    level: u8,
    divisions: usize,
    text: String,
}

struct Walker {
    content: Content,
    reading: Reading,
    /// Where the lines of the file end.
    line_ends: Vec<usize>,
    /// Ids of the notes.
    notes: std::collections::HashSet<String>,
    frames: Vec<Frame>,
    headings: Vec<Heading>,
    raw: Raw,
    open: Option<Open>,
    /// The open block is a paragraph that is over, unless the next one goes on with it.
    held: bool,
    /// A page has begun since then.
    page_since: bool,
    /// The word goes on: white space does not count.
    joins: bool,
    /// Text was last written in this line.
    line: u32,
    /// A page has begun in which nothing was written yet.
    page: Option<String>,
    /// The last id that marked a place.
    last_id: Option<String>,
    /// A note's mark was left out just now.
    after_mark: bool,
    asides: Vec<Aside>,
    waiting: Vec<Note>,
    /// Marks whose notes were not met yet: what they say, and the id they were given.
    marks: Vec<(String, String)>,
    count: usize,
    /// Text was seen since the last heading.
    body: bool,
}

impl Walker {
    fn new(source: &str, root: Node<'_, '_>, content: Content, reading: Reading) -> Self {
        let notes = root.descendants().filter(|node| node.tag_name().name() == "note");
        Walker {
            notes: notes.filter_map(|node| rules::id(node).map(str::to_owned)).collect(),
            line_ends: source.match_indices('\n').map(|(at, _)| at).collect(),
            content,
            reading,
            frames: Vec::new(),
            headings: Vec::new(),
            raw: Raw::default(),
            open: None,
            held: false,
            page_since: false,
            joins: false,
            line: 0,
            page: None,
            last_id: None,
            after_mark: false,
            asides: Vec::new(),
            waiting: Vec::new(),
            marks: Vec::new(),
            count: 0,
            body: false,
        }
    }

    /// Takes a node in, or says that it and all that is in it is left out.
    fn enter(&mut self, node: Node<'_, '_>) -> Result<bool, Fault> {
        if let Some(text) = node.text().filter(|_| node.is_text()) {
            self.text(text, self.line_of(node.range().start));
            return Ok(false);
        }
        if !node.is_element() {
            return Ok(false);
        }
        if self.frames.len() >= LEVELS {
            let problem = format!("elements are nested deeper than {LEVELS} levels");
            return Err(Fault { line: self.line_of(node.range().start) as usize, problem });
        }
        let name = node.tag_name().name();
        let only = self.frames.last().and_then(|frame| frame.only);
        if only.is_some_and(|only| only != node.id()) {
            return Ok(false);
        }
        match name {
            "lb" | "pb" | "cb" | "gb" => {
                self.breaks(node, name);
                return Ok(false);
            }
            "milestone" => {
                if let Some(page) = rules::milestone_page(node) {
                    self.begin_page(page, node);
                }
                return Ok(false);
            }
            "fw" => {
                // The number that is printed names the page better than its place in the file.
                if node.attribute("type").is_some_and(|kind| kind.to_lowercase().contains("page"))
                    && self.page.is_some()
                    && let Some(number) = rules::page_number(node)
                {
                    self.page = Some(number);
                }
                return Ok(false);
            }
            "space" => {
                self.space();
                return Ok(false);
            }
            "anchor" => self.last_id = rules::id(node).map(str::to_owned).or(self.last_id.take()),
            _ if rules::is_left_out(name) => return Ok(false),
            _ => {}
        }
        if self.is_mark(node, name) {
            return Ok(false);
        }
        self.open_element(node, name);
        Ok(true)
    }

    fn open_element(&mut self, node: Node<'_, '_>, name: &str) {
        let position = match self.frames.last_mut() {
            Some(parent) => {
                let count = parent.children.entry(name.to_owned()).or_insert(0);
                *count += 1;
                *count
            }
            None => 1,
        };
        let (inline, parent, kind, divisions) = match self.frames.last() {
            Some(frame) => (frame.inline, frame.name.as_str(), frame.kind, frame.divisions),
            None => (false, "", BlockKind::Paragraph, 0),
        };
        let is_note = name == "note";
        let in_row = kind == BlockKind::Row;
        let block = !in_row && (is_note || rules::is_block(node, name, parent, inline));
        let divisions = divisions + usize::from(rules::is_division(name));
        let kind = match (rules::heading(node, name, parent, divisions), name) {
            _ if in_row || (kind == BlockKind::Note && block) => kind,
            (Some(level), _) => BlockKind::Heading(level),
            (None, "note") => BlockKind::Note,
            (None, "item" | "label") if parent == "list" => BlockKind::Item,
            (None, "l") => BlockKind::Verse,
            (None, "row") => BlockKind::Row,
            _ if block && !rules::is_paragraph(name) && kind != BlockKind::Item => {
                BlockKind::Paragraph
            }
            _ => kind,
        };
        if is_note {
            self.open_note(node);
        } else if name == "l" {
            // The lines of a stanza are one block.
            if self.open.as_ref().is_some_and(|open| open.kind == BlockKind::Verse) && !in_row {
                self.trim();
                self.raw.push('\n');
            } else {
                self.flush();
            }
        } else if block && !(self.held && rules::may_go_on(name)) {
            self.flush();
        } else if in_row && name == "cell" && !self.raw.text().is_empty() {
            self.trim();
            self.raw.push_str(CELLS);
        } else if name == "stage" || (in_row && rules::is_block(node, name, parent, inline)) {
            self.space();
        }
        self.frames.push(Frame {
            name: name.to_owned(),
            position,
            children: Default::default(),
            id: rules::id(node).map(str::to_owned),
            block,
            inline: !is_note && (inline || rules::is_paragraph(name)),
            kind,
            only: rules::only(node, name, self.reading),
            divisions,
        });
    }

    fn leave(&mut self, node: Node<'_, '_>) {
        let Some(frame) = self.frames.pop() else { return };
        if frame.name == "note" {
            self.close_note();
        } else if let BlockKind::Heading(level) = frame.kind
            && frame.block
        {
            self.close_heading(level, frame.divisions, rules::is_title(node));
        } else if frame.name == "l" {
            self.trim();
        } else if frame.block && rules::may_go_on(&frame.name) && self.open.is_some() {
            if self.asides.is_empty() && frame.kind == BlockKind::Paragraph {
                self.held = true;
                self.page_since = false;
            } else {
                self.flush();
            }
        } else if frame.block {
            self.flush();
        }
        if frame.name == "stage" {
            self.space();
        }
        if rules::is_division(&frame.name) {
            self.headings.retain(|heading| heading.divisions < frame.divisions);
        }
    }

    fn end(&mut self) {
        self.flush();
    }

    /// Adds text that stands in this line.
    fn text(&mut self, text: &str, mut line: u32) {
        for c in text.chars() {
            if matches!(c, ' ' | '\t' | '\r' | '\n') {
                self.space();
                line += u32::from(c == '\n');
                continue;
            }
            if std::mem::take(&mut self.after_mark) && c == ')' && self.is_balanced() {
                // "1)" with the parenthesis outside the mark.
                continue;
            }
            self.written(c);
            if let Some(page) = self.page.take() {
                self.raw.mark(Mark::Page(page));
            }
            if self.line != line {
                self.raw.mark(Mark::Line(line));
                self.line = line;
            }
            self.raw.push(c);
        }
    }

    /// Whether no parenthesis is open at the end of the text.
    fn is_balanced(&self) -> bool {
        let near = self.raw.text().chars().rev().take(NEAR);
        let depth = near.map(|c| i32::from(c == '(') - i32::from(c == ')')).sum::<i32>();
        depth <= 0
    }

    /// Makes ready for a letter: begins a block, or goes on with the one before.
    fn written(&mut self, c: char) {
        if self.held {
            self.held = false;
            let last = self.raw.text().trim_end().chars().next_back();
            let goes_on = self.joins
                || (self.page_since
                    && c.is_lowercase()
                    && last
                        .is_some_and(|last| last.is_alphanumeric() || matches!(last, ',' | '-')));
            if goes_on {
                self.space();
            } else {
                self.flush();
            }
        }
        let verse = self.open.as_ref().is_some_and(|open| open.kind == BlockKind::Verse);
        if verse && !self.frames.iter().any(|frame| frame.name == "l") {
            self.flush();
        }
        if self.open.is_none() {
            self.begin_block();
        } else if self.joins {
            // A hyphen at the end of the line was only there because the line ended.
            let text = self.raw.text();
            if c.is_lowercase()
                && let Some(word) = text.strip_suffix(['-', '¬', '\u{2010}', '\u{ad}'])
                && word.ends_with(char::is_alphabetic)
            {
                self.raw.truncate(word.len());
            }
        }
        self.joins = false;
        self.body |= !matches!(self.open, Some(Open { kind: BlockKind::Heading(_), .. }));
    }

    fn begin_block(&mut self) {
        // White space and marks from before the block are no part of it.
        self.raw.truncate(0);
        self.line = 0;
        let kind = self.frames.last().map_or(BlockKind::Paragraph, |frame| frame.kind);
        let id = self.frames.iter().rev().find_map(|frame| frame.id.clone());
        let anchor = id.or_else(|| self.last_id.clone());
        let end = self.frames.iter().rposition(|frame| frame.block).map_or(0, |at| at + 1);
        let element: Vec<String> = self.frames[..end]
            .iter()
            .filter(|frame| !is_root(&frame.name))
            .map(|frame| match frame.name.as_str() {
                name @ ("text" | "front" | "body" | "back") if frame.position == 1 => {
                    name.to_owned()
                }
                name => format!("{name}[{}]", frame.position),
            })
            .collect();
        // Text outside of all that holds text stands in the root.
        let element = if element.is_empty() { "TEI".to_owned() } else { element.join("/") };
        self.open = Some(Open { kind, anchor, element });
    }

    /// A space, if words are to be parted here.
    fn space(&mut self) {
        if !self.joins
            && self.open.is_some()
            && !self.raw.text().ends_with([' ', '\n'])
            && !self.raw.text().is_empty()
        {
            self.raw.push(' ');
        }
        self.after_mark = false;
    }

    /// Takes away the space at the end.
    fn trim(&mut self) {
        let length = self.raw.text().trim_end_matches(' ').len();
        self.raw.truncate(length);
    }

    /// A line, page or column begins.
    fn breaks(&mut self, node: Node<'_, '_>, name: &str) {
        if name == "pb" {
            let page = node.attribute("n").or_else(|| rules::id(node)).unwrap_or("?");
            self.begin_page(page.to_owned(), node);
        }
        if node.attribute("break") == Some("no") {
            self.trim();
            self.joins = self.open.is_some();
        } else {
            self.space();
        }
    }

    fn begin_page(&mut self, page: String, node: Node<'_, '_>) {
        self.page = Some(page);
        self.page_since = true;
        self.last_id = rules::id(node).map(str::to_owned).or(self.last_id.take());
    }

    fn line_of(&self, at: usize) -> u32 {
        let before = self.line_ends.partition_point(|end| *end < at);
        u32::try_from(before + 1).unwrap_or(u32::MAX)
    }

    fn heading_path(&self) -> Vec<String> {
        self.headings.iter().map(|heading| heading.text.clone()).collect()
    }

    /// Ends the block that is being collected.
    fn flush(&mut self) {
        self.held = false;
        self.joins = false;
        let raw = std::mem::take(&mut self.raw);
        if let Some(Open { kind, anchor, element }) = self.open.take() {
            let block = NewBlock { kind, headings: self.heading_path(), anchor, element };
            match self.asides.last_mut() {
                Some(aside) => aside.note.blocks.push((raw, block)),
                None => {
                    self.content.put(raw, block);
                }
            }
        }
        if self.asides.is_empty() {
            self.give_notes();
        }
    }

    fn give_notes(&mut self) {
        for note in std::mem::take(&mut self.waiting) {
            let first = self.content.blocks.len();
            for (raw, block) in note.blocks {
                self.content.put(raw, block);
            }
            if self.content.blocks.len() > first {
                for id in &note.ids {
                    self.content.note_at(id, first);
                }
            }
        }
    }

    fn close_heading(&mut self, level: u8, divisions: usize, is_title: bool) {
        let headings = self.heading_path();
        let raw = std::mem::take(&mut self.raw);
        let Some(Open { kind, anchor, element }) = self.open.take() else { return };
        self.joins = false;
        if !self.asides.is_empty() {
            if let Some(aside) = self.asides.last_mut() {
                let kind = BlockKind::Note;
                aside.note.blocks.push((raw, NewBlock { kind, headings, anchor, element }));
            }
            return;
        }
        // A second heading with nothing in between stands below the first, not in its place.
        let stays = |heading: &Heading| {
            heading.divisions < divisions || heading.level < level || !self.body
        };
        let path: Vec<String> =
            self.headings.iter().filter(|h| stays(h)).map(|h| h.text.clone()).collect();
        let text =
            self.content.put(raw, NewBlock { kind, headings: path, anchor, element }).to_owned();
        let body = std::mem::take(&mut self.body);
        self.headings
            .retain(|heading| heading.divisions < divisions || heading.level < level || !body);
        let title = self.content.title.as_deref().unwrap_or_default();
        if !is_title && !text.is_empty() && !title.split_whitespace().eq(text.split_whitespace()) {
            self.headings.push(Heading { level, divisions, text });
        }
        self.give_notes();
    }

    /// Whether this is the mark of a note; it is noted then, and left out.
    fn is_mark(&mut self, node: Node<'_, '_>, name: &str) -> bool {
        let target = node.attribute("target").and_then(|target| target.strip_prefix('#'));
        let target = target.filter(|id| matches!(name, "ref" | "ptr") && self.notes.contains(*id));
        let label = match target {
            Some(_) => None,
            None if rules::calls_itself_mark(node, name) => Some(rules::label(node)),
            None => return false,
        };
        match (self.asides.last_mut(), label, target) {
            // At the head of a note: what its mark in the text says too.
            (Some(aside), Some(label), _) => {
                if let Some(at) = self.marks.iter().position(|(other, _)| *other == label) {
                    aside.note.ids.push(self.marks.remove(at).1);
                }
            }
            (None, Some(label), _) => {
                self.count += 1;
                let id = format!("{}:{label}", self.count);
                self.set_mark(id.clone());
                self.marks.push((label, id));
                if self.marks.len() > WAITING {
                    self.marks.remove(0);
                }
            }
            (_, None, Some(id)) => self.set_mark(id.to_owned()),
            (_, None, None) => {}
        }
        self.after_mark = true;
        true
    }

    fn set_mark(&mut self, id: String) {
        if self.open.is_some() {
            self.raw.mark(Mark::Note(id));
        }
    }

    fn open_note(&mut self, node: Node<'_, '_>) {
        let mut note = Note::default();
        if let Some(id) = rules::id(node) {
            note.ids.push(id.to_owned());
        }
        if self.open.is_some() && !self.held && self.frames.last().is_some_and(|frame| frame.inline)
        {
            self.count += 1;
            let id = format!("{}:", self.count);
            self.raw.mark(Mark::Note(id.clone()));
            note.ids.push(id);
        } else if let Some(label) = node.attribute("n")
            && let Some(at) = self.marks.iter().position(|(other, _)| other == label)
        {
            note.ids.push(self.marks.remove(at).1);
        } else if !self.held {
            self.flush();
        }
        self.asides.push(Aside {
            raw: std::mem::take(&mut self.raw),
            open: self.open.take(),
            held: std::mem::take(&mut self.held),
            joins: std::mem::take(&mut self.joins),
            note,
        });
        self.line = 0;
    }

    fn close_note(&mut self) {
        self.flush();
        let Some(aside) = self.asides.pop() else { return };
        self.raw = aside.raw;
        self.open = aside.open;
        self.held = aside.held;
        self.joins = aside.joins;
        self.line = 0;
        self.waiting.push(aside.note);
        if self.open.is_none() && self.asides.is_empty() {
            self.give_notes();
        }
    }
}

#[cfg(test)]
mod tests;
