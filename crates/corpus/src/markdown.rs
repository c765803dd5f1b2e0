//! Markdown to blocks: CommonMark with tables, footnotes, heading ids and front matter.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};

use crate::blocks::{CELLS, Content, Mark, NewBlock, Raw};
use crate::document::{BlockKind, Metadata};
use crate::html;

/// Reads a Markdown text. Never fails.
pub fn read(text: &str) -> Content {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_DEFINITION_LIST;
    let mut reader = Reader::new(text);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        reader.line_at(range.start);
        reader.event(event);
    }
    reader.flush();
    // Notes stand where they are defined, as a rule at the end.
    reader.content
}

struct Reader {
    content: Content,
    line_ends: Vec<usize>,
    /// Line of the event that is being read.
    line: u32,
    raw: Raw,
    /// Line and kind of the block that is being collected.
    open: Option<(u32, BlockKind)>,
    headings: Vec<(u8, String)>,
    /// Ids of the headings in force.
    ids: Vec<(u8, Option<String>)>,
    /// The id that the open heading gives itself.
    heading: Option<(u8, Option<String>)>,
    items: usize,
    notes: usize,
    code: bool,
    row: bool,
    /// Front matter, or HTML, that is read as a whole.
    aside: Option<String>,
}

impl Reader {
    fn new(text: &str) -> Self {
        Reader {
            content: Content::default(),
            line_ends: text.match_indices('\n').map(|(at, _)| at).collect(),
            line: 1,
            raw: Raw::default(),
            open: None,
            headings: Vec::new(),
            ids: Vec::new(),
            heading: None,
            items: 0,
            notes: 0,
            code: false,
            row: false,
            aside: None,
        }
    }

