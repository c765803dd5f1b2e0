//! Why a run, a search or an answer failed.

use std::path::PathBuf;

use florilegium_corpus::CorpusError;
use florilegium_embed::EmbedError;
use florilegium_files::FileError;
use florilegium_files::lock::LockError;
use florilegium_index::IndexError;
use florilegium_llm::LlmError;
use florilegium_models::ModelError;
use florilegium_questions::{QuestionErrors, QuestionProblem};
use florilegium_synthesis::{PromptError, RenderError, StageFailed};

/// Why a run, a search or an answer failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum BatchError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Llm(#[from] LlmError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Questions(#[from] QuestionErrors),
    #[error(transparent)]
    Question(#[from] QuestionProblem),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error(transparent)]
    Stage(#[from] StageFailed),
    /// A model of the list has not been fetched, or its file is not the right one.
    #[error("model {id} is not ready ({}); run `florilegium models fetch {id}`", path.display())]
    NoModel { id: String, path: PathBuf },
    /// Nothing has been built that could be opened.
    #[error("nothing has been built for {id} yet; run `florilegium run` with its pipeline file")]
    NotBuilt { id: String },
    /// No collection named feeds answers.
    #[error(
        "none of the collections {collections:?} feeds answers; name one with role = \"synthesis\""
    )]
    NothingFeeds { collections: Vec<String> },
    /// Weights and thresholds that were made for something else.
    #[error(
        "{}: {problem}; make it anew with `florilegium eval calibrate`, or remove the key `calibration` from the pipeline file",
        path.display()
    )]
    Calibration { path: PathBuf, problem: String },
    /// The run was asked to stop.
    #[error(
        "stopped: {done} of {total} questions have their answers, which are kept; run again to go on"
    )]
    Stopped { done: usize, total: usize },
    /// The run was asked to stop while it embedded.
    #[error("stopped: {done} of {total} new passages are embedded, and kept; run again to go on")]
    StoppedEmbedding { done: usize, total: usize },
    /// The report could not be made.
    #[error("the report of the run cannot be made: {0}")]
    Report(String),
    /// The archive was read anew while a cluster worked on it.
    #[error("the archive has changed since this cluster run was submitted; submit it again")]
    ArchiveChanged,
    /// Slurm did not take a job.
    #[error("sbatch: {0}; check that this machine may submit jobs, and the options in [cluster]")]
    Slurm(String),
}
