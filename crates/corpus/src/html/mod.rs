//! HTML to blocks.
//!
//! The parser is html5ever, so unclosed and misnested tags mean here what they mean in a browser. The
//! tree is walked without recursion: nesting of any depth neither overflows the stack nor loses text.
//!
//! Every element that stands on lines of its own ends the block before it, so blocks never glue words
//! together; inline elements add nothing, so they never split one. Left out are scripts, navigation,
//! what is hidden, page headers and footers, tables of contents and form controls (`rules`). A table row is
//! one block, its cells joined by " | ", unless the table only places text on the page (`tables`).

mod anchors;
mod depth;
mod rules;
mod tables;
mod tags;
mod xhtml;

use std::collections::{HashMap, HashSet};

use ego_tree::NodeId;
use ego_tree::iter::Edge;
use scraper::node::Element;
use scraper::{Html, Node};

use crate::blocks::{CELLS, Content, Mark, NewBlock, Raw};
use crate::canonical;
use crate::document::BlockKind;
use anchors::Anchors;

/// Path segments kept at each end of an element's path; hostile nesting would make every path as
/// long as the page.
const PATH_END: usize = 32;
/// Nodes looked at to decide whether a link is the mark of a footnote.
const MARK_NODES: usize = 16;

/// Reads a page. Never fails: there is no page that HTML does not give a meaning to.
pub fn read(page: &str) -> Content {
    let page = xhtml::for_html_parser(page);
    let html = Html::parse_document(&depth::bounded(&page));
    let mut walker = Walker::new(&html);
    // Elements below one that is left out are passed over until it closes.
    let mut left_out: Option<NodeId> = None;
    for edge in html.tree.root().traverse() {
        match edge {
            Edge::Open(node) => {
                if left_out.is_some() {
                    continue;
                }
                match node.value() {
                    Node::Text(text) => walker.text(text),
                    Node::Element(element) if !walker.open(node, element) => {
                        left_out = Some(node.id());
                    }
                    _ => {}
                }
            }
            Edge::Close(node) => match left_out {
                Some(id) if id == node.id() => left_out = None,
                Some(_) => {}
                None => {
                    if let Node::Element(element) = node.value() {
                        walker.close(element);
                    }
                }
            },
        }
    }
    walker.flush();
    walker.content
}

type NodeRef<'a> = ego_tree::NodeRef<'a, Node>;

/// What holds for the text inside an element; inherited from its parent.
#[derive(Debug, Clone, Copy, Default)]
struct Context {
    preformatted: bool,
    item: bool,
    note: bool,
    note_list: bool,
    title_page: bool,
    /// Inside a note, warning and the like, whose title may be a cell of a table.
    admonition: bool,
    /// Inside a heading of this level.
    heading: Option<u8>,
    /// Inside a row of data; blocks do not end there.
    row: bool,
    /// Inside an element that holds content, so that headers and asides are the content's own.
    content: bool,
    /// Inside a page's header, of which only the headings are text.
    page_header: bool,
}

/// An open element.
struct Frame {
    name: String,
    /// Which one of its name it is among its siblings, from 1.
    position: usize,
    children: HashMap<String, usize>,
    context: Context,
    /// It ends the block before it and its own last one.
    block: bool,
    /// It is a section: headings in it end with it.
    section: bool,
    figure: bool,
    /// Headings there were when it opened.
    headings: usize,
    /// Text was seen in a closed descendant, or directly in it.
    text: bool,
    /// Text other than headings was seen likewise.
    body: bool,
    /// It holds the note that takes its headings from the place where its mark stands.
    note_start: bool,
}

/// A heading in force.
struct Heading {
    level: u8,
    text: String,
    /// The section (index of its frame) that it stands in.
    section: usize,
    /// Its section held nothing else, so that it now heads what follows.
    released: bool,
    is_title: bool,
}

/// The block that is being collected.
struct OpenBlock {
    kind: BlockKind,
    anchor: Option<String>,
    element: String,
}

