//! The consolidated pass: every choice is a decision of the model, none of its words is used.
//!
//! 1. Each retrieved passage is judged on its own (rule 3).
//! 2. In the most relevant ones, each sentence that is near the question is judged.
//! 3. The signals are put together; if the best is too weak, the material is insufficient (rule 2).
//! 4. The chosen sentences are proposed as quotations, verified (rule 5), and put in order by code.

use std::ops::Range;

use florilegium_corpus::Passage;
use florilegium_files::sha256_hex;
use florilegium_llm::{Deadline, Decision, Engine, LlmError, YES_NO};
use serde::{Deserialize, Serialize};

use crate::answer::Counts;
use crate::prompts::{PassagePrompt, PromptError, Prompts};
use crate::synthesis::{Judged, Mode, Proposal, Synthesis, Trace, Verified};
use crate::verify::verify;

/// A retrieved passage.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The passage.
    pub passage: &'a Passage,
    /// Title of its document.
    pub title: &'a str,
    /// Its text: a slice of the stored canonical text.
    pub text: &'a str,
    /// Cosine of question and passage.
    pub similarity: f32,
}

/// The question that is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// As the reader wrote it.
    pub text: &'a str,
    /// BCP 47 tag.
    pub language: &'a str,
}

/// What governs the pass. Part of the key under which results are kept.
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
    /// The material is sufficient when the best sentence's score is at least this.
    pub answer_at: f64,
    /// A further sentence is shown when its score is at least this.
    pub show_at: f64,
    /// At most this many sentences are shown.
    pub quotations: usize,
    /// A quotation has at least this many letters and digits.
    pub shortest: usize,
    /// How the signals are put together.
    pub weights: Weights,
}

/// Weights of a logistic regression: `score = 1 / (1 + exp(-(bias + …)))`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
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

impl Default for Settings {
    /// Fitted with Qwen2.5-Coder-1.5B on 33 questions (handbook; XQuAD en and el, PIAF fr, the
    /// article held out for the unanswerable ones); see the README for how well it does.
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
            weights: Weights {
                bias: -21.45,
                sentence: 1.67,
                passage: 1.23,
                similarity: 21.4,
                coverage: 0.0,
            },
        }
    }
}

/// Why there is no synthesis. The pipeline has failed for this question; nothing is guessed.
#[derive(Debug, thiserror::Error)]
pub enum StageFailed {
    /// The language model did not decide.
    #[error("the stage {stage} failed: {source}")]
    Engine {
        /// Name of the stage.
        stage: &'static str,
        /// Why.
        source: LlmError,
    },
    /// A prompt could not be made.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The sentences could not be compared with the question.
    #[error("the sentences could not be compared with the question: {0}")]
    Likeness(String),
}

/// How like the question a sentence is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    /// Cosine of both.
    pub similarity: f32,
    /// Share of the question's words, weighed by their rarity, that stand in the sentence, or in the
    /// title and headings above it.
    pub coverage: f32,
}

/// Computes the likeness of the question and each of some sentences, which stand under some headings.
pub type Compare<'a> = &'a dyn Fn(&[&str], &str) -> Result<Vec<Likeness>, String>;

/// A sentence on its way.
struct Sentence<'a> {
    candidate: usize,
    range: Range<usize>,
    text: &'a str,
    similarity: f64,
    coverage: f64,
}

