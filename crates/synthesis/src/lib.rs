//! From a question and its passages to verified quotations.
//!
//! The way: [`decide`](mod@decide) asks an engine which passages and sentences answer;
//! [`verify`](mod@verify) checks every proposed quotation against the passage named; the result, a
//! [`Synthesis`], holds places only; [`render`](mod@render) cuts the words out of the stored text.
//! What may be shown is decided in `verify` and `render` alone, and neither knows a model.

pub mod answer;
pub mod decide;
mod prompts;
pub mod render;
mod synthesis;
pub mod verify;

#[cfg(test)]
mod rules;

pub use decide::{Asked, Candidate, Likeness, Settings, StageFailed, Weights, decide};
pub use prompts::{PassagePrompt, PromptError, Prompts};
pub use render::{RenderError, excerpts, render};
pub use synthesis::{Judged, Mode, Proposal, Synthesis, Trace, Verified};
