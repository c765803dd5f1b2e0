//! `florilegium store verify|gc|stats PIPELINE`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use florilegium_batch::{Pipeline, gc, stats, verify};

use super::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Examine every file that runs have kept. A damaged one is made anew by the next run.
    Verify(Common),
    /// Remove answers, vectors and decisions that nothing needs any more.
    Gc {
        #[command(flatten)]
        common: Common,
        /// Keep answers made in the last so many days, whether a question has them or not.
        #[arg(long, default_value_t = 30, env = "FLORILEGIUM_KEEP_DAYS")]
        keep_days: u64,
        /// Only say what would go.
        #[arg(long)]
        dry_run: bool,
    },
    /// Count what runs have kept.
    Stats(Common),
}

#[derive(Debug, Args)]
struct Common {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Verify(common) => {
            let found = verify(&Pipeline::load(&common.pipeline)?)?;
            if common.json {
                print_json(&found)?;
            } else {
                for damage in &found.damaged {
                    print(&format!("{}: {}\n", damage.path.display(), damage.problem))?;
                }
                print(&format!(
                    "{} records and {} indexes examined, {} damaged{}\n",
                    found.records,
                    found.indexes,
                    found.damaged.len(),
                    if found.damaged.is_empty() { "" } else { "; the next run makes them anew" }
                ))?;
            }
            Ok(if found.damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Gc { common, keep_days, dry_run } => {
            let swept = gc(&Pipeline::load(&common.pipeline)?, *keep_days, *dry_run)?;
            if common.json {
                print_json(&swept)?;
            } else {
                print(&format!(
                    "{}{} answers of {}, {} notes of questions no longer listed, {} vectors, the work of {} models, {} unfinished files; {:.1} MB of files\n",
                    if *dry_run { "would remove " } else { "removed " },
                    swept.answers,
                    swept.answers + swept.answers_kept,
                    swept.latest,
                    swept.vectors,
                    swept.models,
                    swept.unfinished,
                    swept.bytes as f64 / 1e6
                ))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Stats(common) => {
            let stats = stats(&Pipeline::load(&common.pipeline)?)?;
            if common.json {
                print_json(&stats)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut text = format!(
                "{} answers ({} to {}), {} damaged or of an older format; {} questions have one; {} runs\n",
                stats.answers,
                stats.oldest,
                stats.newest,
                stats.unusable,
                stats.questions,
                stats.runs
            );
            for (model, count) in &stats.by_model {
                text += &format!("  {count:>8} by {model}\n");
            }
            for (room, bytes) in &stats.bytes {
                text += &format!("  {:>10.1} kB {room}\n", *bytes as f64 / 1e3);
            }
            print(&text)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
