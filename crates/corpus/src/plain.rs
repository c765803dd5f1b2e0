//! Plain text to blocks.
//!
//! Blank lines separate paragraphs; the lines of one are joined by spaces, since they are wrapped by
//! hand, unless the text has lines too long for that: then each line is a paragraph. A line underlined
//! with `===` or `---` is a heading. A paragraph of several lines that are all indented by four spaces
//! or a tab keeps its line breaks: verse, tables, code. A paragraph that begins with `[Note 1:` or
//! `[Footnote 1:` is a note. What Project Gutenberg puts around a text is left out.
//!
//! A hyphen at the end of a line goes only where it is sure to be a line-break hyphen: the word
//! without it stands elsewhere in the text, and with it nowhere. Where it may be part of the word
//! (`porte-` / `monnaie`) it stays, and the two parts are put together; before a conjunction (`pré-`
//! / `et post-`) it stands alone.

use std::collections::HashSet;

use crate::blocks::{Content, Mark, NewBlock, Raw};
use crate::canonical;
use crate::document::BlockKind;
use crate::gutenberg;

/// Longest first line that is taken for a title, in characters.
const TITLE: usize = 120;
/// Nobody wraps lines at more characters than this.
const WRAPPED: usize = 120;
/// Words after a hyphen that stands for a part of a word left out.
const CONJUNCTIONS: &[&str] =
    &["and", "or", "et", "ou", "und", "oder", "bis", "and/or", "και", "ή", "to", "y", "o", "e"];

/// Reads a text. Never fails.
pub fn read(text: &str) -> Content {
    read_lines(text, &all_lines(text), false)
}

/// Reads a text in which words in braces are marks: pages if they hold a number (`{17a}`), and no
/// text in any case.
pub fn read_with_marks(text: &str) -> Content {
    read_lines(text, &all_lines(text), true)
}

/// Reads pages: their names and texts. A sentence may go on from one to the next.
pub(crate) fn read_pages(pages: &[(String, String)]) -> Content {
    let whole: Vec<&str> = pages.iter().map(|(_, text)| text.as_str()).collect();
    let mut all: Vec<Line<'_>> = Vec::new();
    for (name, page) in pages {
        let page = lines(page).enumerate().skip_while(|(_, line)| is_blank(line));
        let mut page: Vec<(usize, &str)> = page.collect();
        while page.pop_if(|(_, line)| is_blank(line)).is_some() {}
        let ends = all.last().is_some_and(|line| {
            let text = line.text.trim_end();
            text.ends_with(['.', '!', '?', '…', ':', '»', '”', '"', ';'])
        });
        if ends {
            all.push(Line { number: None, text: "", page: None });
        }
        for (at, (_, text)) in page.into_iter().enumerate() {
            let page = (at == 0).then_some(name.as_str());
            all.push(Line { number: None, text, page });
        }
    }
    read_lines(&whole.join("\n"), &all, false)
}

/// A line of a text.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    /// From 1, where the file has lines.
    number: Option<u32>,
    text: &'a str,
    /// The page that it begins.
    page: Option<&'a str>,
}

fn all_lines(text: &str) -> Vec<Line<'_>> {
    let number = |index: usize| u32::try_from(index + 1).ok();
    lines(text)
        .enumerate()
        .map(|(index, text)| Line { number: number(index), text, page: None })
        .collect()
}

