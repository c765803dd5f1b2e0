//! What governs the making of an answer. All of it is part of the key under which results are kept.

use florilegium_llm::schema::QuotationMode;
use serde::{Deserialize, Serialize};

use crate::calibration::{AnswerWeights, SentenceWeights};

/// What governs the pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Passages retrieved.
    pub passages: usize,
    /// A passage goes on when the probability that it states the answer is at least this.
    pub relevant_at: f64,
    /// At most this many passages go on.
    pub relevant_passages: usize,
    /// In each, at most this many sentences are judged: those nearest to the question.
    pub sentences: usize,
    /// The material is sufficient when its probability of holding the answer is at least this.
    pub answer_at: f64,
    /// A further sentence is shown when its score is at least this.
    pub show_at: f64,
    /// At most this many quotations are shown.
    pub quotations: usize,
    /// A quotation has at least this many letters and digits.
    pub shortest: usize,
    /// How a sentence's signals are put together.
    pub weights: SentenceWeights,
    /// How the signals of the whole material are put together.
    pub answerability: AnswerWeights,
    /// Whether a model that writes can write quotations freely, or only sentences of the passage.
    pub quotation: QuotationMode,
    /// Whether a quotation is accepted that differs from its source in glyphs that say the same. What
    /// is shown are the source's own bytes in any case.
    pub equivalent: bool,
    /// What becomes of a quotation that begins or ends inside a sentence.
    pub partial: Partial,
    /// The stages, when the primary engine is there.
    pub full: Stages,
    /// The stages on this machine's processor.
    pub degraded: Stages,
}

/// What becomes of a quotation that begins or ends inside a sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Partial {
    /// It is extended to whole sentences.
    #[default]
    Extend,
    /// It stays as it is, and the page says that something was left out.
    Mark,
}

/// How the stages work that can be done in more than one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stages {
    /// Whether the passages answer at all.
    pub answerability: Answerability,
    /// Which words of them do.
    pub extraction: Extraction,
    /// In which order they are shown.
    pub ordering: Ordering,
}

/// How it is found whether the passages answer at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answerability {
    /// From the signals of the other stages.
    Signals,
    /// The model is also asked about all relevant passages together, in two orders.
    Joint,
}

/// How quotations are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extraction {
    /// Every sentence near the question is judged; quotations are sentences.
    Decide,
    /// The model writes propositions, each with its quotation.
    Generate,
}

/// In which order quotations are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ordering {
    /// Passages by their best quotation; inside a passage as the text has them.
    Score,
    /// As the passages were retrieved.
    Retrieval,
    /// As the model orders them: it is given opaque ids, and may leave some out.
    Engine,
}

impl Default for Settings {
    /// Thresholds for Qwen2.5-Coder-1.5B before any calibration; a calibration file replaces them.
    fn default() -> Self {
        Settings {
            passages: 5,
            relevant_at: 0.3,
            relevant_passages: 3,
            sentences: 3,
            answer_at: 0.15,
            show_at: 0.25,
            quotations: 3,
            shortest: 8,
            weights: SentenceWeights::default(),
            answerability: AnswerWeights::default(),
            quotation: QuotationMode::default(),
            equivalent: false,
            partial: Partial::default(),
            full: Stages {
                answerability: Answerability::Joint,
                extraction: Extraction::Decide,
                ordering: Ordering::Score,
            },
            degraded: Stages {
                answerability: Answerability::Signals,
                extraction: Extraction::Decide,
                ordering: Ordering::Score,
            },
        }
    }
}
