//! From signals to probabilities: a logistic regression over what the stages found, fitted on
//! questions whose answers are known, for one model and one set of prompts.

use serde::{Deserialize, Serialize};

use crate::settings::Settings;
use crate::synthesis::{Judged, Trace};

/// Log-odds are held within these bounds, so that one certain signal cannot drown the others.
const CERTAIN: f64 = 8.0;

/// `score = 1 / (1 + exp(-(bias + …)))` of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentenceWeights {
    /// Added always.
    pub bias: f64,
    /// Times the log-odds that the sentence states the answer.
    pub sentence: f64,
    /// Times the log-odds that the passage does.
    pub passage: f64,
    /// Times the cosine of question and sentence.
    pub similarity: f64,
    /// Times the share of the question's words that stand in the sentence or above it.
    pub coverage: f64,
}

/// What is known of a sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SentenceSignals {
    /// Probability that the sentence states the answer.
    pub sentence: f64,
    /// Probability that its passage does.
    pub passage: f64,
    /// Cosine of question and sentence.
    pub similarity: f64,
    /// Share of the question's words that stand in it or above it.
    pub coverage: f64,
}

impl Default for SentenceWeights {
    /// Fitted with Qwen2.5-Coder-1.5B on 33 questions (handbook; XQuAD en and el, PIAF fr).
    fn default() -> Self {
        SentenceWeights {
            bias: -21.45,
            sentence: 1.67,
            passage: 1.23,
            similarity: 21.4,
            coverage: 0.0,
        }
    }
}

impl SentenceWeights {
    /// The probability that a sentence answers, all signals together.
    pub fn score(&self, signals: &SentenceSignals) -> f64 {
        let sum: f64 = signals.features().iter().zip(self.slopes()).map(|(x, w)| x * w).sum();
        logistic(self.bias + sum)
    }

    /// The weights in the order of [`SentenceSignals::features`].
    pub fn slopes(&self) -> [f64; 4] {
        [self.sentence, self.passage, self.similarity, self.coverage]
    }

    /// From a bias and the weights in that order.
    pub fn of(bias: f64, [sentence, passage, similarity, coverage]: [f64; 4]) -> Self {
        SentenceWeights { bias, sentence, passage, similarity, coverage }
    }
}

impl SentenceSignals {
    /// As the regression takes them.
    pub fn features(&self) -> [f64; 4] {
        [log_odds(self.sentence), log_odds(self.passage), self.similarity, self.coverage]
    }
}

/// How many signals the material as a whole has.
pub const ANSWER_SIGNALS: usize = 7;

/// `answerability = 1 / (1 + exp(-(bias + …)))` of all that was retrieved for a question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerWeights {
    /// Added always.
    pub bias: f64,
    /// Times the log-odds of the best sentence's score.
    pub sentence: f64,
    /// Times the log-odds that a passage states the answer, of the one where that is likeliest.
    pub states: f64,
    /// Times the log-odds that a passage has words to quote, of the one where that is likeliest.
    pub words: f64,
    /// Times the mean log-odds of the second and third best passages: agreement across passages.
    pub agreement: f64,
    /// Times the best cosine of question and passage.
    pub similarity: f64,
    /// Times the best sentence's share of the question's words.
    pub coverage: f64,
    /// Times the log-odds that all passages together answer, when that was asked.
    pub joint: f64,
}

impl Default for AnswerWeights {
    /// The best sentence's score decides.
    fn default() -> Self {
        AnswerWeights {
            bias: 0.0,
            sentence: 1.0,
            states: 0.0,
            words: 0.0,
            agreement: 0.0,
            similarity: 0.0,
            coverage: 0.0,
            joint: 0.0,
        }
    }
}

impl AnswerWeights {
    /// The probability that the material holds the answer.
    pub fn score(&self, features: &[f64; ANSWER_SIGNALS]) -> f64 {
        let sum: f64 = features.iter().zip(self.slopes()).map(|(x, w)| x * w).sum();
        logistic(self.bias + sum)
    }

    /// The weights in the order of [`answer_features`].
    pub fn slopes(&self) -> [f64; ANSWER_SIGNALS] {
        [
            self.sentence,
            self.states,
            self.words,
            self.agreement,
            self.similarity,
            self.coverage,
            self.joint,
        ]
    }

    /// From a bias and the weights in that order.
    pub fn of(bias: f64, slopes: [f64; ANSWER_SIGNALS]) -> Self {
        let [sentence, states, words, agreement, similarity, coverage, joint] = slopes;
        AnswerWeights { bias, sentence, states, words, agreement, similarity, coverage, joint }
    }
}

