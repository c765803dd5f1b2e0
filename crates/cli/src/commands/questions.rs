//! `florilegium questions check|status|candidates`: what editors need before and after a night.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use florilegium_batch::{
    Candidates, Group, Grouping, History, Library, Wordings, candidates, inert, questions,
};
use florilegium_corpus::Role;
use florilegium_index::Filter;
use florilegium_questions::{Question, Status, fold};
use serde::Serialize;

use super::{PipelineArgument, print, print_json};

/// Passages a forecast looks at.
const FORECAST: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Find every fault of the question list, and foretell what the archive has for each question.
    Check(CheckArguments),
    /// What each question got in the last run.
    Status(StatusArguments),
    /// What readers ask that no curated question answers, from the live server's question log.
    Candidates(CandidatesArguments),
}

#[derive(Debug, Args)]
struct CheckArguments {
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct StatusArguments {
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Print CSV, by id, to be taken into the spreadsheet.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct CandidatesArguments {
    /// The log: a folder with a file a day, or one file.
    log: PathBuf,
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Only groups that were asked on at least this many days.
    #[arg(long, env = "FLORILEGIUM_DAYS", default_value_t = Grouping::default().days)]
    days: usize,
    /// Wordings with at least this likeness are one group.
    #[arg(long, env = "FLORILEGIUM_ALIKE", default_value_t = Grouping::default().alike)]
    alike: f32,
    /// Rows with `variants` for the nearest curated question, instead of new questions.
    #[arg(long)]
    as_variants: bool,
    /// Print CSV in the columns of the question list.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.what {
        What::Check(arguments) => check(arguments),
        What::Status(arguments) => status(arguments),
        What::Candidates(arguments) => find(arguments),
    }
}

/// What the archive has for a question.
#[derive(Debug, Serialize)]
struct Forecast<'a> {
    id: &'a str,
    lang: &'a str,
    question: &'a str,
    /// Cosine of the nearest passage that feeds answers.
    nearest: f32,
    /// What an editor should know before the night.
    warnings: Vec<String>,
}