struct Walker {
    content: Content,
    frames: Vec<Frame>,
    /// Frames that are blocks, and frames that are sections, innermost last.
    blocks: Vec<usize>,
    sections: Vec<usize>,
    headings: Vec<Heading>,
    anchors: Anchors,
    data_rows: HashSet<NodeId>,
    buffer: Raw,
    open_block: Option<OpenBlock>,
    cells: Vec<String>,
    /// Headings in force where a note's mark stands, by the note's id.
    marks: HashMap<String, Vec<String>>,
    /// Headings of the note that is open.
    note_headings: Option<Vec<String>>,
    /// A page has begun in which nothing was written yet.
    page: Option<String>,
}

impl Walker {
    fn new(html: &Html) -> Self {
        let (title, language) = title_and_language(html);
        Walker {
            content: Content { title, language, ..Content::default() },
            frames: Vec::new(),
            blocks: Vec::new(),
            sections: Vec::new(),
            headings: Vec::new(),
            anchors: Anchors::default(),
            data_rows: tables::data_rows(&html.tree),
            buffer: Raw::default(),
            open_block: None,
            cells: Vec::new(),
            marks: HashMap::new(),
            note_headings: None,
            page: None,
        }
    }

    fn context(&self) -> Context {
        self.frames.last().map(|frame| frame.context).unwrap_or_default()
    }

    /// Takes an element in, or says that it and all that is in it is left out.
    fn open(&mut self, node: NodeRef<'_>, element: &Element) -> bool {
        let name = element.name();
        let mut context = self.context();
        let position = self.count(name);
        if let Some(page) = rules::page(element) {
            self.page = Some(page);
        }
        if rules::is_left_out(element) || (context.title_page && rules::is_book_matter(element)) {
            return false;
        }
        if !context.content {
            match name {
                "footer" | "aside" if !is_note_or_list(element) => return false,
                "header" if element.attr("id") != Some("title-block-header") => {
                    context.page_header = true;
                }
                _ => {}
            }
        }
        if self.is_mark(node, element, context) {
            return false;
        }

        let block = rules::is_block(name);
        let heading = rules::heading_level(name);
        let section = rules::is_section(element);
        if block && !context.row && context.heading.is_none() {
            if context.preformatted {
                self.line_break();
            } else {
                self.flush();
            }
        } else if block {
            self.buffer.push(' ');
        }
        if name == "br" {
            self.line_break();
        }

        context.content |= matches!(name, "main" | "article" | "section" | "blockquote");
        context.preformatted |= rules::is_preformatted(name);
        context.item |= matches!(name, "li" | "dt" | "dd");
        context.title_page |= rules::has_class(element, "titlepage");
        context.admonition |= rules::is_admonition(element);
        context.note_list |= rules::is_note_list(element);
        let note_start =
            !context.note && (rules::is_note(element) || (context.note_list && name == "li"));
        context.note |= note_start;
        context.row |= name == "tr" && self.data_rows.contains(&node.id());
        if context.heading.is_none() && !context.row {
            context.heading = match heading {
                Some(level) => Some(level),
                None if rules::is_title(element) || (name == "th" && context.admonition) => {
                    self.title_level()
                }
                None => None,
            };
            if context.heading.is_some() {
                self.anchors.open_heading();
            }
        }

        let id =
            element.attr("id").or_else(|| (name == "a").then(|| element.attr("name")).flatten());
        if note_start {
            self.note_headings = id.and_then(|id| self.marks.get(id)).cloned();
            if let Some(id) = id {
                self.content.begin_note(&format!("#{id}"));
            }
        }
        let index = self.frames.len();
        self.frames.push(Frame {
            name: name.to_owned(),
            position,
            children: HashMap::new(),
            context,
            block,
            section,
            figure: rules::is_figure(element),
            headings: self.headings.len(),
            text: false,
            body: false,
            note_start,
        });
        if block {
            self.blocks.push(index);
        }
        if section {
            self.sections.push(index);
        }
        if let Some(id) = id.map(str::trim).filter(|id| !id.is_empty()) {
            let firm = section || note_start || !rules::is_generated(id);
            self.anchors.add(index, id, firm, context.heading.is_some());
        }
        true
    }

