//! `florilegium cluster submit PIPELINE --shards N`: the same run on a Slurm cluster. The other
//! subcommands are its jobs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use florilegium_batch::{Action, ClusterRun, Pipeline};

use super::{nightly, print, stop_on_signals};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read what has changed, and submit the jobs of a run: embedding and answering side by side,
    /// then publication.
    Submit {
        /// Pipeline file of the archive, on a file system that the cluster shares.
        #[arg(env = "FLORILEGIUM_PIPELINE")]
        pipeline: PathBuf,
        /// Jobs that embed and answer side by side.
        #[arg(long, env = "FLORILEGIUM_SHARDS", value_parser = clap::value_parser!(u32).range(1..=1000))]
        shards: u32,
        /// Only write the scripts.
        #[arg(long)]
        dry_run: bool,
    },
    /// Embed one share (a job).
    Embed(Part),
    /// Index, plan and divide the questions (a job).
    Plan(Whole),
    /// Answer one share (a job).
    Answer(Part),
    /// Publish and report, or submit again what died (a job).
    Publish(Whole),
}

#[derive(Debug, Args)]
struct Whole {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Number of the cluster run.
    #[arg(long, env = "FLORILEGIUM_NUMBER")]
    number: u64,
}

#[derive(Debug, Args)]
struct Part {
    #[command(flatten)]
    whole: Whole,
    /// Number of the share, from 0.
    #[arg(long, env = "FLORILEGIUM_SHARD")]
    shard: u32,
}

impl Whole {
    fn open(&self) -> Result<(Pipeline, ClusterRun)> {
        stop_on_signals("stopping; what is finished is kept")?;
        let pipeline = Pipeline::load(&self.pipeline)?;
        let run = ClusterRun::open(&pipeline, self.number)?;
        Ok((pipeline, run))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Submit { pipeline, shards, dry_run } => {
            let file = std::path::absolute(pipeline).context("cannot find the pipeline file")?;
            // The jobs start elsewhere: every path in them is whole.
            let pipeline = Pipeline::load(&file)?;
            let program = std::env::current_exe().context("cannot find this program")?;
            let run = ClusterRun::prepare(&pipeline, &file, &program, *shards)?;
            print(&format!(
                "cluster run {}: {} passages to embed, scripts and logs in {}\n",
                run.number,
                run.to_embed(),
                run.folder.display()
            ))?;
            if *dry_run {
                return Ok(ExitCode::SUCCESS);
            }
            for (stage, job) in run.submit()? {
                print(&format!("{}: job {job}\n", stage.name()))?;
            }
        }
        Command::Embed(part) => {
            let (pipeline, run) = part.whole.open()?;
            print(&format!("{} passages embedded\n", run.embed(&pipeline, part.shard)?))?;
        }
        Command::Plan(whole) => {
            let (pipeline, run) = whole.open()?;
            let plan = run.plan(pipeline)?;
            print(&format!(
                "{} questions to answer in {} shares\n",
                plan.count(Action::Answer),
                run.shards()
            ))?;
        }
        Command::Answer(part) => {
            let (pipeline, run) = part.whole.open()?;
            print(&format!("{} questions answered\n", run.answer(pipeline, part.shard)?))?;
        }
        Command::Publish(whole) => {
            let (pipeline, run) = whole.open()?;
            let dead = run.resubmit_dead(&pipeline)?;
            if !dead.is_empty() {
                print(&format!("the shares {dead:?} died and are submitted again, alone\n"))?;
                return Ok(ExitCode::SUCCESS);
            }
            return nightly::finish(run.merge(pipeline)?, false, false);
        }
    }
    Ok(ExitCode::SUCCESS)
}