    fn line_at(&mut self, at: usize) {
        let before = self.line_ends.partition_point(|end| *end < at);
        self.line = u32::try_from(before + 1).unwrap_or(u32::MAX);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.aside {
                Some(aside) => aside.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
            Event::Html(html) => match &mut self.aside {
                Some(aside) => aside.push_str(&html),
                None => self.html(&html),
            },
            Event::InlineHtml(html) => {
                if html.to_ascii_lowercase().starts_with("<br") {
                    self.raw.push(' ');
                }
            }
            Event::SoftBreak | Event::HardBreak => self.raw.push('\n'),
            Event::FootnoteReference(id) => {
                if self.open.is_some() {
                    self.raw.mark(Mark::Note(id.to_string()));
                }
            }
            Event::Rule => self.flush(),
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, id, .. } => {
                self.flush();
                self.heading = Some((level as u8, id.map(CowStr::into_string)));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.code = true;
                // What a fence says about its language is no text.
                let (CodeBlockKind::Indented | CodeBlockKind::Fenced(_)) = kind;
            }
            Tag::HtmlBlock | Tag::MetadataBlock(_) => {
                self.flush();
                self.aside = Some(String::new());
            }
            Tag::Item | Tag::DefinitionListTitle | Tag::DefinitionListDefinition => {
                self.flush();
                self.items += 1;
            }
            Tag::FootnoteDefinition(id) => {
                self.flush();
                self.notes += 1;
                self.content.begin_note(&id);
            }
            Tag::TableRow | Tag::TableHead => {
                self.flush();
                self.row = true;
            }
            Tag::TableCell if !self.raw.text().trim().is_empty() => self.raw.push_str(CELLS),
            Tag::Paragraph
            | Tag::BlockQuote(_)
            | Tag::List(_)
            | Tag::DefinitionList
            | Tag::Table(_) => self.flush(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::CodeBlock => {
                self.flush();
                self.code = false;
            }
            TagEnd::HtmlBlock => {
                let html = self.aside.take().unwrap_or_default();
                self.html(&html);
            }
            TagEnd::MetadataBlock(_) => {
                let text = self.aside.take().unwrap_or_default();
                self.front_matter(&text);
            }
            TagEnd::Item | TagEnd::DefinitionListTitle | TagEnd::DefinitionListDefinition => {
                self.flush();
                self.items = self.items.saturating_sub(1);
            }
            TagEnd::FootnoteDefinition => {
                self.flush();
                self.notes = self.notes.saturating_sub(1);
            }
            TagEnd::TableRow | TagEnd::TableHead => {
                self.flush();
                self.row = false;
            }
            TagEnd::Paragraph | TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Table => {
                self.flush();
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.open.is_none() {
            let kind = match (&self.heading, self.notes, self.items) {
                (Some((level, _)), ..) => BlockKind::Heading(*level),
                _ if self.row => BlockKind::Row,
                _ if self.code => BlockKind::Preformatted,
                (_, 1.., _) => BlockKind::Note,
                (_, _, 1..) => BlockKind::Item,
                _ => BlockKind::Paragraph,
            };
            self.open = Some((self.line, kind));
        }
        self.raw.push_lines(text, self.line);
    }

    fn path(&self) -> Vec<String> {
        self.headings.iter().map(|(_, text)| text.clone()).collect()
    }

    fn block(&self, line: u32, kind: BlockKind) -> NewBlock {
        let anchor = self.ids.iter().rev().find_map(|(_, id)| id.clone());
        NewBlock { kind, headings: self.path(), anchor, element: format!("line[{line}]") }
    }

    fn flush(&mut self) {
        let raw = std::mem::take(&mut self.raw);
        if let Some((line, kind)) = self.open.take() {
            let block = self.block(line, kind);
            self.content.put(raw, block);
        }
    }

    fn end_heading(&mut self) {
        let raw = std::mem::take(&mut self.raw);
        let (Some((level, id)), Some((line, kind))) = (self.heading.take(), self.open.take())
        else {
            return;
        };
        self.headings.retain(|(other, _)| *other < level);
        self.ids.retain(|(other, _)| *other < level);
        self.ids.push((level, id));
        let block = self.block(line, kind);
        let text = self.content.put(raw, block).to_owned();
        let title = self.content.title.get_or_insert_with(|| text.clone());
        // The document's title heads everything: it is no part of a heading path.
        if *title != text && !text.is_empty() {
            self.headings.push((level, text));
        }
    }

    /// A block of HTML: its text, as blocks of its own.
    fn html(&mut self, page: &str) {
        self.flush();
        let element = format!("line[{}]", self.line);
        let inner = html::read(page);
        for block in &inner.blocks {
            let text = inner.text.get(block.range.clone()).unwrap_or_default();
            let kind = match block.kind {
                BlockKind::Heading(_) => BlockKind::Paragraph,
                kind => kind,
            };
            let mut raw = Raw::default();
            raw.push_lines(text, self.line);
            let block = NewBlock { element: element.clone(), ..self.block(self.line, kind) };
            self.content.put(raw, block);
        }
    }

    /// Lines of `key: value`; anything else in front matter is for other programs.
    fn front_matter(&mut self, text: &str) {
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim().trim_matches(['"', '\'']).trim();
            if value.is_empty() {
                continue;
            }
            let Metadata { author, date, edition, licence, url, .. } = &mut self.content.meta;
            let field = match key.trim().to_lowercase().as_str() {
                "title" => &mut self.content.title,
                "lang" | "language" => &mut self.content.language,
                "author" | "authors" | "creator" => author,
                "date" | "year" => date,
                "edition" => edition,
                "licence" | "license" | "rights" => licence,
                "url" | "permalink" => url,
                _ => continue,
            };
            *field = Some(value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(content: &Content) -> Vec<(&str, BlockKind)> {
        content
            .blocks
            .iter()
            .map(|block| (&content.text[block.range.clone()], block.kind))
            .collect()
    }

    #[test]
    fn front_matter_names_the_document_and_is_no_text() {
        let content = read(
            "---\ntitle: \"On Method\"\nauthor: R. D.\ndate: 1637\nlang: fr\ntags: [a]\n---\n\nText.\n",
        );
        assert_eq!(content.title.as_deref(), Some("On Method"));
        assert_eq!(content.language.as_deref(), Some("fr"));
        assert_eq!(content.meta.year(), Some("1637"));
        assert_eq!(content.text, "Text.");
    }

    #[test]
    fn headings_lists_tables_and_code() {
        use BlockKind::*;
        let content = read(
            "# T\n\nOne\n*two* `x`.\n\n## A {#a}\n\n- item **one**\n- item\n  two\n\n| a | b |\n|---|---|\n| c | d |\n\n```rust\nlet  x;\n\ny\n```\n\n> Quoted\n> text.\n\nlast<br>line\n",
        );
        assert_eq!(
            texts(&content),
            [
                ("T", Heading(1)),
                ("One two x.", Paragraph),
                ("A", Heading(2)),
                ("item one", Item),
                ("item two", Item),
                ("a | b", Row),
                ("c | d", Row),
                ("let  x;\n\ny", Preformatted),
                ("Quoted text.", Paragraph),
                ("last line", Paragraph),
            ]
        );
        assert_eq!(content.blocks[3].headings, ["A"]);
        assert_eq!(content.blocks[3].anchor.as_deref(), Some("a"));
        assert_eq!(content.blocks[1].element, "line[3]");
    }

    #[test]
    fn a_note_stands_apart_and_hangs_at_its_place() {
        let content = read("A sentence[^n] goes on.\n\n[^n]: The note,\n    in two lines.\n");
        let document = content.into_document("c", "a.md", "en");
        assert_eq!(document.text, "A sentence goes on.\n\nThe note, in two lines.");
        assert_eq!(document.map.notes, [(10, 1)]);
        let place = document.place(&(0..5)).unwrap();
        assert_eq!((place.lines, place.pages), (Some((1, 1)), None));
    }

    #[test]
    fn html_in_markdown() {
        let content = read(
            "Before.\n\n<div>\n<p>In <b>HTML</b>.</p>\n<script>x()</script>\n</div>\n\nAfter <span>this</span>.\n",
        );
        assert_eq!(content.text, "Before.\n\nIn HTML.\n\nAfter this.");
    }
}
