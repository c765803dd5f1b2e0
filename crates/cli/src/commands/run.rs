//! `florilegium run PIPELINE`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use clap::Args;
use florilegium_batch::{Pipeline, RunReport, questions, run as run_batch};
use florilegium_publish::{release, render};

use super::{print, print_json, site};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pipeline = Pipeline::load(&arguments.pipeline)?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    ctrlc::set_handler(move || {
        // The second time, at once: whatever was written is whole.
        if told.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("stopping after this question; once more to stop at once");
    })
    .context("cannot handle interrupts")?;

    let done = run_batch(pipeline, &stop)?;
    let pipeline = &done.library.pipeline;
    let list = questions(pipeline)?;
    let site = site::site(&done.library, done.curated, &list)?;
    let files = render(&site)?;
    let folder = release(&pipeline.paths.public, &site.id, &files, &site::settings(pipeline))?;
    drop(done.lock);

    let report = &done.report;
    if arguments.json {
        print_json(
            &serde_json::json!({ "report": report, "published": folder, "files": files.len() }),
        )?;
    } else {
        print(&summary(report))?;
        for (id, why) in &done.library.reports {
            print(&format!(
                "  {id}: {} documents, {} words, {} files skipped, {} warnings\n",
                why.documents,
                why.words,
                why.skipped.len(),
                why.warnings.len()
            ))?;
        }
        print(&format!("published {} files in {}\n", files.len(), folder.display()))?;
    }
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

fn summary(report: &RunReport) -> String {
    let built = &report.built;
    let mut text = format!(
        "{} documents, {} passages ({}, {:.0} s)\n",
        report.documents,
        report.passages,
        if built.read { "sources read" } else { "sources unchanged" },
        built.read_seconds,
    );
    text += &match built.embedded_passages {
        0 => "no passage embedded: nothing new\n".to_owned(),
        count => format!(
            "{count} passages embedded, {} tokens, {:.0} s, {:.0} tokens/s\n",
            built.embedded_tokens,
            built.embed_seconds,
            built.embedded_tokens as f64 / built.embed_seconds.max(1e-9),
        ),
    };
    text += &format!(
        "{} questions: {} answered, {} insufficient, {} failed\n",
        report.questions,
        report.answered,
        report.insufficient,
        report.failed.len()
    );
    text += &match report.computed {
        0 => format!(
            "no model work: {} answers kept, nothing they depend on has changed\n",
            report.reused
        ),
        count => format!(
            "{count} answers made, {} kept; {} decisions, {} prompt tokens of which {} computed, {:.0} s\n",
            report.reused,
            report.cost.decisions,
            report.cost.prompt_tokens,
            report.cost.computed_tokens,
            report.synthesis_seconds,
        ),
    };
    for (id, reason) in &report.failed {
        text += &format!("failed: {id}: {reason}\n");
    }
    text
}
