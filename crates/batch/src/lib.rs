//! The batch run: what changed, what must be computed, and where results are kept.
//!
//! [`Pipeline`] is an archive's file; [`Library`] is the archive read, embedded, indexed and ready to
//! be asked; [`run()`] answers every curated question, computing only what is not in the [`Store`].

mod candidates;
mod check;
mod clock;
mod cluster;
mod content;
mod decisions;
mod engine;
mod error;
mod history;
mod ingest;
mod ledger;
mod library;
mod live;
mod models;
mod night;
mod pipeline;
mod plan;
mod progress;
mod publication;
mod report;
mod run;
pub mod stop;
mod store;
mod upkeep;
mod vectors;
mod wordings;

pub use candidates::{Candidates, Group, Grouping, NearestQuestion, candidates, inert};
pub use check::{Checked, Verdict, check};
pub use cluster::{ClusterRun, ShardTold, Stage};
pub use decisions::{Decisions, Lazy, Remembering, decide_ahead};
pub use engine::{ConfiguredEngine, configured_engines};
pub use error::BatchError;
pub use history::{
    Change, Estimate, Failure, Failures, History, Outcome, Published, QuestionRecord, Rates,
    Rejected, RunRecord, Status as RunStatus,
};
pub use ingest::{Built, Ingest, Texts, open_archive};
pub use library::{Answered, Found, Library, Looked, calibrated, normalise, prompts};
pub use live::LiveServer;
pub use models::embedder;
pub use night::{Night, Options as NightOptions, Publication, night};
pub use pipeline::{PAGE_LANGUAGES, Pipeline, PipelineError};
pub use plan::{Action, Frequencies, Plan, Planned, differences, frequencies, plan, plan_night};
pub use progress::Counted;
pub use publication::{Layout, Publishing};
pub use report::{summary, write_report};
pub use run::{Curated, Run, RunReport, questions, run};
pub use store::{Inputs, InputsRecord, PassageRecord, Store, Stored};
pub use upkeep::{Damage, Stats, Swept, Verified, gc, stats, verify};
pub use vectors::Vectors;
pub use wordings::{Near, Wordings};