    /// Which one of its name the child that opens now is.
    fn count(&mut self, name: &str) -> usize {
        let Some(parent) = self.frames.last_mut() else {
            return 1;
        };
        match parent.children.get_mut(name) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => {
                parent.children.insert(name.to_owned(), 1);
                1
            }
        }
    }

    /// The level of a title that is not an `h1` to `h6`, or nothing where it is a caption, or a line
    /// in the middle of a text.
    fn title_level(&self) -> Option<u8> {
        let section = &self.frames[*self.sections.last()?];
        if section.figure || section.text {
            return None;
        }
        let above = self.headings.last().map_or(0, |heading| heading.level);
        Some((above + 1).min(6))
    }

    /// Whether this is the mark of a footnote, or a note's way back to it: no part of the sentence.
    fn is_mark(&mut self, node: NodeRef<'_>, element: &Element, context: Context) -> bool {
        if !matches!(element.name(), "a" | "sup" | "span") || context.preformatted {
            return false;
        }
        let Some((text, link, raised)) = short_text(node) else {
            return false;
        };
        let link = rules::link(element).map(str::to_owned).or(link);
        let target = link.as_deref().and_then(rules::fragment).map(str::to_owned);
        let mark = if rules::is_note_mark(element) {
            text.trim().is_empty() || rules::looks_like_mark(&text)
        } else if context.note {
            link.is_some() && rules::looks_like_way_back(&text)
        } else {
            link.is_some() && rules::looks_like_mark(&text) && (raised || element.name() == "sup")
        };
        if mark && !context.note {
            if let Some(target) = target {
                let headings = self.heading_path();
                self.marks.entry(target).or_insert(headings);
            }
            if let Some(link) = link
                && self.open_block.is_some()
            {
                self.buffer.mark(Mark::Note(link));
            }
        }
        mark
    }

    fn text(&mut self, text: &str) {
        let context = self.context();
        if context.page_header && context.heading.is_none() {
            return;
        }
        let blank = text.chars().all(char::is_whitespace);
        if blank && self.buffer.text().is_empty() && !context.preformatted {
            return;
        }
        if !blank {
            if self.open_block.is_none() {
                self.begin_block(context);
            }
            if let Some(frame) = self.frames.last_mut() {
                frame.text = true;
                frame.body |= context.heading.is_none();
            }
            if let Some(page) = self.page.take() {
                self.buffer.mark(Mark::Page(page));
            }
        }
        self.buffer.push_str(text);
    }

    fn begin_block(&mut self, context: Context) {
        let kind = if let Some(level) = context.heading {
            BlockKind::Heading(level)
        } else if context.row {
            BlockKind::Row
        } else if context.preformatted {
            BlockKind::Preformatted
        } else if context.note {
            BlockKind::Note
        } else if context.item {
            BlockKind::Item
        } else {
            BlockKind::Paragraph
        };
        let anchor = self.anchors.nearest();
        self.open_block = Some(OpenBlock { kind, anchor, element: self.element_path() });
    }

    /// Path of the innermost block element; of the row, where a row is one block.
    fn element_path(&self) -> String {
        let row = self.context().row;
        let is_it = |index: &&usize| !row || self.frames[**index].name == "tr";
        let end = self.blocks.iter().rev().find(is_it).map_or(0, |index| index + 1);
        let segments = &self.frames[..end];
        let write = |frames: &[Frame]| {
            let segments: Vec<String> = frames
                .iter()
                .filter(|frame| frame.name != "html")
                .map(|frame| match frame.name.as_str() {
                    "body" => "body".to_owned(),
                    name => format!("{name}[{}]", frame.position),
                })
                .collect();
            segments.join("/")
        };
        if segments.len() <= 2 * PATH_END {
            write(segments)
        } else {
            let (first, last) = (&segments[..PATH_END], &segments[segments.len() - PATH_END..]);
            format!("{}/…/{}", write(first), write(last))
        }
    }

    fn line_break(&mut self) {
        let preformatted = self.context().preformatted;
        if !self.buffer.text().is_empty() {
            self.buffer.push(if preformatted { '\n' } else { ' ' });
        }
    }

    fn heading_path(&self) -> Vec<String> {
        self.headings
            .iter()
            .filter(|heading| !heading.is_title)
            .map(|heading| heading.text.clone())
            .collect()
    }

    /// Ends the block that is being collected.
    fn flush(&mut self) {
        let raw = std::mem::take(&mut self.buffer);
        let Some(OpenBlock { kind, anchor, element }) = self.open_block.take() else {
            return;
        };
        let headings = match (&self.note_headings, kind) {
            (Some(headings), BlockKind::Note | BlockKind::Preformatted) => headings.clone(),
            _ => self.heading_path(),
        };
        self.content.put(raw, NewBlock { kind, headings, anchor, element });
    }

    /// Ends a heading: it is a block of its own, and stands above what follows.
    fn flush_heading(&mut self, level: u8) {
        let raw = std::mem::take(&mut self.buffer);
        let Some(OpenBlock { element, anchor, .. }) = self.open_block.take() else {
            self.anchors.close_heading(None);
            return;
        };
        let text = canonical::line(raw.text());
        if text.is_empty() {
            self.anchors.close_heading(None);
            return;
        }
        let section = self.sections.last().copied().unwrap_or(0);
        while let Some(last) = self.headings.last() {
            let same = last.released || last.section == section;
            if !(same && last.level >= level) {
                break;
            }
            self.headings.pop();
            self.anchors.drop_headings(self.headings.len());
        }
        let headings = self.heading_path();
        let is_title = self.content.title.as_deref().is_some_and(|title| same_words(title, &text));
        let own = self.anchors.close_heading(Some(self.headings.len()));
        let kind = BlockKind::Heading(level);
        self.content.put(raw, NewBlock { kind, headings, anchor: own.or(anchor), element });
        self.headings.push(Heading { level, text, section, released: false, is_title });
    }

    fn flush_row(&mut self) {
        let cells = std::mem::take(&mut self.cells).join(CELLS);
        self.buffer = Raw::default();
        let Some(OpenBlock { kind, anchor, element }) = self.open_block.take() else {
            return;
        };
        let headings = self.heading_path();
        self.content.push(&cells, NewBlock { kind, headings, anchor, element });
    }

    fn close(&mut self, element: &Element) {
        let Some(index) = self.frames.len().checked_sub(1) else {
            return;
        };
        let outer = match index.checked_sub(1) {
            Some(parent) => self.frames[parent].context,
            None => Context::default(),
        };
        let context = self.frames[index].context;
        match (context.heading, outer.heading) {
            (Some(level), None) => self.flush_heading(level),
            (Some(_), Some(_)) if self.frames[index].block => self.buffer.push(' '),
            (Some(_), Some(_)) => {}
            _ if context.row && !outer.row => self.flush_row(),
            _ if context.row && matches!(element.name(), "td" | "th") => {
                let cell = canonical::line(std::mem::take(&mut self.buffer).text());
                if !cell.is_empty() {
                    self.cells.push(cell);
                }
            }
            _ if self.frames[index].block => {
                if context.row {
                    self.buffer.push(' ');
                } else if outer.preformatted {
                    self.line_break();
                } else {
                    self.flush();
                }
            }
            _ => {}
        }
        self.pop(index);
    }

    /// Takes the innermost frame away, with what was in force inside it.
    fn pop(&mut self, index: usize) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        if frame.block {
            self.blocks.pop();
        }
        if frame.section {
            self.sections.pop();
            if frame.body {
                self.headings.truncate(frame.headings);
                self.anchors.drop_headings(frame.headings);
            } else {
                // `<div class="chapter"><h2>…</h2></div>`: the heading heads what comes after.
                let outer = self.sections.last().copied().unwrap_or(0);
                for heading in self.headings.iter_mut().skip(frame.headings) {
                    heading.released = true;
                    heading.section = outer;
                }
            }
        }
        if frame.note_start {
            self.note_headings = None;
        }
        // An empty element only marks a place: its id holds for what follows it.
        let heir = (!frame.text).then(|| self.blocks.last().copied()).flatten();
        let heads_section =
            heir.is_some_and(|heir| self.frames[heir].section && !self.frames[heir].text);
        self.anchors.close(index, heir, heads_section);
        if let Some(parent) = self.frames.last_mut() {
            parent.text |= frame.text;
            parent.body |= frame.body;
        }
    }
}

