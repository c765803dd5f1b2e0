//! Language-model engines behind one contract.
//!
//! The model is asked for *decisions*: which of a few fixed answers fits best. An engine returns the
//! probability of each, read at the one token where the answer would begin, so nothing is decoded
//! and nothing the model could write ever leaves this crate. Measured against letting a small model
//! write its choice, reading the decision is both cheaper and far more often right.
//!
//! Prompts of one call share their beginnings (instructions, passage, question); the in-process
//! engine computes every shared token once, see [`local`].

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

mod cache;
pub mod local;
mod tree;

/// The answers a decision may have; each is a list of spellings whose probabilities are added.
pub type Choices = &'static [&'static [&'static str]];

/// Yes, then no.
pub const YES_NO: Choices = &[&["yes", "Yes"], &["no", "No"]];

/// One question with a closed set of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Instructions. Tokenized as text: nothing in it can pose as the markup of a chat.
    pub system: String,
    /// What is to be decided. Tokenized as text, whatever it contains.
    pub user: String,
    /// The answers allowed.
    pub choices: Choices,
}

/// What an engine thinks of a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Probability of each choice, in the order of the choices; they add up to one.
    pub probabilities: Vec<f64>,
    /// The share of the model's whole probability that fell on the choices, from 0 to 1. A low
    /// share means that the model wanted to say something else.
    pub mass: f64,
}

impl Judgement {
    /// Probability of the first choice.
    pub fn first(&self) -> f64 {
        self.probabilities.first().copied().unwrap_or(0.0)
    }
}

/// What a call cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Decisions taken.
    pub decisions: u64,
    /// Tokens of all prompts, as if each stood alone.
    pub prompt_tokens: u64,
    /// Tokens that were run through the model.
    pub computed_tokens: u64,
    /// Milliseconds.
    pub milliseconds: u64,
}

impl Cost {
    /// Tokens that did not have to be computed because another prompt had them too.
    pub fn reused_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_sub(self.computed_tokens)
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.decisions += other.decisions;
        self.prompt_tokens += other.prompt_tokens;
        self.computed_tokens += other.computed_tokens;
        self.milliseconds += other.milliseconds;
    }
}

/// Why an engine did not decide. The stage that asked has failed; nothing is guessed.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum LlmError {
    /// The model file is not there.
    #[error("model file {0} is missing; run `florilegium models fetch`")]
    Missing(String),
    /// The model could not be loaded or used.
    #[error("model {model}: {problem}")]
    Model {
        /// Identity of the model.
        model: String,
        /// What is wrong.
        problem: String,
    },
    /// A prompt does not fit the context.
    #[error(
        "a prompt has {tokens} tokens, the context holds {limit}; raise `context` or retrieve fewer passages"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens that fit.
        limit: usize,
    },
    /// The time allowed is over.
    #[error("the time limit of {} s is over", .0.as_secs())]
    Deadline(Duration),
    /// The engine has stopped.
    #[error("the language model has stopped; the reason is in the log")]
    Stopped,
}

/// When a call must be over.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    allowed: Duration,
}

impl Deadline {
    /// From now on, this long.
    pub fn after(allowed: Duration) -> Self {
        Deadline { at: Instant::now() + allowed, allowed }
    }

    /// An error once the time is over.
    pub fn check(&self) -> Result<(), LlmError> {
        if Instant::now() < self.at { Ok(()) } else { Err(LlmError::Deadline(self.allowed)) }
    }
}

/// A language model that decides.
pub trait Engine: Send + Sync {
    /// Name and hash of the model: part of the key under which its results are kept.
    fn identity(&self) -> &str;

    /// Decides all of `decisions`; the judgements come in their order.
    fn decide(
        &self,
        decisions: Vec<Decision>,
        deadline: Deadline,
    ) -> Result<(Vec<Judgement>, Cost), LlmError>;
}
