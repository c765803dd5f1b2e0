//! What Project Gutenberg puts before and behind its texts: a header that names the book, and a
//! licence. None of it is the text.

use std::ops::Range;

use crate::blocks::Content;

/// Blocks at the head of a text among which the marker is looked for.
const HEAD: usize = 200;
/// Names of languages as the headers have them.
const LANGUAGES: [(&str, &str); 10] = [
    ("english", "en"),
    ("french", "fr"),
    ("german", "de"),
    ("greek", "el"),
    ("italian", "it"),
    ("spanish", "es"),
    ("portuguese", "pt"),
    ("latin", "la"),
    ("dutch", "nl"),
    ("russian", "ru"),
];

/// The lines of the book itself, if the text has a header and a footer around it.
pub(crate) fn body<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Range<usize>> {
    let lines: Vec<&str> = lines.collect();
    let start = lines.iter().position(|line| is_marker(line, "START"))? + 1;
    let end = lines[start..].iter().position(|line| is_end(line));
    let end = end.map_or(lines.len(), |end| start + end);
    let credits = credits(&lines[start..end]);
    Some(start + credits..end)
}

/// Lines at the start that say who made the file.
fn credits(lines: &[&str]) -> usize {
    let Some(first) = lines.iter().position(|line| !line.trim().is_empty()) else { return 0 };
    if !is_credit(lines[first]) {
        return 0;
    }
    let length = lines[first..].iter().position(|line| line.trim().is_empty());
    length.map_or(lines.len(), |length| first + length)
}

fn is_credit(text: &str) -> bool {
    let text = text.trim_start();
    ["Produced by", "E-text prepared by", "Credits:"].iter().any(|start| text.starts_with(start))
}

/// `*** START OF THIS PROJECT GUTENBERG EBOOK …`
fn is_marker(line: &str, word: &str) -> bool {
    let rest = line.trim_start().strip_prefix("***").map(str::trim_start);
    rest.and_then(|rest| rest.strip_prefix(word))
        .is_some_and(|rest| rest.starts_with(" OF") && rest.contains("PROJECT GUTENBERG"))
}

fn is_end(line: &str) -> bool {
    let text = line.trim_start();
    is_marker(line, "END")
        || ["End of Project Gutenberg", "End of the Project Gutenberg"]
            .iter()
            .any(|start| text.starts_with(start))
}

/// Title, author and language from the header.
pub(crate) fn header<'a>(lines: impl Iterator<Item = &'a str>, content: &mut Content) {
    let mut title: Option<String> = None;
    let mut in_title = false;
    for line in lines {
        let line = line.trim_end();
        if let Some(value) = line.strip_prefix("Title:") {
            title = Some(value.trim().to_owned());
            in_title = true;
            continue;
        }
        if in_title && line.starts_with(' ') && !line.trim().is_empty() {
            title = title.map(|title| format!("{title} {}", line.trim()));
            continue;
        }
        in_title = false;
        if let Some(author) = line.strip_prefix("Author:") {
            content.meta.author = Some(author.trim().to_owned()).filter(|name| !name.is_empty());
        } else if let Some(language) = line.strip_prefix("Language:") {
            let language = language.trim().to_lowercase();
            let known = LANGUAGES.iter().find(|(name, _)| *name == language);
            content.language = known.map(|(_, tag)| (*tag).to_owned()).or(content.language.take());
        }
    }
    content.title = title.filter(|title| !title.is_empty()).or(content.title.take());
}

/// The content without the blocks that are not the book's.
pub(crate) fn stripped(mut content: Content) -> Content {
    let text = |content: &Content, at: usize| -> String {
        content
            .blocks
            .get(at)
            .and_then(|block| content.text.get(block.range.clone()))
            .unwrap_or_default()
            .to_owned()
    };
    let Some(marker) = (0..content.blocks.len().min(HEAD))
        .find(|at| text(&content, *at).lines().any(|line| is_marker(line, "START")))
    else {
        return content;
    };
    for at in 0..=marker {
        header(text(&content, at).lines(), &mut content);
    }
    let mut start = marker + 1;
    while is_credit(&text(&content, start)) {
        start += 1;
    }
    let end = (start..content.blocks.len()).find(|at| text(&content, *at).lines().any(is_end));
    let end = end.unwrap_or(content.blocks.len());
    content.only(start..end)
}
