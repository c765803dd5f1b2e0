//! Language-model engines behind one contract.
//!
//! The model is asked for *decisions*: which of a few fixed answers fits best. An engine returns the
//! probability of each, read at the one token where the answer would begin, so nothing is decoded.
//! Measured against letting a small model write its choice, reading the decision is both cheaper and
//! far more often right.
//!
//! A large model may also *write* a structure: [`Engine::generate`] takes a [`Schema`] and returns a
//! value that has been checked against it, whatever the engine says. Where the schema asks for a
//! quotation, only runs of whole sentences of the passage can be written.
//!
//! Two engines: llama.cpp in this process ([`local`]) and servers over HTTP ([`server`]). Prompts of
//! one call share their beginnings (instructions, passage, question); both compute a shared token
//! once. [`schedule`] puts the decisions of many questions together by passage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

mod automaton;
mod cache;
mod error;
pub mod local;
pub mod measure;
pub mod schedule;
pub mod schema;
pub mod server;
mod shelf;
mod tree;

pub use error::LlmError;
pub use schema::Schema;

/// The answers a decision may have; each is a list of spellings whose probabilities are added. At
/// most one may be empty: it stands for everything that is none of the others.
pub type Choices = &'static [&'static [&'static str]];

/// Anything, then "none": for a request to copy words out of a passage, or to say that there are none.
pub const SOME_OR_NONE: Choices = &[&[], &["none", "None"]];

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

/// Something the model is to write.
#[derive(Debug, Clone)]
pub struct Generation {
    /// Instructions. Tokenized as text.
    pub system: String,
    /// The request. Tokenized as text; what several requests share should stand first.
    pub user: String,
    /// What may be written.
    pub schema: Arc<Schema>,
    /// Tokens allowed; one retry has twice as many.
    pub allowance: usize,
}

/// What the model wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The value, checked against the schema.
    pub value: serde_json::Value,
    /// What it cost; of a retried call, both attempts.
    pub cost: Cost,
    /// Output tokens that the model chose, one by one.
    pub decoded_tokens: u64,
    /// Output tokens that were determined already and were fed in batches, or not at all.
    pub fed_tokens: u64,
    /// Whether the first attempt was cut off or malformed.
    pub retried: bool,
}

/// What an engine, or one server of it, says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Where it is: an address, or "in-process".
    pub place: String,
    /// Model, as the engine names it.
    pub model: String,
    /// Tokens of context for one prompt; 0 when it does not say.
    pub context: usize,
    /// Prompts computed at the same time.
    pub slots: usize,
}

/// When a call must be over.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    allowed: Duration,
    stop: Option<&'static AtomicBool>,
}

impl Deadline {
    /// From now on, this long.
    pub fn after(allowed: Duration) -> Self {
        Deadline { at: Instant::now() + allowed, allowed, stop: None }
    }

    /// Over as well once the flag is true.
    #[must_use]
    pub fn or_when(self, stop: &'static AtomicBool) -> Self {
        Deadline { stop: Some(stop), ..self }
    }

    /// An error once the time is over.
    pub fn check(&self) -> Result<(), LlmError> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(LlmError::Cancelled);
        }
        if Instant::now() < self.at { Ok(()) } else { Err(LlmError::Deadline(self.allowed)) }
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
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

    /// Writes one structure.
    fn generate(&self, generation: Generation, deadline: Deadline) -> Result<Generated, LlmError> {
        let _ = (generation, deadline);
        Err(LlmError::Unsupported { engine: self.identity().to_owned(), what: "write" })
    }

    /// What is known about the engine, a line for each server.
    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }

    /// Forgets what it was asked before, as far as it can: what it has in memory changes the last
    /// digits of what it says. Called between questions whose answers must be the same bytes in
    /// whatever order, and on however many machines, they are asked.
    fn forget(&self) {}

    /// How many calls are worth making at the same time.
    fn slots(&self) -> usize {
        1
    }
}

/// The probabilities of choices, from their weights and the weight of everything. Nothing in the place
/// of a weight stands for the rest.
fn judgement(weights: &[Option<f64>], all: f64) -> Judgement {
    let named: f64 = weights.iter().flatten().sum();
    let rest = (all - named).max(0.0);
    let weights: Vec<f64> = weights.iter().map(|weight| weight.unwrap_or(rest)).collect();
    let chosen: f64 = weights.iter().sum();
    // When every choice is out of the question, none is preferred.
    let even = 1.0 / weights.len().max(1) as f64;
    let probability = |weight: f64| if chosen > 0.0 { weight / chosen } else { even };
    let mass = if all > 0.0 { (chosen / all).min(1.0) } else { 0.0 };
    Judgement { probabilities: weights.into_iter().map(probability).collect(), mass }
}

/// Finds the tokens with which the choices begin; `first` names the first token of a spelling.
fn choice_tokens<T: Ord + Copy, E>(
    choices: Choices,
    mut first: impl FnMut(&'static str) -> Result<Option<T>, E>,
) -> Result<Option<Vec<Vec<T>>>, E> {
    let mut all: Vec<T> = Vec::new();
    let mut found = Vec::new();
    for spellings in choices {
        let mut tokens = Vec::new();
        for spelling in *spellings {
            tokens.extend(first(spelling)?);
        }
        tokens.sort_unstable();
        tokens.dedup();
        all.extend(&tokens);
        found.push(tokens);
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    let has_tokens =
        |(tokens, spellings): (&Vec<T>, &&[&str])| tokens.is_empty() == spellings.is_empty();
    let told_apart = all.len() == count
        && found.iter().zip(choices).all(has_tokens)
        && choices.iter().filter(|spellings| spellings.is_empty()).count() <= 1;
    Ok(told_apart.then_some(found))
}

/// The beginning of a text from outside, for a message.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_without_a_spelling_stands_for_the_rest() {
        let judged = judgement(&[None, Some(2.0)], 8.0);
        assert_eq!((judged.probabilities, judged.mass), (vec![0.75, 0.25], 1.0));
        let first = |spelling: &'static str| Ok::<_, ()>(spelling.bytes().next());
        let tokens = choice_tokens(SOME_OR_NONE, first).unwrap().unwrap();
        assert_eq!(tokens, [vec![], vec![b'N', b'n']]);
        assert_eq!(choice_tokens(&[&[], &[], &["no"]], first).unwrap(), None);
        assert_eq!(choice_tokens(&[&["no"], &["none"]], first).unwrap(), None);
    }
}