/// Makes the synthesis of one question in the consolidated pass.
#[allow(clippy::too_many_arguments)]
pub fn decide(
    asked: Asked<'_>,
    candidates: &[Candidate<'_>],
    corpus: &str,
    engine: &dyn Engine,
    prompts: &Prompts,
    compare: Compare<'_>,
    settings: &Settings,
    deadline: Deadline,
) -> Result<Synthesis, StageFailed> {
    let instructions = prompts.instructions()?;
    let decision = |user: String| Decision { system: instructions.clone(), user, choices: YES_NO };
    let mut trace = Trace { prompts: prompts.hash().to_owned(), ..Trace::default() };

    // 1. Each passage on its own.
    let decisions = candidates
        .iter()
        .map(|candidate| Ok(decision(prompts.relevance(prompt(candidate, asked.text))?)))
        .collect::<Result<Vec<_>, PromptError>>()?;
    let (judgements, cost) = ask(engine, "relevance", decisions, deadline)?;
    trace.cost += cost;
    let relevance: Vec<f64> = judgements.iter().map(florilegium_llm::Judgement::first).collect();
    let mut order: Vec<usize> =
        (0..candidates.len()).filter(|&at| relevance[at] >= settings.relevant_at).collect();
    order.sort_by(|&a, &b| relevance[b].total_cmp(&relevance[a]).then(a.cmp(&b)));
    order.truncate(settings.relevant_passages);
    for (at, (candidate, judgement)) in candidates.iter().zip(&judgements).enumerate() {
        trace.passages.push(Judged {
            passage: candidate.passage.id.clone(),
            similarity: f64::from(candidate.similarity),
            relevance: judgement.first(),
            mass: judgement.mass,
            relevant: order.contains(&at),
        });
    }

    // 2. Their sentences, those nearest to the question.
    let mut sentences: Vec<Sentence<'_>> = Vec::new();
    for &at in &order {
        sentences.extend(near_sentences(at, &candidates[at], compare, settings)?);
    }
    let decisions = sentences
        .iter()
        .map(|s| {
            Ok(decision(prompts.sentence(prompt(&candidates[s.candidate], asked.text), s.text)?))
        })
        .collect::<Result<Vec<_>, PromptError>>()?;
    let (judgements, cost) = ask(engine, "sentences", decisions, deadline)?;
    trace.cost += cost;

    // 3. Is the best of them good enough?
    for (sentence, judgement) in sentences.iter().zip(&judgements) {
        let probability = judgement.first();
        trace.proposals.push(Proposal {
            passage: candidates[sentence.candidate].passage.id.clone(),
            quotation: sentence.text.to_owned(),
            probability,
            similarity: sentence.similarity,
            coverage: sentence.coverage,
            score: settings.weights.score(probability, relevance[sentence.candidate], sentence),
            outcome: None,
        });
    }
    trace.answerability = trace.proposals.iter().map(|p| p.score).fold(0.0, f64::max);
    let mut chosen: Vec<usize> = Vec::new();
    if trace.answerability >= settings.answer_at {
        chosen = (0..sentences.len())
            .filter(|&at| trace.proposals[at].score >= settings.show_at.min(trace.answerability))
            .collect();
        chosen.sort_by(|&a, &b| {
            trace.proposals[b].score.total_cmp(&trace.proposals[a].score).then(a.cmp(&b))
        });
        chosen.truncate(settings.quotations);
    }

    // 4. Verification, by code that knows no model.
    let mut accepted: Vec<(f64, Verified)> = Vec::new();
    for &at in &chosen {
        let named = candidates[sentences[at].candidate];
        let others = candidates.iter().filter(|c| c.passage.id != named.passage.id).map(|c| c.text);
        let proposal = &mut trace.proposals[at];
        let outcome = verify(&proposal.quotation, Some(named.text), others, settings.shortest);
        if outcome.accepted() {
            let range = sentences[at].range.clone();
            accepted.push((proposal.score, verified(named, range)));
        }
        proposal.outcome = Some(outcome);
    }
    let counts = Counts {
        retrieved: candidates.len(),
        relevant: order.len(),
        proposed: chosen.len(),
        rejected: chosen.len() - accepted.len(),
        shown: 0,
    };
    let quotations = in_order(accepted, candidates);
    Ok(Synthesis {
        question: asked.text.to_owned(),
        language: asked.language.to_owned(),
        mode: Mode::Degraded,
        model: engine.identity().to_owned(),
        corpus: corpus.to_owned(),
        counts: Counts { shown: quotations.len(), ..counts },
        quotations,
        retrieved: candidates.iter().map(|c| c.passage.id.clone()).collect(),
        trace,
    })
}

/// The sentences of a passage that are nearest to the question, in the order of the text.
fn near_sentences<'a>(
    at: usize,
    candidate: &Candidate<'a>,
    compare: Compare<'_>,
    settings: &Settings,
) -> Result<Vec<Sentence<'a>>, StageFailed> {
    let start = candidate.passage.range.start;
    let texts: Vec<(Range<usize>, &'a str)> = candidate
        .passage
        .sentences
        .iter()
        .filter_map(|range| {
            let inside = range.start.checked_sub(start)?..range.end.checked_sub(start)?;
            Some((range.clone(), candidate.text.get(inside)?))
        })
        .filter(|(_, text)| {
            text.chars().filter(|c| c.is_alphanumeric()).count() >= settings.shortest
        })
        .filter(|(_, text)| !asks(text, &candidate.passage.language))
        .collect();
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let only: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
    let above = format!("{} {}", candidate.title, candidate.passage.headings.join(" "));
    let likenesses = compare(&only, &above).map_err(StageFailed::Likeness)?;
    let mut sentences: Vec<Sentence<'a>> = texts
        .into_iter()
        .zip(likenesses)
        .map(|((range, text), likeness)| Sentence {
            candidate: at,
            range,
            text,
            similarity: f64::from(likeness.similarity),
            coverage: f64::from(likeness.coverage),
        })
        .collect();
    sentences.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    sentences.truncate(settings.sentences);
    sentences.sort_by_key(|sentence| sentence.range.start);
    Ok(sentences)
}

