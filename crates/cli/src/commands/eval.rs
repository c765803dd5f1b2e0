//! `florilegium eval retrieval --set FILE…`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use florilegium_batch::{Pipeline, Vectors, embedder};
use florilegium_eval::{Report, Set, html, retrieval, table};
use florilegium_files::write_atomic;
use florilegium_index::Ranking;

use super::{PipelineArgument, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// How often the text that answers a question is found, and how high.
    Retrieval(RetrievalArguments),
}

#[derive(Debug, Args)]
struct RetrievalArguments {
    /// A set: SQuAD-shaped JSON, or QUESTIONS@TEXTS: questions of one file against the paragraphs of
    /// the same set in another language, or wordings (JSON Lines with `query` and `target`) against
    /// curated questions (`id` and `question`). May be given several times.
    #[arg(long = "set", required = true, env = "FLORILEGIUM_SET", value_delimiter = ',')]
    sets: Vec<String>,
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Weight of the words against the vectors' 1.
    #[arg(long, env = "FLORILEGIUM_LEXICAL_WEIGHT", default_value_t = Ranking::default().lexical_weight)]
    lexical_weight: f32,
    /// Where vectors are kept between runs.
    #[arg(long, env = "FLORILEGIUM_EVAL_WORK", default_value = "data/cache/eval")]
    work: PathBuf,
    /// An earlier run (what --json printed) to compare with.
    #[arg(long, env = "FLORILEGIUM_COMPARE")]
    compare: Option<PathBuf>,
    /// Also write a page with plots here.
    #[arg(long, env = "FLORILEGIUM_HTML")]
    html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.what {
        What::Retrieval(arguments) => measure_retrieval(arguments),
    }
}

fn measure_retrieval(arguments: &RetrievalArguments) -> Result<ExitCode> {
    let sets = arguments.sets.iter().map(|set| Set::load(set)).collect::<Result<Vec<_>, _>>()?;
    let earlier: Option<Report> = match &arguments.compare {
        Some(path) => {
            let bytes = florilegium_files::read(path)?;
            Some(serde_json::from_slice(&bytes).with_context(|| {
                format!("{} is not a report that --json printed", path.display())
            })?)
        }
        None => None,
    };
    let embedder = embedder(&Pipeline::load(&arguments.pipeline.pipeline)?)?;
    let mut vectors = Vectors::open(&arguments.work.join("vectors"), embedder.model_hash())?;
    let mut rows = Vec::new();
    let questions = sets.iter().map(|set| set.questions.len() as u64).sum();
    let bar = indicatif::ProgressBar::new(questions);
    for set in &sets {
        let folder = arguments.work.join("index");
        let weight = arguments.lexical_weight;
        rows.extend(retrieval(set, &embedder, &mut vectors, &folder, weight, &mut || bar.inc(1))?);
    }
    bar.finish_and_clear();
    let report = Report {
        model: embedder.model_hash().to_owned(),
        lexical_weight: arguments.lexical_weight,
        rows,
    };
    if let Some(path) = &arguments.html {
        write_atomic(path, html(&report, earlier.as_ref())?.as_bytes())?;
    }
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&table(&report, earlier.as_ref()))?;
    }
    Ok(ExitCode::SUCCESS)
}