fn read_lines(text: &str, lines: &[Line<'_>], braces: bool) -> Content {
    let mut content = Content::default();
    let mut lines = lines;
    let mut italics = false;
    if let Some(body) = gutenberg::body(lines.iter().map(|line| line.text)) {
        let header = lines.iter().take(body.start).map(|line| line.text);
        gutenberg::header(header, &mut content);
        lines = &lines[body];
        italics = true;
    }
    let mut headings: Vec<(u8, String)> = Vec::new();
    let reader = Lines { known: Words::of(text), braces, italics };
    for paragraph in paragraphs(lines) {
        let element = match paragraph.first().and_then(|line| line.number) {
            Some(number) => format!("line[{number}]"),
            None => format!("paragraph[{}]", content.blocks.len() + 1),
        };
        let path =
            |headings: &[(u8, String)]| headings.iter().map(|(_, text)| text.clone()).collect();
        let block = |kind, headings: &[(u8, String)]| NewBlock {
            kind,
            headings: path(headings),
            anchor: None,
            element: element.clone(),
        };
        let mut lines = paragraph.as_slice();
        if let [title, underline, rest @ ..] = lines
            && let Some(level) = underline_level(underline.text)
        {
            headings.retain(|(other, _)| *other < level);
            let raw = reader.joined(std::slice::from_ref(title));
            let title = content.put(raw, block(BlockKind::Heading(level), &headings)).to_owned();
            if content.title.is_none() && content.blocks.len() == 1 {
                // The document's title heads everything: it is no part of a heading path.
                content.title = Some(title);
            } else {
                headings.push((level, title));
            }
            lines = rest;
        }
        let indented = lines.len() > 1 && lines.iter().all(|line| is_indented(line.text));
        let (kind, raw) = if indented {
            let kind = if is_verse(lines) { BlockKind::Verse } else { BlockKind::Preformatted };
            (kind, dedent(lines))
        } else if lines.first().is_some_and(|line| is_note(line.text)) {
            (BlockKind::Note, reader.joined(lines))
        } else {
            (BlockKind::Paragraph, reader.joined(lines))
        };
        content.put(raw, block(kind, &headings));
    }
    if content.title.is_none() {
        content.title = content.blocks.first().and_then(|block| {
            let text = &content.text[block.range.clone()];
            (text.chars().count() <= TITLE && !text.contains('\n')).then(|| text.to_owned())
        });
    }
    content
}

/// The lines between two blank ones; single lines, if the text is not wrapped.
fn paragraphs<'a>(lines: &[Line<'a>]) -> Vec<Vec<Line<'a>>> {
    let filled = lines.iter().filter(|line| !is_blank(line.text)).count();
    let long = lines.iter().filter(|line| line.text.chars().count() > WRAPPED).count();
    let wrapped = long * 20 <= filled;
    let mut paragraphs: Vec<Vec<Line<'a>>> = Vec::new();
    let mut open: Vec<Line<'a>> = Vec::new();
    for line in lines {
        let blank = is_blank(line.text);
        if !open.is_empty() && (blank || !wrapped) {
            paragraphs.push(std::mem::take(&mut open));
        }
        if !blank {
            open.push(*line);
        }
    }
    if !open.is_empty() {
        paragraphs.push(open);
    }
    paragraphs
}

fn is_blank(line: &str) -> bool {
    line.chars().all(|c| c.is_whitespace() || canonical::is_unseen(c))
}

/// Lines that end in any of the three ways that files end them. A form feed is the end of a page, in
/// the middle of a paragraph more often than not: it counts as the end of a line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split(['\r', '\u{c}']))
}

/// Whether a paragraph that begins with this line is a note.
fn is_note(line: &str) -> bool {
    let label =
        ["[Note ", "[Footnote "].iter().find_map(|word| line.trim_start().strip_prefix(word));
    label.and_then(|rest| rest.split_once(':')).is_some_and(|(label, _)| {
        (1..=5).contains(&label.len()) && label.chars().all(char::is_alphanumeric)
    })
}

