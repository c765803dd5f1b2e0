//! `florilegium ingest PIPELINE`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use florilegium_batch::{Built, Ingest, Pipeline};
use florilegium_corpus::Report;

use super::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Only read and cut; embed and index nothing.
    #[arg(long, env = "FLORILEGIUM_TEXTS_ONLY")]
    texts_only: bool,
    /// Fail if there is any warning.
    #[arg(long, env = "FLORILEGIUM_STRICT")]
    strict: bool,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pipeline = Pipeline::load(&arguments.pipeline)?;
    let Ingest { texts, built } = Ingest::run(&pipeline, arguments.texts_only)?;
    let reports = &texts.reports;
    if arguments.json {
        let collections: Vec<_> = reports
            .iter()
            .map(|(id, report)| serde_json::json!({ "collection": id, "report": report }))
            .collect();
        print_json(&serde_json::json!({ "collections": collections, "built": built }))?;
    } else {
        print(&details(reports))?;
        print(&table(reports))?;
        print(&summary(&built))?;
    }
    let warnings: usize = reports.iter().map(|(_, report)| report.warnings.len()).sum();
    if arguments.strict && warnings > 0 {
        eprintln!("error: {warnings} warnings, and --strict allows none");
        return Ok(ExitCode::from(2));
    }
    Ok(ExitCode::SUCCESS)
}

/// Skipped files and warnings, one a line.
fn details(reports: &[(String, Report)]) -> String {
    let mut text = String::new();
    for (id, report) in reports {
        for skipped in &report.skipped {
            text += &format!("{id}: {}: skipped: {}\n", skipped.path, skipped.reason);
        }
        for warning in &report.warnings {
            let line = warning.line.map(|line| format!(":{line}")).unwrap_or_default();
            text += &format!("{id}: {}{line}: warning: {}\n", warning.path, warning.message);
        }
    }
    text
}

/// The table of collections.
fn table(reports: &[(String, Report)]) -> String {
    let width = reports.iter().map(|(id, _)| id.chars().count()).max().unwrap_or(0).max(10);
    let mut text = format!(
        "{:width$} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}\n",
        "collection", "documents", "passages", "words", "tokens", "skipped", "warnings"
    );
    for (id, report) in reports {
        text += &format!(
            "{id:width$} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}\n",
            report.documents,
            report.passages,
            report.words,
            report.tokens,
            report.skipped.len(),
            report.warnings.len(),
        );
    }
    text
}

fn summary(built: &Built) -> String {
    format!(
        "{} files read, {} kept ({} renamed), {} gone; {:.1} s\n",
        built.files_read,
        built.files_kept,
        built.files_renamed,
        built.files_removed,
        built.read_seconds
    )
}
