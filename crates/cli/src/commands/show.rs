//! `florilegium show ID`: a text, and where it stands in its source.

use std::ops::Range;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use florilegium_batch::open_archive;
use florilegium_corpus::{Archive, Document, Passage, Place};
use serde::Serialize;

use super::{PipelineArgument, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Id of a passage or a document.
    id: String,
    /// Bytes of the document's canonical text, as `120..340`; the whole passage or document when not
    /// given.
    #[arg(long, value_parser = range, env = "FLORILEGIUM_RANGE")]
    range: Option<Range<usize>>,
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What is shown.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    document: &'a str,
    title: &'a str,
    author: Option<&'a str>,
    date: Option<&'a str>,
    edition: Option<&'a str>,
    licence: &'a str,
    language: &'a str,
    range: Range<usize>,
    text: &'a str,
    source: Source,
    notes: Vec<&'a str>,
    editions: Vec<Edition<'a>>,
}

/// Where it stands.
#[derive(Debug, Serialize)]
struct Source {
    file: String,
    element: String,
    first_line: Option<u32>,
    last_line: Option<u32>,
    first_page: Option<String>,
    last_page: Option<String>,
    link: String,
}

/// Another text that says the same.
#[derive(Debug, Serialize)]
struct Edition<'a> {
    passage: &'a str,
    title: &'a str,
    year: Option<&'a str>,
    similarity: f32,
    /// It has the text shown word for word.
    exact: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pipeline = arguments.pipeline.load()?;
    let archive = open_archive(&pipeline)?;
    let passage = archive.passage(&arguments.id);
    let document_id = passage.map_or(arguments.id.as_str(), |passage| &passage.document);
    let document = archive.document(document_id).ok_or_else(|| {
        anyhow!(
            "there is no passage or document {:?}; ids are printed by `florilegium search --json`",
            arguments.id
        )
    })?;
    let whole = passage.map_or(0..document.text.len(), |passage| passage.range.clone());
    let range = arguments.range.clone().unwrap_or(whole);
    let shown = shown(&archive, document, passage, range)?;
    if arguments.json {
        print_json(&shown)?;
    } else {
        print(&text(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown<'a>(
    archive: &'a Archive,
    document: &'a Document,
    passage: Option<&'a Passage>,
    range: Range<usize>,
) -> Result<Shown<'a>> {
    let place = document.place(&range);
    let (Some(text), Some(place)) = (document.slice(&range), place) else {
        bail!(
            "{} has no text at bytes {}..{}: it has {} bytes, and a range ends between characters",
            document.id,
            range.start,
            range.end,
            document.text.len()
        );
    };
    let collection = archive
        .collection(&document.collection)
        .with_context(|| format!("there is no collection {:?}", document.collection))?;
    let Place { element, anchor, lines, pages, .. } = place;
    let editions = passage.map(|passage| editions(archive, passage, text)).unwrap_or_default();
    Ok(Shown {
        document: &document.id,
        title: &document.title,
        author: document.meta.author.as_deref(),
        date: document.meta.date.as_deref(),
        edition: document.meta.edition.as_deref(),
        licence: document.meta.licence.as_deref().unwrap_or(&collection.licence),
        language: &document.language,
        text,
        source: Source {
            file: collection.path.join(&document.path).display().to_string(),
            element,
            first_line: lines.map(|(first, _)| first),
            last_line: lines.map(|(_, last)| last),
            first_page: pages.as_ref().map(|(first, _)| first.clone()),
            last_page: pages.map(|(_, last)| last),
            link: collection.link_to(document, anchor.as_deref()),
        },
        notes: document
            .notes(&range)
            .iter()
            .filter_map(|note| document.slice(&note.range))
            .collect(),
        editions,
        range,
    })
}

fn editions<'a>(archive: &'a Archive, passage: &Passage, text: &str) -> Vec<Edition<'a>> {
    let other = |edition: florilegium_corpus::editions::Edition<'a>| {
        let document = archive.document(&edition.passage.document)?;
        Some(Edition {
            passage: &edition.passage.id,
            title: &document.title,
            year: document.meta.year(),
            similarity: edition.similarity,
            exact: document.text.contains(text),
        })
    };
    archive.editions(passage).into_iter().filter_map(other).collect()
}

fn text(shown: &Shown<'_>) -> String {
    let mut text = format!("{}\n\n", shown.text);
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            text += &format!("{name:>9}  {value}\n");
        }
    };
    let source = &shown.source;
    line(
        "document",
        format!("{}, bytes {}..{}", shown.document, shown.range.start, shown.range.end),
    );
    line("title", shown.title.to_owned());
    line("author", shown.author.unwrap_or_default().to_owned());
    line("date", shown.date.unwrap_or_default().to_owned());
    line("edition", shown.edition.unwrap_or_default().to_owned());
    line("language", shown.language.to_owned());
    line("licence", shown.licence.to_owned());
    line("file", source.file.clone());
    line("element", source.element.clone());
    line("lines", span(source.first_line, source.last_line));
    line("pages", span(source.first_page.as_ref(), source.last_page.as_ref()));
    line("link", source.link.clone());
    for note in &shown.notes {
        line("note", (*note).to_owned());
    }
    for edition in &shown.editions {
        let how = if edition.exact {
            "the same text".to_owned()
        } else {
            format!("{:.0} % alike", edition.similarity * 100.0)
        };
        line(
            "edition",
            format!(
                "{} {}: {how} ({})",
                edition.title,
                edition.year.unwrap_or_default(),
                edition.passage
            ),
        );
    }
    text
}

/// `3` or `3–4`.
fn span<T: PartialEq + ToString>(first: Option<T>, last: Option<T>) -> String {
    match (first, last) {
        (Some(first), Some(last)) if first == last => first.to_string(),
        (Some(first), Some(last)) => format!("{}–{}", first.to_string(), last.to_string()),
        _ => String::new(),
    }
}

fn range(text: &str) -> Result<Range<usize>, String> {
    let parts = text.split_once("..").map(|(a, b)| (a.trim().parse(), b.trim().parse()));
    match parts {
        Some((Ok(start), Ok(end))) if start < end => Ok(start..end),
        _ => Err("write two numbers as 120..340, the first below the second".to_owned()),
    }
}
