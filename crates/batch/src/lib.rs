//! The batch run: what changed, what must be computed, and where results are kept.
//!
//! [`Pipeline`] is an archive's file; [`Library`] is the archive read, embedded, indexed and ready to
//! be asked; [`run()`] answers every curated question, computing only what is not in the [`Store`].

mod content;
mod decisions;
mod engine;
mod error;
mod ingest;
mod library;
mod models;
mod pipeline;
mod progress;
mod publication;
mod run;
mod store;
mod vectors;
mod wordings;

pub use engine::{ConfiguredEngine, configured_engines};
pub use error::BatchError;
pub use ingest::{Built, Ingest, Texts, open_archive};
pub use library::{Answered, Found, Library, normalise};
pub use models::embedder;
pub use pipeline::{PAGE_LANGUAGES, Pipeline, PipelineError};
pub use publication::{Layout, Publication};
pub use run::{Curated, Run, RunReport, questions, run};
pub use store::{Inputs, Store, Stored};
pub use vectors::Vectors;
pub use wordings::{Near, Wordings};
