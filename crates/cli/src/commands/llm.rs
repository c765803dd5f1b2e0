//! `florilegium llm check`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use florilegium_batch::{ConfiguredEngine, configured_engines};
use florilegium_llm::measure::{Speed, speed};
use florilegium_llm::{Deadline, Facts};
use serde::Serialize;

use super::{PipelineArgument, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show which engines are configured, whether they answer, and how fast they are.
    Check(CheckArguments),
}

#[derive(Debug, Args)]
struct CheckArguments {
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Ask only who they are; measure nothing.
    #[arg(long)]
    quick: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What was found out about one engine.
#[derive(Serialize)]
struct Checked {
    engine: String,
    works: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(flatten)]
    facts: Option<Facts>,
    tokens_per_second: Option<Speed>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Command::Check(arguments) = &arguments.command;
    let pipeline = arguments.pipeline.load()?;
    let engines = configured_engines(&pipeline)?;
    let allowed = Duration::from_secs(pipeline.language_model.deadline_seconds);
    let mut checked = Vec::new();
    for engine in &engines {
        let engine = check(engine, allowed, arguments.quick);
        if !arguments.json {
            print(&line(&engine))?;
        }
        checked.push(engine);
    }
    if arguments.json {
        print_json(&checked)?;
    }
    // One engine that works is enough to answer; the servers come first.
    let works = checked.iter().any(|engine| engine.works);
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(engine: &ConfiguredEngine<'_>, allowed: Duration, quick: bool) -> Checked {
    let mut checked = Checked {
        engine: engine.place.clone(),
        works: false,
        problem: None,
        facts: None,
        tokens_per_second: None,
    };
    let opened = engine.open().map_err(|e| e.to_string()).and_then(|engine| {
        checked.facts = engine.facts().pop();
        if !quick {
            let measured = speed(engine.as_ref(), Deadline::after(allowed));
            checked.tokens_per_second = Some(measured.map_err(|e| e.to_string())?);
        }
        Ok(())
    });
    checked.works = opened.is_ok();
    checked.problem = opened.err();
    checked
}

fn line(engine: &Checked) -> String {
    let mut parts = vec![format!("{}:", engine.engine)];
    if let Some(facts) = &engine.facts {
        parts.push(format!(
            "model {}, {} slots of {} tokens",
            facts.model, facts.slots, facts.context
        ));
    }
    if let Some(speed) = engine.tokens_per_second {
        parts.push(format!("({:.0} tokens/s read, {:.0} written)", speed.prompt, speed.written));
    }
    if let Some(problem) = &engine.problem {
        parts.push(format!("does not work: {problem}"));
    }
    parts.join(" ") + "\n"
}
