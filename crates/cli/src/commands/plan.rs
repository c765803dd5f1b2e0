//! `florilegium plan PIPELINE`: what a run would do, why, and what it would cost.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use florilegium_batch::{Action, Pipeline, Plan, plan_night};

use super::{print, print_json, stop_on_signals};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Also list the questions whose answers are kept.
    #[arg(long, env = "FLORILEGIUM_ALL")]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    stop_on_signals("stopping; once more to stop at once")?;
    let plan = plan_night(Pipeline::load(&arguments.pipeline)?)?;
    if arguments.json {
        print_json(&plan)?;
    } else {
        print(&text(&plan, arguments.all))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(plan: &Plan, all: bool) -> String {
    let built = &plan.built;
    let mut text = format!(
        "sources: {} files read, {} gone, {} as before; {} passages embedded{}\n",
        built.files_read,
        built.files_removed,
        built.files_kept,
        built.embedded_passages,
        if built.indexed { ", indexed" } else { "" },
    );
    for question in &plan.questions {
        let doing = match question.action {
            Action::Keep if !all && question.reasons.is_empty() => continue,
            Action::Keep => "keep",
            Action::Answer => "answer",
            Action::Pause => "pause",
        };
        text += &format!("{doing:<7} {} ({})", question.id, question.lang);
        if !question.reasons.is_empty() {
            text += &format!(": {}", question.reasons.join("; "));
        }
        if let Some(estimate) = question.estimate {
            text += &format!(" [{:.0} tokens, {:.0} s]", estimate.tokens, estimate.seconds);
        }
        text.push('\n');
    }
    text += &format!(
        "{} questions: {} to answer, {} kept, {} left alone after failures\n",
        plan.questions.len(),
        plan.count(Action::Answer),
        plan.count(Action::Keep),
        plan.count(Action::Pause),
    );
    text + &match plan.estimate {
        _ if plan.count(Action::Answer) == 0 => "no model work\n".to_owned(),
        Some(estimate) => format!(
            "about {:.0} tokens and {} of model work, by the {} last runs that did any\n",
            estimate.tokens,
            duration(estimate.seconds),
            plan.rates.runs
        ),
        None => "no earlier run with this model to estimate by\n".to_owned(),
    }
}

/// Seconds as a person says them.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use florilegium_batch::{Built, Estimate, Planned, Rates};

    use super::*;

    #[test]
    fn a_plan_says_what_why_and_what_it_will_cost() {
        let planned = |id: &str, action, reasons: &[&str]| Planned {
            id: id.into(),
            lang: "en".into(),
            action,
            reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            key: String::new(),
            passages: Vec::new(),
            passage_tokens: 0,
            estimate: (action == Action::Answer)
                .then_some(Estimate { tokens: 1200.0, seconds: 8.0 }),
            number: 0,
        };
        let plan = Plan {
            built: Built { files_read: 1, files_kept: 9, embedded_passages: 2, ..Built::default() },
            questions: vec![
                planned(
                    "one",
                    Action::Answer,
                    &["passage set changed: 2 new passages in the top 12, 2 gone"],
                ),
                planned("two", Action::Keep, &[]),
                planned("three", Action::Pause, &["failed 3 times"]),
            ],
            rates: Rates { runs: 4, ..Rates::default() },
            estimate: Some(Estimate { tokens: 1200.0, seconds: 600.0 }),
        };
        insta::assert_snapshot!(text(&plan, false), @r"
        sources: 1 files read, 0 gone, 9 as before; 2 passages embedded
        answer  one (en): passage set changed: 2 new passages in the top 12, 2 gone [1200 tokens, 8 s]
        pause   three (en): failed 3 times
        3 questions: 1 to answer, 1 kept, 1 left alone after failures
        about 1200 tokens and 10 min of model work, by the 4 last runs that did any
        ");
        assert!(text(&plan, true).contains("keep    two (en)\n"));
    }
}
