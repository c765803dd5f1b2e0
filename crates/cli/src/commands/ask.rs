//! `florilegium ask "question"`

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use florilegium_corpus::language;
use florilegium_publish::answer_text;
use florilegium_questions::check_question;

use super::explain::road;
use super::{PipelineArgument, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The question.
    question: String,
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Language of the question; detected when not given.
    #[arg(long, env = "FLORILEGIUM_LANG")]
    lang: Option<String>,
    /// Answer only from this collection (may be given several times).
    #[arg(long, env = "FLORILEGIUM_COLLECTION")]
    collection: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print everything that was asked of the model, and what became of it.
    #[arg(long)]
    trace: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    check_question(&arguments.question)?;
    let library = arguments.pipeline.open()?;
    let known = &library.pipeline.languages;
    let language = match &arguments.lang {
        Some(lang) if known.contains(lang) => lang.clone(),
        Some(lang) => {
            bail!("{lang:?} is not a language of this archive; known: {}", known.join(", "))
        }
        None => language::detect(&arguments.question, known),
    };
    let answered = library.ask(&arguments.question, &language, &arguments.collection)?;
    if arguments.json {
        let trace = arguments.trace.then_some(&answered.stored.synthesis.trace);
        print_json(&serde_json::json!({
            "answer": answered.answer,
            "computed_on": answered.stored.computed_on,
            "fresh": answered.fresh,
            "trace": trace,
        }))?;
    } else {
        print(&answer_text(&answered.answer)?)?;
        if arguments.trace {
            print(&road(&answered.stored))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