fn check(arguments: &CheckArguments) -> Result<ExitCode> {
    let pipeline = arguments.pipeline.load()?;
    // Every fault in one pass, or the list.
    let list = questions(&pipeline)?;
    let mut general: Vec<String> = list.warnings().iter().map(ToString::to_string).collect();
    let forecasts = match Library::open(pipeline) {
        Ok(library) => forecasts(&library, list.questions())?,
        Err(error) => {
            general.push(format!("no forecast: {error}"));
            Vec::new()
        }
    };
    if arguments.json {
        print_json(&serde_json::json!({
            "questions": list.questions().len(), "warnings": general, "forecasts": forecasts,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{} questions, no fault\n", list.questions().len());
    for warning in general {
        text += &format!("warning: {warning}\n");
    }
    for forecast in forecasts.iter().filter(|forecast| !forecast.warnings.is_empty()) {
        text += &format!("{} [{}] {}\n", forecast.id, forecast.lang, forecast.question);
        for warning in &forecast.warnings {
            text += &format!("  {warning}\n");
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn forecasts<'a>(library: &Library, questions: &'a [Question]) -> Result<Vec<Forecast<'a>>> {
    let feeding = library.pipeline.synthesis_collections();
    let open = questions.iter().filter(|question| question.status != Status::Retired);
    let mut forecasts = Vec::new();
    for question in open {
        let mut warnings = Vec::new();
        let all = library.search(&question.question, &Filter::default(), FORECAST)?;
        let collections = if question.collections.is_empty() {
            feeding.clone()
        } else {
            question.collections.clone()
        };
        let filter = Filter { collections, ..Filter::default() };
        let feeds = library.search(&question.question, &filter, FORECAST)?;
        let nearest = feeds.iter().map(|found| found.hit.dense).fold(0.0, f32::max);
        let searched_only = |collection: &str| {
            library.archive.collection(collection).is_some_and(|c| c.role == Role::Search)
        };
        if !all.is_empty() && all.iter().all(|found| searched_only(&found.passage.collection)) {
            warnings
                .push("the nearest passages are all in collections that are only searched".into());
        }
        let words = library.covered(&question.question, &feeds)?;
        if words < 0.34 {
            warnings.push(format!(
                "retrieval finds nothing near: of the words that matter, {:.0} % stand in the best passage",
                words * 100.0
            ));
        }
        forecasts.push(Forecast {
            id: &question.id,
            lang: &question.lang,
            question: &question.question,
            nearest,
            warnings,
        });
    }
    Ok(forecasts)
}

fn status(arguments: &StatusArguments) -> Result<ExitCode> {
    let pipeline = arguments.pipeline.load()?;
    let list = questions(&pipeline)?;
    let runs = History::new(&pipeline.paths.work).last(1)?;
    let run = runs.last().context(
        "there is no run to tell of yet; run `florilegium nightly` with this pipeline first",
    )?;
    let by_id: HashMap<&str, _> = run.questions.iter().map(|q| (q.id.as_str(), q)).collect();
    if arguments.json {
        print_json(run)?;
        return Ok(ExitCode::SUCCESS);
    }
    let word = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    let mut rows: Vec<[String; 9]> = Vec::new();
    for question in list.questions() {
        let told = by_id.get(question.id.as_str());
        let of = |value: Option<String>| value.unwrap_or_default();
        rows.push([
            question.id.clone(),
            question.lang.clone(),
            inert(&question.question),
            word(&question.status),
            of(told.map(|q| if q.stale { "stale".into() } else { word(&q.outcome) })),
            of(told.map(|q| word(&q.change))),
            of(told.map(|q| q.quotations.to_string())),
            of(told.map(|q| q.computed_on.clone())),
            of(told.map(|q| inert(&q.error.clone().unwrap_or_default()))),
        ]);
    }
    let head = [
        "id",
        "lang",
        "question",
        "status",
        "outcome",
        "change",
        "quotations",
        "computed_on",
        "error",
    ];
    if arguments.csv {
        print(&csv(&head, &rows)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("run {} of {}\n", run.number, run.started);
    for row in &rows {
        let [id, lang, question, status, outcome, change, quotations, day, error] = row;
        text += &format!(
            "{id:24} {lang:3} {status:10} {outcome:13} {change:12} {quotations:>3}  {day:10}  {question}\n"
        );
        if !error.is_empty() {
            text += &format!("{:24} {error}\n", "");
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn find(arguments: &CandidatesArguments) -> Result<ExitCode> {
    let library = arguments.pipeline.open()?;
    let list = questions(&library.pipeline)?;
    let wordings = Wordings::open(&library, &list)?;
    let finding = Grouping { days: arguments.days, alike: arguments.alike, ..Grouping::default() };
    let found = candidates(&library, &list, &wordings, &arguments.log, &finding)?;
    if arguments.json {
        print_json(&found)?;
    } else if arguments.csv {
        print(&if arguments.as_variants { variants(&found)? } else { new_questions(&found)? })?;
    } else {
        print(&told(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn told(found: &Candidates) -> String {
    let mut text = format!(
        "{} lines, of which {} ask a curated question and {} are no entries; {} groups\n",
        found.lines,
        found.curated,
        found.bad,
        found.groups.len()
    );
    if found.left > 0 {
        text += &format!("{} wordings asked on fewer days were not compared\n", found.left);
    }
    for group in &found.groups {
        let outcomes: Vec<String> =
            group.outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
        text += &format!(
            "\n{} days, {} times [{}], live: {}\n",
            group.days,
            group.count,
            group.lang,
            outcomes.join(", ")
        );
        for (wording, count) in group.wordings.iter().take(5) {
            text += &format!("  {count:>5}  {wording}\n");
        }
        if let Some(near) = &group.nearest {
            text += &format!("  nearest: {} ({:.3}) {}\n", near.id, near.similarity, near.question);
        }
    }
    text.chars().filter(|&c| c == '\n' || !c.is_control()).collect()
}

/// Rows of new questions, as drafts: an editor words them.
fn new_questions(found: &Candidates) -> Result<String> {
    let head = ["id", "lang", "question", "variants", "status", "note"];
    let rows: Vec<[String; 6]> = found
        .groups
        .iter()
        .enumerate()
        .map(|(number, group)| {
            [
                id(group, number),
                group.lang.clone(),
                inert(first(group)),
                inert(&joined(group.wordings.iter().skip(1))),
                "draft".into(),
                inert(&format!("asked {} times on {} days", group.count, group.days)),
            ]
        })
        .collect();
    csv(&head, &rows)
}

/// Rows of other wordings for the nearest curated question.
fn variants(found: &Candidates) -> Result<String> {
    let head = ["id", "lang", "variants", "similarity"];
    let rows: Vec<[String; 4]> = found
        .groups
        .iter()
        .filter_map(|group| {
            let near = group.nearest.as_ref()?;
            Some([
                near.id.clone(),
                group.lang.clone(),
                inert(&joined(group.wordings.iter())),
                format!("{:.3}", near.similarity),
            ])
        })
        .collect();
    csv(&head, &rows)
}

fn first(group: &Group) -> &str {
    group.wordings.first().map_or("", |(wording, _)| wording)
}

fn joined<'a>(wordings: impl Iterator<Item = &'a (String, u64)>) -> String {
    wordings.map(|(wording, _)| wording.as_str()).collect::<Vec<_>>().join(" | ")
}

/// An id of the first words, in letters that an address may have.
fn id(group: &Group, number: usize) -> String {
    let words: Vec<String> = fold(first(group))
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() > 2)
        .take(4)
        .map(str::to_owned)
        .collect();
    format!(
        "{}-{}-{}",
        group.lang,
        if words.is_empty() { "q".into() } else { words.join("-") },
        number + 1
    )
}

fn csv<const N: usize>(head: &[&str; N], rows: &[[String; N]]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head)?;
    for row in rows {
        writer.write_record(row)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}
