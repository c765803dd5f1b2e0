//! `florilegium run PIPELINE`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use florilegium_batch::{Pipeline, Publication, Run, RunReport, questions, run as run_batch};
use florilegium_publish::{release, render};

use super::{print, print_json, site, stop_on_signals};

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
    stop_on_signals("stopping after this question; once more to stop at once")?;
    let Run { mut night, report } = run_batch(pipeline)?;
    let list = questions(&night.library.pipeline)?;
    let site = site::site(&night.library, std::mem::take(&mut night.curated), &list)?;
    let files = render(&site)?;
    let pipeline = &night.library.pipeline;
    let folder = release(&pipeline.paths.public, &site.id, &files, &site::settings(pipeline))?;
    let reports = std::mem::take(&mut night.library.reports);
    night.finish(&Publication {
        release: Some(folder.display().to_string()),
        ..Publication::default()
    })?;

    let report = &report;
    if arguments.json {
        print_json(
            &serde_json::json!({ "report": report, "published": folder, "files": files.len() }),
        )?;
    } else {
        print(&summary(report))?;
        for (id, why) in &reports {
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
