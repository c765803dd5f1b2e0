//! `florilegium explain QUESTION|ID`: the road from a question to its answer, stage by stage.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use florilegium_batch::{Stored, questions};
use florilegium_corpus::language;
use florilegium_synthesis::Note;

use super::{PipelineArgument, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Id of a curated question, or a question that was asked before.
    question: String,
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Language of the question; detected when not given.
    #[arg(long, env = "FLORILEGIUM_LANG")]
    lang: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let library = arguments.pipeline.open()?;
    let list = questions(&library.pipeline)?;
    let curated = list.questions().iter().find(|question| question.id == arguments.question);
    let stored = match curated {
        Some(question) => library.store.latest(&question.id)?,
        None => {
            let known = &library.pipeline.languages;
            let lang = arguments
                .lang
                .clone()
                .unwrap_or_else(|| language::detect(&arguments.question, known));
            library.answered_before(&arguments.question, &lang, &[])?.map(|a| a.stored)
        }
    };
    let Some(stored) = stored else {
        bail!(
            "{:?} is no curated question with an answer, and was not asked of this archive as it is now; \
             give the id of one from {}, or ask it first with `florilegium ask`",
            arguments.question,
            library.pipeline.questions.file.display()
        );
    };
    if arguments.json {
        print_json(&stored)?;
    } else {
        print(&road(&stored))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The road of an answer, for a person.
pub(crate) fn road(stored: &Stored) -> String {
    let synthesis = &stored.synthesis;
    let trace = &synthesis.trace;
    let counts = synthesis.counts;
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    let mut text = format!(
        "{} [{}]\n{} mode, {}, corpus {}, prompts {}, made on {}, kept as {}\n\
         retrieved {}, relevant {}, proposed {}, rejected {}, shown {}\n",
        synthesis.question,
        synthesis.language,
        synthesis.mode.name(),
        synthesis.model,
        short(&synthesis.corpus),
        short(&trace.prompts),
        stored.computed_on,
        short(&stored.key),
        counts.retrieved,
        counts.relevant,
        counts.proposed,
        counts.rejected,
        counts.shown,
    );
    text += "\nretrieved passages: similarity; probability that they state the answer, that words can be quoted, both\n";
    for passage in &trace.passages {
        let mark = if passage.relevant { '+' } else { '-' };
        text += &format!(
            "  {mark} {:.3}  {:.3}  {:.3}  {:.3}  {}\n",
            passage.similarity, passage.states, passage.words, passage.relevance, passage.passage
        );
    }
    if !trace.joint.is_empty() {
        let joint: Vec<String> = trace.joint.iter().map(|p| format!("{p:.3}")).collect();
        text += &format!("all of them together, in two orders: {}\n", joint.join(", "));
    }
    text += "\nproposed quotations: score, probability, similarity, coverage, what the verification found\n";
    for proposal in &trace.proposals {
        let outcome = match &proposal.outcome {
            Some(outcome) => outcome.name(),
            None => "not selected",
        };
        text += &format!(
            "  {:.3}  {}  {:.3}  {:.2}  {outcome}\n      {}\n",
            proposal.score,
            proposal.probability.map_or("-".into(), |p| format!("{p:.3}")),
            proposal.similarity,
            proposal.coverage,
            proposal.quotation
        );
        if let Some(proposition) = &proposal.proposition {
            text += &format!("      claimed: {proposition}\n");
        }
    }
    text += &format!("probability that the material answers: {:.3}\n", trace.answerability);
    for note in &trace.notes {
        text += &match note {
            Note::PassageLeftOut { passage, stage } => {
                format!("{stage}: {passage} was left out, the prompt would have been too long\n")
            }
            Note::OrderRefused { problem } => {
                format!("ordering: what the model gave was refused ({problem}); as retrieved\n")
            }
        };
    }
    text += "\ncalls: stage, prompt, decisions, prompt tokens, of which computed, milliseconds, output\n";
    for call in &trace.calls {
        text += &format!(
            "  {}  {}  {}  {}  {}  {}{}\n      {}\n",
            call.stage,
            short(&call.prompt),
            call.cost.decisions,
            call.cost.prompt_tokens,
            call.cost.computed_tokens,
            call.cost.milliseconds,
            if call.retried { "  asked twice" } else { "" },
            call.output
        );
    }
    // A terminal would obey control characters.
    text.chars().filter(|&c| c == '\n' || !c.is_control()).collect()
}
