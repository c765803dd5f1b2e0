//! The batch run: read, embed, index, answer every published question. Only what changed is computed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use florilegium_files::lock::Lock;
use florilegium_llm::{Cost, LlmError};
use florilegium_questions::{Known, Question, QuestionList, Status};
use florilegium_synthesis::answer::Answer;
use florilegium_synthesis::{StageFailed, render};
use serde::Serialize;

use crate::error::BatchError;
use crate::ingest::Built;
use crate::library::Library;
use crate::pipeline::{PAGE_LANGUAGES, Pipeline};
use crate::progress;
use crate::wordings::Wordings;

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
    /// The library, open.
    pub library: Library,
    /// The published questions with their answers, in the order of the list.
    pub curated: Vec<Curated>,
    /// What the run did.
    pub report: RunReport,
    /// Held until the run is published.
    pub lock: Lock,
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

/// Runs a pipeline up to the answers. When `stop` becomes true, no further question is taken.
pub fn run(pipeline: Pipeline, stop: &AtomicBool) -> Result<Run, BatchError> {
    let start = Instant::now();
    let lock = Lock::take(&pipeline.paths.work.join("lock"))?;
    // Before any work: a fault in the list should not be found after an hour of embedding.
    let list = questions(&pipeline)?;
    let (library, built) = Library::build(pipeline)?;
    let published: Vec<&Question> =
        list.questions().iter().filter(|question| question.status == Status::Published).collect();
    let mut report = RunReport {
        documents: library.archive.documents().len(),
        passages: library.archive.passages().len(),
        built,
        questions: published.len(),
        ..RunReport::default()
    };

    // The most wanted first; the list's order otherwise.
    let mut order: Vec<usize> = (0..published.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(published[at].priority));
    let mut answers: Vec<Option<Curated>> = vec![None; published.len()];
    let synthesis = Instant::now();
    let bar = progress::bar(published.len() as u64, "answering", "questions");
    for (done, &at) in order.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            bar.abandon();
            library.save_vectors()?;
            return Err(BatchError::Stopped { done, total: published.len() });
        }
        answers[at] = answer(&library, published[at], &mut report)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Wordings::open(&library, &list)?;
    library.save_vectors()?;
    report.synthesis_seconds = synthesis.elapsed().as_secs_f64();
    report.seconds = start.elapsed().as_secs_f64();
    let curated: Vec<Curated> = answers.into_iter().flatten().collect();
    report.answered = curated.iter().filter(|curated| curated.answer.answered).count();
    report.insufficient = curated.len() - report.answered;
    Ok(Run { library, curated, report, lock })
}

/// Answers one question. When that fails, the last good answer stays, marked stale.
fn answer(
    library: &Library,
    question: &Question,
    report: &mut RunReport,
) -> Result<Option<Curated>, BatchError> {
    library.remember(&question.question)?;
    match library.ask(&question.question, &question.lang, &question.collections) {
        Ok(answered) => {
            if answered.fresh {
                report.computed += 1;
                report.cost += answered.stored.synthesis.trace.cost;
            } else {
                report.reused += 1;
            }
            library.store.set_latest(&question.id, &answered.stored.key)?;
            Ok(Some(Curated {
                question: question.clone(),
                answer: answered.answer,
                computed_on: answered.stored.computed_on,
                stale: false,
            }))
        }
        // Without a model every question would fail: that is the run's failure, not a question's.
        Err(
            error @ BatchError::Stage(StageFailed::Engine { source: LlmError::Missing(_), .. }),
        ) => Err(error),
        Err(error @ (BatchError::Stage(_) | BatchError::Llm(_))) => {
            tracing::warn!("{}: {error}", question.id);
            report.failed.push((question.id.clone(), error.to_string()));
            let Some(stored) = library.store.latest(&question.id)? else { return Ok(None) };
            // An answer whose sources have changed may no longer be shown.
            let Ok(answer) = render(&stored.synthesis, &library.archive) else { return Ok(None) };
            report.stale += 1;
            Ok(Some(Curated {
                question: question.clone(),
                answer,
                computed_on: stored.computed_on,
                stale: true,
            }))
        }
        Err(error) => Err(error),
    }
}