fn is_note_or_list(element: &Element) -> bool {
    rules::is_note(element) || rules::is_note_list(element)
}

/// The text of an element that is short enough to be a mark, where a link in it leads to, and whether
/// the text is raised.
fn short_text(node: NodeRef<'_>) -> Option<(String, Option<String>, bool)> {
    let mut text = String::new();
    let mut target = None;
    let mut raised = node
        .parent()
        .and_then(|parent| parent.value().as_element().map(|element| element.name() == "sup"))
        .unwrap_or(false);
    for (seen, inner) in node.descendants().enumerate() {
        match inner.value() {
            _ if seen > MARK_NODES => return None,
            Node::Text(part) => text.push_str(part),
            Node::Element(element) => {
                raised |= element.name() == "sup";
                if target.is_none() {
                    target = rules::link(element).map(str::to_owned);
                }
            }
            _ => {}
        }
        if text.len() > 32 {
            return None;
        }
    }
    Some((text, target, raised))
}

/// The page's title and language. Sites put their own name beside the title: where the page has one
/// `h1` and the title holds it, that is the title.
fn title_and_language(html: &Html) -> (Option<String>, Option<String>) {
    let (mut title, mut language, mut first) = (None, None, None);
    let mut headings = 0usize;
    for node in html.tree.root().descendants() {
        let Node::Element(element) = node.value() else {
            continue;
        };
        match element.name() {
            "html" | "body" if language.is_none() => {
                language =
                    element.attr("lang").or_else(|| element.attr("xml:lang")).map(str::to_owned);
            }
            // An svg has titles too.
            "title" if title.is_none() && is_in_head(node) => title = Some(plain_text(node)),
            "h1" => {
                headings += 1;
                first.get_or_insert_with(|| plain_text(node));
            }
            _ => {}
        }
    }
    let title = match (title.filter(|title| !title.is_empty()), first) {
        (Some(title), Some(heading))
            if headings == 1 && !heading.is_empty() && words(&title).contains(&words(&heading)) =>
        {
            heading
        }
        (Some(title), _) => title,
        (None, Some(heading)) => heading,
        (None, None) => return (None, language),
    };
    (Some(title), language)
}

fn is_in_head(node: NodeRef<'_>) -> bool {
    node.parent()
        .and_then(|parent| parent.value().as_element().map(|element| element.name() == "head"))
        .unwrap_or(false)
}

fn plain_text(node: NodeRef<'_>) -> String {
    let shown = |inner: &NodeRef<'_>| {
        let parent = inner.parent();
        !parent.is_some_and(|parent| parent.value().as_element().is_some_and(rules::is_left_out))
    };
    let text: String = node
        .descendants()
        .filter(shown)
        .filter_map(|inner| inner.value().as_text().map(|text| &**text))
        .collect();
    canonical::line(&text)
}

/// The same text with every kind of space alike.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

#[cfg(test)]
mod tests;