/// Whether indented lines are verse: words, and no signs that only programs and tables have.
fn is_verse(lines: &[Line<'_>]) -> bool {
    lines.iter().all(|line| {
        let text = line.text.trim();
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        let signs = text.chars().filter(|c| !c.is_alphabetic() && !c.is_whitespace()).count();
        letters >= 4 * signs
            && text.chars().count() <= WRAPPED
            && !text.contains(['{', '}', '=', '<', '>', '|', '$', '\\', '#', '@', '/'])
            && !text.contains("  ")
    })
}

fn is_indented(line: &str) -> bool {
    line.starts_with('\t') || line.starts_with("    ")
}

/// The lines without the indentation that they share.
fn dedent(lines: &[Line<'_>]) -> Raw {
    let wide = |line: &Line<'_>| line.text.replace('\t', "        ");
    let shared = lines.iter().filter_map(|line| wide(line).find(|c| c != ' ')).min().unwrap_or(0);
    let mut raw = Raw::default();
    for line in lines {
        if !raw.is_empty() {
            raw.push('\n');
        }
        begin(&mut raw, line);
        raw.push_str(wide(line).get(shared..).unwrap_or_default());
    }
    raw
}

/// Notes that a line begins.
fn begin(raw: &mut Raw, line: &Line<'_>) {
    if let Some(page) = line.page {
        raw.mark(Mark::Page(page.to_owned()));
    }
    if let Some(number) = line.number {
        raw.mark(Mark::Line(number));
    }
}

fn underline_level(line: &str) -> Option<u8> {
    let line = line.trim_end();
    let all = |c: char| line.len() >= 3 && line.chars().all(|other| other == c);
    if all('=') {
        Some(1)
    } else if all('-') {
        Some(2)
    } else {
        None
    }
}

/// How lines become one.
struct Lines {
    known: Words,
    braces: bool,
    /// `_so_` is how the text writes italics.
    italics: bool,
}

impl Lines {
    /// The lines as one, words broken at line ends put together where that is sure.
    fn joined(&self, lines: &[Line<'_>]) -> Raw {
        let mut raw = Raw::default();
        for line in lines {
            let text = line.text.trim();
            // A soft hyphen says itself that the word goes on.
            if !raw.text().is_empty() && !raw.text().ends_with('\u{ad}') {
                match broken_word(raw.text(), text, &self.known) {
                    Broken::LineBreakHyphen => {
                        let stem = raw.text().trim_end_matches(['-', '\u{2010}']).len();
                        raw.truncate(stem);
                    }
                    Broken::Hyphen => {}
                    Broken::No => raw.push('\n'),
                }
            } else if !raw.text().is_empty() {
                raw.push('\n');
            }
            begin(&mut raw, line);
            match (self.braces, self.italics) {
                (true, _) => with_marks(&mut raw, text),
                (_, true) => raw.push_str(&without_italics(text)),
                _ => raw.push_str(text),
            }
        }
        raw
    }
}

/// Adds a line in which words in braces are marks.
fn with_marks(raw: &mut Raw, line: &str) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((mark, after)) = after.split_once('}') else { break };
        raw.push_str(before);
        let mark = mark.trim();
        if mark.starts_with(|c: char| c.is_ascii_digit())
            && mark.len() <= 8
            && mark.chars().all(|c| c.is_ascii_alphanumeric())
        {
            raw.mark(Mark::Page(mark.to_owned()));
        }
        rest = after;
        // The space behind a mark is the mark's where a sign of punctuation follows.
        if after.trim_start().starts_with([',', '.', ';', ':', '·', '!', '?', ')', '’', '”', '»'])
        {
            let length = raw.text().trim_end().len();
            raw.truncate(length);
            rest = after.trim_start();
        }
    }
    raw.push_str(rest);
}

/// The line without the underscores that stand for italics; a row of them is a blank.
fn without_italics(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let at = |index: Option<usize>| {
        index.and_then(|index| characters.get(index)).copied().unwrap_or(' ')
    };
    let is_italics = |index: usize| {
        let (before, after) = (at(index.checked_sub(1)), at(index.checked_add(1)));
        let inside = before.is_alphanumeric() && after.is_alphanumeric();
        characters[index] == '_' && before != '_' && after != '_' && !inside
    };
    (0..characters.len())
        .filter(|index| !is_italics(*index))
        .map(|index| characters[index])
        .collect()
}

/// What a hyphen at the end of a line is.
enum Broken {
    /// None, or one that stands alone.
    No,
    /// Only there because the line ended.
    LineBreakHyphen,
    /// Part of the word, or not surely anything else.
    Hyphen,
}

fn broken_word(before: &str, after: &str, known: &Words) -> Broken {
    let Some(stem) = before.strip_suffix(['-', '\u{2010}']) else {
        return Broken::No;
    };
    let first: &str =
        stem.rsplit(|c: char| !c.is_alphabetic() && c != '-').next().unwrap_or_default();
    let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
    let second = &after[..end];
    let is_word = first.chars().next_back().is_some_and(char::is_alphabetic)
        && second.chars().next().is_some_and(char::is_lowercase);
    if !is_word || CONJUNCTIONS.contains(&second) {
        return Broken::No;
    }
    let fold = |word: &str| canonical::line(word).to_lowercase();
    let (plain, hyphenated) =
        (fold(&format!("{first}{second}")), fold(&format!("{first}-{second}")));
    if known.0.contains(&plain) && !known.0.contains(&hyphenated) {
        Broken::LineBreakHyphen
    } else {
        Broken::Hyphen
    }
}

/// The words of a text, in lower case, hyphenated ones whole.
struct Words(HashSet<String>);

impl Words {
    fn of(text: &str) -> Words {
        // Only texts that have a hyphen at the end of a line need them.
        let needed = lines(text).any(|line| line.trim_end().ends_with(['-', '\u{2010}']));
        let words = text
            .split(|c: char| {
                !c.is_alphabetic() && !matches!(c, '-' | '\u{2010}' | '\u{300}'..='\u{36f}')
            })
            .filter(|word| needed && !word.is_empty() && !word.ends_with(['-', '\u{2010}']))
            .map(|word| canonical::line(word).to_lowercase().replace('\u{2010}', "-"))
            .collect();
        Words(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        let content = read(source);
        content.blocks.iter().map(|block| content.text[block.range.clone()].to_owned()).collect()
    }

    #[test]
    fn joins_wrapped_lines() {
        assert_eq!(
            texts("One\r\ntwo\rthree\n\n\n  four \n \nfive"),
            ["One two three", "four", "five"]
        );
        assert_eq!(texts(""), Vec::<String>::new());
        assert_eq!(texts("\u{feff}\n \u{200b}\n"), Vec::<String>::new());
        assert_eq!(texts("page one\u{c}goes on"), ["page one goes on"]);
    }

    #[test]
    fn headings_by_underline() {
        let content = read("Title\n=====\n\nText.\n\nPart\n----\nMore\ntext.\n");
        assert_eq!(content.title.as_deref(), Some("Title"));
        let kinds: Vec<_> = content.blocks.iter().map(|block| block.kind).collect();
        use BlockKind::*;
        assert_eq!(kinds, [Heading(1), Paragraph, Heading(2), Paragraph]);
        assert_eq!(content.blocks[1].headings, Vec::<String>::new());
        assert_eq!(content.blocks[3].headings, ["Part"]);
        assert_eq!(content.blocks[3].element, "line[6]");
    }

    #[test]
    fn verse_keeps_its_lines() {
        let content = read("He said:\n\n    Sing, goddess,\n      the anger\n    of Achilles.\n");
        assert_eq!(content.blocks[1].kind, BlockKind::Verse);
        assert!(content.text.ends_with("Sing, goddess,\n  the anger\nof Achilles."));
        let code = read("Run:\n\n    let x = 1;\n    print(x)\n");
        assert_eq!(code.blocks[1].kind, BlockKind::Preformatted);
    }

    #[test]
    fn long_lines_are_paragraphs() {
        let long = "A line that nobody has wrapped. ".repeat(8);
        assert_eq!(texts(&format!("{long}\nShort.\n{long}")).len(), 3);
    }

    #[test]
    fn lines_are_found_again() {
        let document =
            read("One\ntwo infor-\nmation.\n\nInformation.\n").into_document("c", "a.txt", "en");
        assert_eq!(document.text, "One two information.\n\nInformation.");
        let lines = |word: &str| {
            let at = document.text.find(word).unwrap();
            document.place(&(at..at + word.len())).unwrap().lines.unwrap()
        };
        assert_eq!(
            [
                lines("One"),
                lines("two"),
                lines("mation"),
                lines("information"),
                lines("Information")
            ],
            [(1, 1), (2, 2), (3, 3), (2, 3), (5, 5)]
        );
    }

    #[test]
    fn words_in_braces_are_marks_and_pages() {
        let content = read_with_marks(
            "{sp1} {17a} {p} One {17b} two, men of {name} Athens {/name} , yes {q}.",
        );
        let document = content.into_document("c", "a.txt", "grc");
        assert_eq!(document.text, "One two, men of Athens, yes.");
        let place = document.place(&(0..7)).unwrap();
        assert_eq!(place.pages, Some(("17a".into(), "17b".into())));
    }

    #[test]
    fn a_sentence_goes_on_from_page_to_page() {
        let pages = [("1", "\nOne sentence goes\n"), ("2", "\non here.\n"), ("3", "Another.")];
        let pages = pages.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let document = read_pages(&pages).into_document("c", "a.pdf", "en");
        assert_eq!(document.text, "One sentence goes on here.\n\nAnother.");
        let place = document.place(&(0..document.text.len())).unwrap();
        assert_eq!(place.pages, Some(("1".into(), "3".into())));
        assert_eq!(document.place(&(0..3)).unwrap().pages, Some(("1".into(), "1".into())));
    }

    #[test]
    fn what_project_gutenberg_adds_is_left_out() {
        let content = read(concat!(
            "The Project Gutenberg EBook of X\n\nTitle: On\n       Method\nAuthor: R. D.\nLanguage: French\n\n",
            "*** START OF THIS PROJECT GUTENBERG EBOOK X ***\n\nProduced by Y\nand Z\n\n\n",
            "Le _texte_ de L____.\n\n[Note 1: Une note.]\n\nEnd of Project Gutenberg's X\n\n",
            "*** END OF THIS PROJECT GUTENBERG EBOOK X ***\n\nLicence.\n",
        ));
        assert_eq!(content.text, "Le texte de L____.\n\n[Note 1: Une note.]");
        assert_eq!(content.title.as_deref(), Some("On Method"));
        assert_eq!(content.meta.author.as_deref(), Some("R. D."));
        assert_eq!(content.language.as_deref(), Some("fr"));
        assert_eq!(content.blocks[1].kind, BlockKind::Note);
        assert_eq!(content.map.lines[0].1, 14);
    }

    #[test]
    fn line_break_hyphens() {
        assert_eq!(
            texts("The infor-\nmation. More information."),
            ["The information. More information."]
        );
        assert_eq!(texts("un porte-\nmonnaie"), ["un porte-monnaie"]);
        assert_eq!(
            texts("un porte-\nmonnaie portemonnaie porte-monnaie")[0],
            "un porte-monnaie portemonnaie porte-monnaie"
        );
        assert_eq!(texts("pre-\nand post-war"), ["pre- and post-war"]);
        assert_eq!(texts("pages 3-\n4 and Saint-\nPierre"), ["pages 3- 4 and Saint- Pierre"]);
        assert_eq!(texts("infor\u{ad}\nmation"), ["information"]);
        assert_eq!(texts("η πληροφο-\nρία, πληροφορία"), ["η πληροφορία, πληροφορία"]);
    }

    #[test]
    fn a_long_single_line() {
        let source = "word ".repeat(200_000);
        assert_eq!(texts(&source)[0].len(), 5 * 200_000 - 1);
    }
}
