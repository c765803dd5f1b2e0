//! `florilegium eval retrieval|synthesis|calibrate --set FILE…`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use florilegium_batch::{
    Counted, Decisions, Pipeline, Vectors, calibrated, configured_engines, embedder, prompts,
};
use florilegium_eval::{
    Answers, Asking, Measured, Report, Sampling, Set, answer, answers_html, answers_table,
    calibrate, calibration_table, cases, html, retrieval, table,
};
use florilegium_files::write_atomic;
use florilegium_index::Ranking;
use florilegium_llm::schema::QuotationMode;
use florilegium_synthesis::{Extraction, Mode, Settings};

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
    /// How often questions are answered that can be, refused that cannot, and rightly answered.
    Synthesis(SynthesisArguments),
    /// Fit weights and thresholds for the language model and the prompts on half of the questions, and
    /// report on the other half.
    Calibrate(CalibrateArguments),
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

/// What questions are answered from, and with what.
#[derive(Debug, Args)]
struct AnsweringArguments {
    /// A set whose passages are searched (SQuAD-shaped JSON: an answerable question's article is held
    /// out to make it unanswerable) or given with each question (JSON Lines with `passages`).
    #[arg(long = "set", env = "FLORILEGIUM_SET", value_delimiter = ',')]
    sets: Vec<PathBuf>,
    /// A SQuAD-shaped set of which each question gets its own paragraph and no other.
    #[arg(long = "given", env = "FLORILEGIUM_GIVEN", value_delimiter = ',')]
    given: Vec<PathBuf>,
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Which of the pipeline's engines: an address, or `in-process`; the first when not given.
    #[arg(long, env = "FLORILEGIUM_ENGINE")]
    engine: Option<String>,
    /// The stages: `full`, or `degraded`.
    #[arg(long, env = "FLORILEGIUM_MODE", default_value = "degraded")]
    mode: StagesArgument,
    /// How quotations are chosen: `decide` or `generate`; what the pipeline says when not given.
    #[arg(long, env = "FLORILEGIUM_EXTRACTION")]
    extraction: Option<ExtractionArgument>,
    /// Let a model that writes quote freely, to see how often it is not verbatim.
    #[arg(long, env = "FLORILEGIUM_FREE")]
    free: bool,
    /// Without the calibration that the pipeline names.
    #[arg(long, env = "FLORILEGIUM_UNCALIBRATED")]
    uncalibrated: bool,
    /// Passages a question gets.
    #[arg(long, env = "FLORILEGIUM_PASSAGES")]
    passages: Option<usize>,
    /// At most this many answerable questions a set, and as many that its makers say have no answer.
    /// A larger sample contains the smaller one.
    #[arg(long, env = "FLORILEGIUM_SAMPLE", default_value_t = 100)]
    sample: usize,
    /// At most this many questions a set whose article is held out.
    #[arg(long, env = "FLORILEGIUM_HELD_OUT", default_value_t = 0)]
    held_out: usize,
    /// Where vectors and decisions are kept between runs.
    #[arg(long, env = "FLORILEGIUM_EVAL_WORK", default_value = "data/cache/eval")]
    work: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StagesArgument {
    Full,
    Degraded,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExtractionArgument {
    Decide,
    Generate,
}

#[derive(Debug, Args)]
struct SynthesisArguments {
    #[command(flatten)]
    answering: AnsweringArguments,
    /// Also write a page with plots here.
    #[arg(long, env = "FLORILEGIUM_HTML")]
    html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct CalibrateArguments {
    #[command(flatten)]
    answering: AnsweringArguments,
    /// Write the calibration here; name the file as `calibration` in the pipeline file.
    #[arg(long, env = "FLORILEGIUM_OUT")]
    out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.what {
        What::Synthesis(arguments) => measure_synthesis(arguments),
        What::Calibrate(arguments) => measure_calibration(arguments),
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

/// The questions with what became of them, and what they were asked with.
struct Answered {
    measured: Vec<Measured>,
    model: String,
    prompts: String,
    mode: Mode,
    settings: Settings,
}

fn answer_all(arguments: &AnsweringArguments) -> Result<Answered> {
    if arguments.sets.is_empty() && arguments.given.is_empty() {
        bail!("no set of questions is named; name one with --set FILE or --given FILE");
    }
    let pipeline = Pipeline::load(&arguments.pipeline.pipeline)?;
    let prompts = prompts(&pipeline)?;
    let engines = configured_engines(&pipeline)?;
    let engine = match &arguments.engine {
        Some(place) => engines.iter().find(|engine| engine.place == *place),
        None => engines.first(),
    };
    let Some(engine) = engine else {
        let known: Vec<&str> = engines.iter().map(|engine| engine.place.as_str()).collect();
        bail!("there is no such engine in the pipeline; known: {}", known.join(", "));
    };
    let engine = engine.open()?;
    let model = &pipeline.language_model;
    let mut settings = if arguments.uncalibrated {
        pipeline.synthesis.clone()
    } else {
        calibrated(&pipeline.synthesis, model, engine.identity(), prompts.hash())?
    };
    if let Some(passages) = arguments.passages {
        settings.passages = passages;
    }
    if arguments.free {
        settings.quotation = QuotationMode::Free;
    }
    let mode = match arguments.mode {
        StagesArgument::Full => Mode::Full,
        StagesArgument::Degraded => Mode::Degraded,
    };
    if let Some(extraction) = arguments.extraction {
        let stages = match mode {
            Mode::Full => &mut settings.full,
            Mode::Degraded => &mut settings.degraded,
        };
        stages.extraction = match extraction {
            ExtractionArgument::Decide => Extraction::Decide,
            ExtractionArgument::Generate => Extraction::Generate,
        };
    }
    let embedder = embedder(&pipeline)?;
    let mut vectors = Vectors::open(&arguments.work.join("vectors"), embedder.model_hash())?;
    let decisions = Decisions::open(&arguments.work.join("decisions"), engine.identity())?;
    let decisions = Mutex::new(decisions);
    let mut measured = Vec::new();
    let given = arguments.given.iter().map(|set| (set, true));
    for (set, given) in arguments.sets.iter().map(|set| (set, false)).chain(given) {
        let sampling = Sampling {
            passages: settings.passages,
            sample: arguments.sample,
            held_out: arguments.held_out,
            given,
        };
        let found = cases(set, sampling, &embedder, &mut vectors, &arguments.work.join("index"))?;
        let bar = indicatif::ProgressBar::new(0);
        bar.set_message(set.display().to_string());
        let done = |count: usize| bar.inc(count as u64);
        let counted = Counted { engine: engine.as_ref(), done: &done, stop: &|| false };
        let asking = Asking {
            engine: &counted,
            decisions: &decisions,
            mode,
            prompts: &prompts,
            settings: &settings,
            embedder: &embedder,
            allowed: Duration::from_secs(model.deadline_seconds),
        };
        let more = |count: usize| bar.inc_length(count as u64);
        measured.extend(answer(&found.cases, &found.index, &asking, &more));
        bar.finish_and_clear();
        decisions.lock().unwrap_or_else(std::sync::PoisonError::into_inner).save()?;
    }
    Ok(Answered {
        measured,
        model: engine.identity().to_owned(),
        prompts: prompts.hash().to_owned(),
        mode,
        settings,
    })
}

fn measure_synthesis(arguments: &SynthesisArguments) -> Result<ExitCode> {
    let Answered { measured, model, prompts, mode, settings } = answer_all(&arguments.answering)?;
    let answers = Answers::of(&model, &prompts, mode.name(), settings.answer_at, measured);
    if let Some(path) = &arguments.html {
        write_atomic(path, answers_html(&answers)?.as_bytes())?;
    }
    if arguments.json {
        print_json(&answers)?;
    } else {
        print(&answers_table(&answers))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure_calibration(arguments: &CalibrateArguments) -> Result<ExitCode> {
    let answered = answer_all(&arguments.answering)?;
    let Answered { measured, model, prompts, settings, .. } = answered;
    let fitted = calibrate(&measured, &model, &prompts, &settings).context(
        "too few questions: among those for fitting, some must be answerable and some not; raise --sample or --held-out",
    )?;
    if let Some(path) = &arguments.out {
        let text = toml::to_string(&fitted.calibration)?;
        let head =
            "# Made by `florilegium eval calibrate`; for this model and these prompts only.\n";
        write_atomic(path, format!("{head}{text}").as_bytes())?;
    }
    if arguments.json {
        print_json(&fitted)?;
    } else {
        print(&calibration_table(&fitted))?;
    }
    Ok(ExitCode::SUCCESS)
}
