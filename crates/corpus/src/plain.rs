//! Plain text to blocks.
//!
//! Blank lines separate paragraphs; the lines of one are joined by spaces, since they are wrapped by
//! hand. A line underlined with `===` or `---` is a heading. A paragraph of several lines that are all
//! indented by four spaces or a tab keeps its line breaks: verse, tables, code.
//!
//! A hyphen at the end of a line goes only where it is sure to be a line-break hyphen: the word
//! without it stands elsewhere in the text, and with it nowhere. Where it may be part of the word
//! (`porte-` / `monnaie`) it stays, and the two parts are put together; before a conjunction (`pré-`
//! / `et post-`) it stands alone.

use std::collections::HashSet;

use crate::blocks::{Content, NewBlock};
use crate::canonical;
use crate::document::BlockKind;

/// Longest first line that is taken for a title, in characters.
const TITLE: usize = 120;
/// Words after a hyphen that stands for a part of a word left out.
const CONJUNCTIONS: &[&str] =
    &["and", "or", "et", "ou", "und", "oder", "bis", "and/or", "και", "ή", "to", "y", "o", "e"];

/// Reads a text. Never fails.
pub fn read(text: &str) -> Content {
    let mut content = Content::default();
    let mut headings: Vec<(u8, String)> = Vec::new();
    let known = Words::of(text);
    for paragraph in paragraphs(text) {
        let element = format!("line[{}]", paragraph.first_line);
        let path =
            |headings: &[(u8, String)]| headings.iter().map(|(_, text)| text.clone()).collect();
        let mut lines = paragraph.lines.as_slice();
        if let [title, underline, rest @ ..] = lines
            && let Some(level) = underline_level(underline)
        {
            let title = canonical::line(title);
            headings.retain(|(other, _)| *other < level);
            let kind = BlockKind::Heading(level);
            let block = NewBlock {
                kind,
                headings: path(&headings),
                anchor: None,
                element: element.clone(),
            };
            content.push(&title, block);
            if content.title.is_none() && content.blocks.len() == 1 {
                // The document's title heads everything: it is no part of a heading path.
                content.title = Some(title);
            } else {
                headings.push((level, title));
            }
            lines = rest;
        }
        let (kind, text) = if lines.len() > 1 && lines.iter().all(|line| is_indented(line)) {
            (BlockKind::Preformatted, canonical::preformatted(&dedent(lines)))
        } else {
            (BlockKind::Paragraph, canonical::line(&joined(lines, &known)))
        };
        content.push(&text, NewBlock { kind, headings: path(&headings), anchor: None, element });
    }
    if content.title.is_none() {
        content.title = content.blocks.first().and_then(|block| {
            let text = &content.text[block.range.clone()];
            (text.chars().count() <= TITLE && !text.contains('\n')).then(|| text.to_owned())
        });
    }
    content
}

/// Lines between two blank ones.
struct Paragraph<'a> {
    first_line: usize,
    lines: Vec<&'a str>,
}

fn paragraphs(text: &str) -> Vec<Paragraph<'_>> {
    let mut paragraphs: Vec<Paragraph<'_>> = Vec::new();
    let mut open: Option<Paragraph<'_>> = None;
    for (index, line) in lines(text).enumerate() {
        if line.chars().all(|c| c.is_whitespace() || canonical::is_unseen(c)) {
            paragraphs.extend(open.take());
        } else {
            open.get_or_insert_with(|| Paragraph { first_line: index + 1, lines: Vec::new() })
                .lines
                .push(line);
        }
    }
    paragraphs.extend(open);
    paragraphs
}

/// Lines that end in any of the three ways that files end them. A form feed is the end of a page, in
/// the middle of a paragraph more often than not: it counts as the end of a line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split(['\r', '\u{c}']))
}

fn is_indented(line: &str) -> bool {
    line.starts_with('\t') || line.starts_with("    ")
}

/// The lines without the indentation that they share.
fn dedent(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| line.replace('\t', "        ")).collect();
    let shared = lines.iter().filter_map(|line| line.find(|c| c != ' ')).min().unwrap_or(0);
    let lines: Vec<&str> =
        lines.iter().map(|line| line.get(shared..).unwrap_or_default()).collect();
    lines.join("\n")
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

/// The lines as one, words broken at line ends put together where that is sure.
fn joined(lines: &[&str], known: &Words) -> String {
    let mut out = String::new();
    for line in lines {
        let line = line.trim();
        if out.is_empty() {
            out.push_str(line);
        } else if out.ends_with('\u{ad}') {
            // A soft hyphen says itself that the word goes on.
            out.push('\n');
            out.push_str(line);
        } else {
            match broken_word(&out, line, known) {
                Broken::LineBreakHyphen => {
                    out.pop();
                }
                Broken::Hyphen => {}
                Broken::No => out.push('\n'),
            }
            out.push_str(line);
        }
    }
    out
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
        assert_eq!(content.blocks[1].kind, BlockKind::Preformatted);
        assert!(content.text.ends_with("Sing, goddess,\n  the anger\nof Achilles."));
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
