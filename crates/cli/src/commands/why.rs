//! `florilegium why ID`: what a stored answer depends on, and what differs from now.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use florilegium_batch::{InputsRecord, differences, questions};
use serde::Serialize;

use super::{PipelineArgument, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Id of a curated question.
    id: String,
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Why {
    id: String,
    key: String,
    computed_on: String,
    inputs: InputsRecord,
    /// Key of the answer to the inputs of now.
    key_now: String,
    differences: Vec<String>,
    /// Whether an answer to the inputs of now is kept.
    answered_now: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let library = arguments.pipeline.open()?;
    let list = questions(&library.pipeline)?;
    let id = &arguments.id;
    let question =
        list.questions().iter().find(|question| question.id == *id).with_context(|| {
            format!("{} has no question {id:?}", library.pipeline.questions.file.display())
        })?;
    let stored = library.store.latest(id)?.with_context(|| {
        format!("no answer to {id:?} is kept; run `florilegium nightly`, or `florilegium plan` to see what it would do")
    })?;
    let looked = library.look(&question.question, &question.lang, &question.collections)?;
    let why = Why {
        id: id.clone(),
        key: stored.key.clone(),
        computed_on: stored.computed_on.clone(),
        differences: differences(&stored.inputs, &looked.inputs),
        answered_now: library.store.get(&looked.key)?.is_some(),
        key_now: looked.key,
        inputs: stored.inputs,
    };
    if arguments.json {
        print_json(&why)?;
    } else {
        print(&text(&why))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(why: &Why) -> String {
    let inputs = &why.inputs;
    let mut text = format!(
        "{}: answered on {}, kept as {}\n  question   {}\n  language   {}\n  model      {}\n  embedding  {}\n  prompts    {}\n  settings   {}\n  method     {}\n  passages\n",
        why.id,
        why.computed_on,
        why.key,
        inputs.question,
        inputs.language,
        inputs.model,
        inputs.embedding,
        inputs.prompts,
        inputs.settings,
        inputs.method
    );
    for (at, passage) in inputs.passages.iter().enumerate() {
        text += &format!(
            "  {:>3}. {}  {}\n",
            at + 1,
            passage.id,
            passage.text_hash.get(..12).unwrap_or(&passage.text_hash)
        );
    }
    if why.differences.is_empty() {
        return text + "nothing differs from now\n";
    }
    for difference in &why.differences {
        text += &format!("now: {difference}\n");
    }
    text + if why.answered_now {
        "an answer to the inputs of now is kept too\n"
    } else {
        "the next run answers it anew\n"
    }
}