/// The signals of the whole material, from what the stages have found; `score` gives a proposal's.
pub fn answer_features(trace: &Trace, weights: &SentenceWeights) -> [f64; ANSWER_SIGNALS] {
    let mut passages: Vec<f64> = trace.passages.iter().map(|p| log_odds(p.relevance)).collect();
    passages.sort_by(|a, b| b.total_cmp(a));
    let further: Vec<f64> = passages.iter().skip(1).take(2).copied().collect();
    let agreement = if further.is_empty() {
        -CERTAIN
    } else {
        further.iter().sum::<f64>() / further.len() as f64
    };
    let similarity = trace.passages.iter().map(|p| p.similarity).fold(0.0, f64::max);
    let best = trace
        .proposals
        .iter()
        .filter_map(|proposal| Some((weights.score(&proposal.signals(trace)?), proposal.coverage)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let (sentence, coverage) = best.map_or((-CERTAIN, 0.0), |(s, c)| (log_odds(s), c));
    let asked = trace.joint.len().max(1) as f64;
    let joint = trace.joint.iter().map(|&p| log_odds(p)).sum::<f64>() / asked;
    let best = |signal: fn(&Judged) -> f64| {
        trace.passages.iter().map(|p| log_odds(signal(p))).fold(-CERTAIN, f64::max)
    };
    [sentence, best(|p| p.states), best(|p| p.words), agreement, similarity, coverage, joint]
}

/// Log-odds of a probability, within bounds.
pub fn log_odds(probability: f64) -> f64 {
    (probability.ln() - (1.0 - probability).ln()).clamp(-CERTAIN, CERTAIN)
}

pub(crate) fn logistic(sum: f64) -> f64 {
    1.0 / (1.0 + (-sum).exp())
}

/// Weights and thresholds fitted for one model and one set of prompts; a TOML file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Identity of the language model.
    pub model: String,
    /// Hash of the prompts.
    pub prompts: String,
    /// What it was fitted on, for people.
    pub fitted_on: String,
    /// A passage goes on at this probability.
    pub relevant_at: f64,
    /// The material is sufficient at this probability.
    pub answer_at: f64,
    /// A further sentence is shown at this score.
    pub show_at: f64,
    /// How a sentence's signals are put together.
    pub sentence: SentenceWeights,
    /// How the signals of the whole material are put together.
    pub answerability: AnswerWeights,
}

impl Calibration {
    /// The settings with these weights and thresholds.
    pub fn apply(&self, settings: &Settings) -> Settings {
        Settings {
            relevant_at: self.relevant_at,
            answer_at: self.answer_at,
            show_at: self.show_at,
            weights: self.sentence,
            answerability: self.answerability,
            ..settings.clone()
        }
    }

    /// What keeps it from being used with a model and prompts; nothing when it was made for them.
    pub fn mismatch(&self, model: &str, prompts: &str) -> Option<String> {
        if self.model != model {
            return Some(format!("it was made for the model {}, not {model}", self.model));
        }
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        (self.prompts != prompts).then(|| {
            format!(
                "it was made for the prompts {}, which have changed to {}",
                short(&self.prompts),
                short(prompts)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_is_refused_when_model_or_prompts_have_changed() {
        let calibration = Calibration {
            model: "m@1".into(),
            prompts: "p".into(),
            fitted_on: String::new(),
            relevant_at: 0.3,
            answer_at: 0.5,
            show_at: 0.5,
            sentence: SentenceWeights::default(),
            answerability: AnswerWeights::default(),
        };
        assert_eq!(calibration.mismatch("m@1", "p"), None);
        assert!(calibration.mismatch("m@2", "p").is_some_and(|e| e.contains("m@2")));
        assert!(calibration.mismatch("m@1", "q").is_some_and(|e| e.contains("prompts")));
        assert_eq!(calibration.apply(&Settings::default()).answer_at, 0.5);
    }

    #[test]
    fn certainty_is_bounded_and_more_of_a_signal_is_never_less_likely() {
        assert_eq!((log_odds(0.0), log_odds(1.0), log_odds(0.5)), (-8.0, 8.0, 0.0));
        let signals =
            |sentence| SentenceSignals { sentence, passage: 0.5, similarity: 0.9, coverage: 0.0 };
        let weights = SentenceWeights::default();
        assert!(weights.score(&signals(0.9)) > weights.score(&signals(0.1)));
        assert_eq!(SentenceWeights::of(weights.bias, weights.slopes()), weights);
        let answer = AnswerWeights::default();
        assert_eq!(AnswerWeights::of(answer.bias, answer.slopes()), answer);
    }
}
