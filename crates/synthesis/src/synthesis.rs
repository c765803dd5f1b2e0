//! A synthesis as it is kept: where the verified quotations stand, and everything that was asked of
//! the model and what became of it. It holds no text that could be shown; see [`crate::render`].

use std::ops::Range;

use florilegium_llm::Cost;
use serde::{Deserialize, Serialize};

use crate::answer::Counts;
use crate::calibration::SentenceSignals;
use crate::verify::Outcome;

/// How much of the road was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Every stage on its own, on the primary engine.
    Full,
    /// One consolidated pass of decisions, on this machine.
    Degraded,
}

impl Mode {
    /// "full" or "degraded".
    pub fn name(self) -> &'static str {
        match self {
            Mode::Full => "full",
            Mode::Degraded => "degraded",
        }
    }
}

/// A question's verified answer, or the finding that the material is insufficient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Synthesis {
    /// The question as it was asked.
    pub question: String,
    /// BCP 47 tag.
    pub language: String,
    /// How it was made.
    pub mode: Mode,
    /// Identity of the language model.
    pub model: String,
    /// Hash of the passages it was made from.
    pub corpus: String,
    /// The verified quotations in the order they are shown. Empty: the material is insufficient.
    pub quotations: Vec<Verified>,
    /// Ids of the passages retrieved, the nearest first.
    pub retrieved: Vec<String>,
    /// What became of the material at each step.
    pub counts: Counts,
    /// Everything that was decided.
    pub trace: Trace,
}

/// A quotation that the verification accepted: a place, not a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Id of the document.
    pub document: String,
    /// Id of the passage.
    pub passage: String,
    /// Bytes in the document's canonical text.
    pub range: Range<usize>,
    /// SHA-256 of those bytes, so that a text that has changed since is noticed.
    pub text_hash: String,
    /// Whether it begins inside a sentence.
    pub cut_before: bool,
    /// Whether it ends inside a sentence.
    pub cut_after: bool,
}

/// What was asked of the model and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Hash of the prompt templates.
    pub prompts: String,
    /// Every call to the engine, in order.
    pub calls: Vec<Call>,
    /// The passages in the order they were retrieved.
    pub passages: Vec<Judged>,
    /// Probabilities that all relevant passages together answer, one for each order in which they were
    /// shown; empty when that was not asked.
    pub joint: Vec<f64>,
    /// The quotations proposed.
    pub proposals: Vec<Proposal>,
    /// Probability that the material holds the answer, against which `answer_at` was held.
    pub answerability: f64,
    /// What did not go as it should, and what was done instead.
    pub notes: Vec<Note>,
    /// What the model cost.
    pub cost: Cost,
}

/// One call to the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Name of the stage.
    pub stage: String,
    /// SHA-256 of everything that was asked.
    pub prompt: String,
    /// What it cost.
    pub cost: Cost,
    /// What came back: the probabilities of a call that decides, the JSON of one that writes.
    pub output: String,
    /// Whether it was asked twice, because the first answer was cut off or malformed.
    pub retried: bool,
}

/// Something that did not go as it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// A passage was left out, because the prompt would have been too long with it.
    PassageLeftOut {
        /// Its id.
        passage: String,
        /// Name of the stage.
        stage: String,
    },
    /// The order that the model gave was none of the ids it had; the order of retrieval stands.
    OrderRefused {
        /// Why.
        problem: String,
    },
}

/// A passage and what was decided about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Id of the passage.
    pub passage: String,
    /// Cosine of question and passage.
    pub similarity: f64,
    /// Probability that it states the answer, asked for yes or no.
    pub states: f64,
    /// Probability that there are words in it to be quoted as the answer.
    pub words: f64,
    /// Both together, by the mean of their log-odds.
    pub relevance: f64,
    /// Share of the model's probability that fell on yes and no.
    pub mass: f64,
    /// Whether it went on.
    pub relevant: bool,
}

/// A proposed quotation and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Id of the passage named as its source.
    pub passage: String,
    /// What the model claims that it says; kept for audit, shown nowhere.
    pub proposition: Option<String>,
    /// The words proposed.
    pub quotation: String,
    /// Probability that they state the answer, when that was decided.
    pub probability: Option<f64>,
    /// Cosine of question and quotation.
    pub similarity: f64,
    /// Share of the question's words, weighed by their rarity, that stand in the quotation or above it.
    pub coverage: f64,
    /// All of them, and the passage's relevance, put together.
    pub score: f64,
    /// What the verification found; nothing when it was not selected for showing.
    pub outcome: Option<Outcome>,
}

impl Proposal {
    /// What its score is made of; nothing for a proposal that was written and not judged.
    pub fn signals(&self, trace: &Trace) -> Option<SentenceSignals> {
        let passage = trace.passages.iter().find(|judged| judged.passage == self.passage)?;
        Some(SentenceSignals {
            sentence: self.probability?,
            passage: passage.relevance,
            similarity: self.similarity,
            coverage: self.coverage,
        })
    }
}
