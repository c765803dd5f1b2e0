//! The batch run: read, embed, index, answer every published question. Only what changed is computed.

use florilegium_llm::Cost;
use florilegium_questions::{Known, Question, QuestionList};
use florilegium_synthesis::answer::Answer;
use serde::Serialize;

use crate::error::BatchError;
use crate::history::{Outcome, QuestionRecord};
use crate::ingest::Built;
use crate::night::{Night, Options, night};
use crate::pipeline::{PAGE_LANGUAGES, Pipeline};

/// A curated question and its answer.
#[derive(Debug, Clone)]
pub struct Curated {
    /// The question, from the editors' list.
    pub question: Question,
    /// Its answer.
    pub answer: Answer,
    /// Day on which the answer was made.
    pub computed_on: String,
    /// Whether it is an earlier answer, kept because a new one could not be made.
    pub stale: bool,
}

/// What a run did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunReport {
    /// Documents in the archive.
    pub documents: usize,
    /// Passages in the archive.
    pub passages: usize,
    /// What reading, embedding and indexing did.
    pub built: Built,
    /// Published questions.
    pub questions: usize,
    /// Answered with quotations.
    pub answered: usize,
    /// Found insufficient.
    pub insufficient: usize,
    /// Answers made in this run.
    pub computed: usize,
    /// Answers that were there already.
    pub reused: usize,
    /// Questions that failed, with the reason.
    pub failed: Vec<(String, String)>,
    /// Of these, those whose earlier answer stays.
    pub stale: usize,
    /// What the language model cost.
    pub cost: Cost,
    /// Seconds spent on answers.
    pub synthesis_seconds: f64,
    /// Seconds in all.
    pub seconds: f64,
}

/// The result of a run.
pub struct Run {
    /// The library, the answers, and the lock until they are published.
    pub night: Night,
    /// What the run did.
    pub report: RunReport,
}

/// Loads the question list of a pipeline, or every fault in it.
pub fn questions(pipeline: &Pipeline) -> Result<QuestionList, BatchError> {
    let collections = pipeline.synthesis_collections();
    let collections: Vec<&str> = collections.iter().map(String::as_str).collect();
    let languages: Vec<&str> = PAGE_LANGUAGES
        .into_iter()
        .filter(|language| pipeline.languages.iter().any(|known| known == language))
        .collect();
    let known = Known { languages: &languages, collections: &collections };
    Ok(QuestionList::load(&pipeline.questions.file, &known)?)
}

/// Runs a pipeline up to the answers. Failures and changes are reported and hold nothing back.
pub fn run(pipeline: Pipeline) -> Result<Run, BatchError> {
    let night = night(pipeline, Options { try_all: true, ..Options::default() })?;
    let record = &night.record;
    let failed = |question: &QuestionRecord| {
        let missed = matches!(question.outcome, Outcome::Failed | Outcome::Waiting);
        let reason = question.error.clone().unwrap_or_else(|| record.notes.join("; "));
        missed.then(|| (question.id.clone(), reason))
    };
    let answered = night.curated.iter().filter(|curated| curated.answer.answered).count();
    let report = RunReport {
        documents: night.library.archive.documents().len(),
        passages: night.library.archive.passages().len(),
        built: record.built.clone(),
        questions: record.questions.len(),
        answered,
        insufficient: night.curated.len() - answered,
        computed: record.fresh(),
        reused: night.curated.iter().filter(|curated| !curated.stale).count() - record.fresh(),
        failed: record.questions.iter().filter_map(failed).collect(),
        stale: night.curated.iter().filter(|curated| curated.stale).count(),
        cost: record.cost,
        synthesis_seconds: record.synthesis_seconds,
        seconds: record.seconds,
    };
    Ok(Run { night, report })
}
