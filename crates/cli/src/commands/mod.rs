//! One module a subcommand.

pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod info;
pub(crate) mod ingest;
pub(crate) mod llm;
pub(crate) mod models;
pub(crate) mod nightly;
pub(crate) mod plan;
pub(crate) mod preview;
pub(crate) mod questions;
pub(crate) mod read_pdf;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod show;
mod site;
pub(crate) mod store;
pub(crate) mod templates;
pub(crate) mod why;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use florilegium_batch::{Library, Pipeline};
use serde::Serialize;

/// The pipeline file that `search` and `ask` use when none is given.
#[derive(Debug, Args)]
pub(crate) struct PipelineArgument {
    /// Pipeline file of the archive.
    #[arg(long, env = "FLORILEGIUM_PIPELINE", default_value = "pipelines/handbook.toml")]
    pipeline: PathBuf,
}

impl PipelineArgument {
    fn load(&self) -> Result<Pipeline> {
        Ok(Pipeline::load(&self.pipeline)?)
    }

    fn open(&self) -> Result<Library> {
        Ok(Library::open(self.load()?)?)
    }
}

/// On SIGINT and SIGTERM the run stops where nothing is lost; on the second, at once.
fn stop_on_signals(message: &'static str) -> Result<()> {
    ctrlc::set_handler(move || {
        if florilegium_batch::stop::request() {
            // Whatever was written is whole.
            std::process::exit(130);
        }
        eprintln!("{message}");
    })
    .context("cannot handle interrupts")
}

/// Writes to standard output. A reader that has gone away (`| head`) is no failure.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes a value as indented JSON.
fn print_json(value: &impl Serialize) -> Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}
