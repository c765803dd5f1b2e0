//! `florilegium rollback PIPELINE`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use clap::Args;
use florilegium_batch::Pipeline;
use florilegium_files::lock::Lock;
use florilegium_publish::{releases, rollback};
use serde_json::json;

use super::{print, print_json, site};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Name of the release to go back to; the one published before the current one when not given.
    #[arg(long, value_name = "RELEASE", conflicts_with = "list")]
    to: Option<String>,
    /// Only list the releases that are kept.
    #[arg(long)]
    list: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pipeline = Pipeline::load(&arguments.pipeline)?;
    let layout = site::layout(&pipeline);
    let public = &pipeline.paths.public;
    if arguments.list {
        let known = releases(public, &pipeline.id, layout)?;
        if arguments.json {
            let known: Vec<_> = known
                .iter()
                .map(|release| {
                    let minutes = minutes_since(release.published);
                    json!({ "name": release.name, "current": release.current, "minutes_ago": minutes })
                })
                .collect();
            print_json(&known)?;
            return Ok(ExitCode::SUCCESS);
        }
        if known.is_empty() {
            print(&format!("no release of {} in {}\n", pipeline.id, public.display()))?;
        }
        for release in known {
            let mark = if release.current { "*" } else { " " };
            let minutes = minutes_since(release.published);
            print(&format!("{mark} {}  published {minutes} minutes ago\n", release.name))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // A run that publishes meanwhile would switch back.
    let _lock = Lock::take(&pipeline.paths.work.join("lock"))?;
    let name = rollback(public, &pipeline.id, layout, arguments.to.as_deref())?;
    if arguments.json {
        print_json(&json!({ "release": name }))?;
    } else {
        print(&format!("{} is now {name}\n", public.join(&pipeline.id).display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn minutes_since(time: SystemTime) -> u64 {
    SystemTime::now().duration_since(time).unwrap_or_default().as_secs() / 60
}
