//! `florilegium audit PIPELINE`: every published quotation, against the original files read anew.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use florilegium_batch::Pipeline;
use florilegium_corpus::{Document, read_document};
use florilegium_publish::shown_quotations;
use serde::Serialize;

use super::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Audit {
    pages: usize,
    pub(super) checked: usize,
    pub(super) failed: Vec<Failure>,
}

#[derive(Debug, Serialize)]
pub(super) struct Failure {
    page: String,
    document: String,
    why: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.page, self.document, self.why)
    }
}

/// Checks every quotation on some pages against the original files, read anew.
pub(super) struct Auditor<'a> {
    sources: Sources<'a>,
    pub(super) audit: Audit,
}

impl<'a> Auditor<'a> {
    pub(super) fn new(pipeline: &'a Pipeline) -> Self {
        let sources = Sources { pipeline, read: HashMap::new() };
        Auditor { sources, audit: Audit::default() }
    }

    /// Checks one page.
    pub(super) fn page(&mut self, page: &str, html: &str) {
        let Auditor { sources, audit } = self;
        audit.pages += 1;
        let Some(quotations) = shown_quotations(html) else {
            audit.checked += 1;
            let why = "it holds something like a quotation that cannot be read".to_owned();
            audit.failed.push(Failure { page: page.to_owned(), document: String::new(), why });
            return;
        };
        for quotation in quotations {
            audit.checked += 1;
            let found = sources.slice(&quotation.document, quotation.start, quotation.end);
            let why = match found {
                Ok(text) if text == quotation.text => continue,
                Ok(text) => format!("the page shows {:?}, the source has {text:?}", quotation.text),
                Err(why) => why,
            };
            let page = page.to_owned();
            audit.failed.push(Failure { page, document: quotation.document, why });
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pipeline = Pipeline::load(&arguments.pipeline)?;
    let site = pipeline.paths.public.join(&pipeline.id);
    if !site.is_dir() {
        bail!("nothing is published in {}; run `florilegium run` first", site.display());
    }
    let mut pages = Vec::new();
    // The link is followed once, so that a release made meanwhile is not mixed in.
    let folder =
        fs::canonicalize(&site).with_context(|| format!("cannot read {}", site.display()))?;
    html_files(&folder, &mut pages)?;
    pages.sort_unstable();

    let mut auditor = Auditor::new(&pipeline);
    for path in pages {
        let page = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        let html =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        auditor.page(&page, &html);
    }
    let Auditor { sources, audit } = auditor;
    if arguments.json {
        print_json(&audit)?;
    } else {
        for failure in &audit.failed {
            print(&format!("{failure}\n"))?;
        }
        print(&format!(
            "{} pages, {} quotations checked against {} original files, {} failed\n",
            audit.pages,
            audit.checked,
            sources.read.len(),
            audit.failed.len()
        ))?;
    }
    Ok(if audit.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn html_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            html_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    Ok(())
}

/// The original files, each read once by the readers that made the archive; nothing stored is used.
struct Sources<'a> {
    pipeline: &'a Pipeline,
    read: HashMap<String, Result<Document, String>>,
}

impl Sources<'_> {
    fn slice(&mut self, document: &str, start: usize, end: usize) -> Result<&str, String> {
        if !self.read.contains_key(document) {
            let read = self.document(document);
            self.read.insert(document.to_owned(), read);
        }
        match self.read.get(document) {
            Some(Ok(read)) => read
                .slice(&(start..end))
                .ok_or_else(|| format!("the source has no text at bytes {start} to {end}")),
            Some(Err(why)) => Err(why.clone()),
            None => Err("the source could not be read".into()),
        }
    }

    fn document(&self, id: &str) -> Result<Document, String> {
        let (collection, path) =
            id.split_once('/').ok_or_else(|| format!("{id:?} is not the id of a document"))?;
        let collection = self.pipeline.collections.iter().find(|c| c.id == collection);
        let collection = collection.ok_or_else(|| format!("there is no collection of {id:?}"))?;
        read_document(collection, path).map_err(|error| error.to_string())
    }
}
