//! From a question and its passages to verified quotations.
//!
//! The way: [`synthesize`](mod@synthesize) leads a question through the [`stages`], in which an
//! engine says which passages and sentences answer; [`verify`](mod@verify) checks every proposed
//! quotation against the passage named; the result, a [`Synthesis`], holds places only;
//! [`render`](mod@render) cuts the words out of the stored text. What may be shown is decided in
//! `verify` and `render` alone, and neither knows a model.

pub mod answer;
pub mod calibration;
mod candidate;
mod prompts;
pub mod render;
mod settings;
pub mod stages;
mod synthesis;
pub mod synthesize;
pub mod verify;

#[cfg(test)]
mod rules;

pub use calibration::{AnswerWeights, Calibration, SentenceSignals, SentenceWeights};
pub use candidate::{Asked, Candidate, Compare, Likeness};
pub use prompts::{Listed, Ordered, PassagePrompt, PromptError, Prompts};
pub use render::{RenderError, excerpts, render};
pub use settings::{Answerability, Extraction, Ordering, Partial, Settings, Stages};
pub use stages::StageFailed;
pub use synthesis::{Call, Judged, Mode, Note, Proposal, Synthesis, Trace, Verified};
pub use synthesize::{Means, synthesize};