/// Whether a sentence asks instead of telling: a question answers none.
fn asks(sentence: &str, language: &str) -> bool {
    let end = sentence.trim_end_matches(|c: char| !c.is_alphanumeric());
    let marks = &sentence[end.len()..];
    marks.contains(['?', '؟', '？']) || (matches!(language, "el" | "grc") && marks.contains(';'))
}

fn verified(candidate: Candidate<'_>, range: Range<usize>) -> Verified {
    let start = candidate.passage.range.start;
    let text = candidate.text.get(range.start - start..range.end - start).unwrap_or_default();
    Verified {
        document: candidate.passage.document.clone(),
        passage: candidate.passage.id.clone(),
        text_hash: sha256_hex(text.as_bytes()),
        range,
    }
}

/// Orders the quotations: passages by their best quotation, inside a passage as the text has them;
/// neighbours become one quotation, by range.
fn in_order(mut accepted: Vec<(f64, Verified)>, candidates: &[Candidate<'_>]) -> Vec<Verified> {
    let best = |passage: &str, accepted: &[(f64, Verified)]| {
        accepted.iter().filter(|(_, v)| v.passage == passage).map(|(s, _)| *s).fold(0.0, f64::max)
    };
    let mut passages: Vec<(f64, String)> = Vec::new();
    for (_, verified) in &accepted {
        if !passages.iter().any(|(_, passage)| *passage == verified.passage) {
            passages.push((best(&verified.passage, &accepted), verified.passage.clone()));
        }
    }
    passages.sort_by(|a, b| b.0.total_cmp(&a.0));
    accepted.sort_by_key(|(_, verified)| verified.range.start);
    let mut ordered: Vec<Verified> = Vec::new();
    for (_, passage) in passages {
        let Some(candidate) = candidates.iter().find(|c| c.passage.id == passage) else { continue };
        for (_, next) in accepted.iter().filter(|(_, v)| v.passage == passage) {
            let gap = ordered.last().filter(|last| last.passage == passage).and_then(|last| {
                let start = candidate.passage.range.start;
                candidate
                    .text
                    .get(last.range.end.checked_sub(start)?..next.range.start.checked_sub(start)?)
            });
            match (gap, ordered.last_mut()) {
                (Some(" "), Some(last)) => {
                    *last = verified(*candidate, last.range.start..next.range.end);
                }
                _ => ordered.push(next.clone()),
            }
        }
    }
    ordered
}

fn ask(
    engine: &dyn Engine,
    stage: &'static str,
    decisions: Vec<Decision>,
    deadline: Deadline,
) -> Result<(Vec<florilegium_llm::Judgement>, florilegium_llm::Cost), StageFailed> {
    if decisions.is_empty() {
        return Ok(Default::default());
    }
    let failed = |source| StageFailed::Engine { stage, source };
    let asked = decisions.len();
    let (judgements, cost) = engine.decide(decisions, deadline).map_err(failed)?;
    let sound = judgements.len() == asked
        && judgements.iter().all(|j| j.first().is_finite() && (0.0..=1.0).contains(&j.first()));
    if !sound {
        let problem = "its judgements are not probabilities, one a decision".to_owned();
        return Err(failed(LlmError::Model { model: engine.identity().to_owned(), problem }));
    }
    Ok((judgements, cost))
}

/// What a candidate's prompts are made of.
fn prompt<'a>(candidate: &Candidate<'a>, question: &'a str) -> PassagePrompt<'a> {
    PassagePrompt {
        title: candidate.title,
        headings: &candidate.passage.headings,
        passage: candidate.text,
        question,
    }
}

impl Weights {
    /// The probability that a sentence answers, all signals together.
    fn score(&self, probability: f64, passage: f64, sentence: &Sentence<'_>) -> f64 {
        let sum = self.bias
            + self.sentence * log_odds(probability)
            + self.passage * log_odds(passage)
            + self.similarity * sentence.similarity
            + self.coverage * sentence.coverage;
        1.0 / (1.0 + (-sum).exp())
    }
}

/// Log-odds of a probability, held within bounds so that one certain signal cannot drown the others.
fn log_odds(probability: f64) -> f64 {
    (probability.ln() - (1.0 - probability).ln()).clamp(-8.0, 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_in_the_text_is_no_answer() {
        assert!(asks("Γιατί όχι;", "el"));
        assert!(asks("Pourquoi pas ?\u{a0}»", "fr"));
        assert!(!asks("Il le faut ;", "fr"));
        assert!(!asks("Η λυχνία άναψε· όλοι χάρηκαν.", "el"));
    }
}
