//! The stages that ask a model, each with its prompt, its schema and what comes out of it.
//!
//! | stage | asks | gives |
//! |---|---|---|
//! | [`relevance`] | does this passage state the answer? | a probability for each passage |
//! | [`answerability`] | do these passages together? | a probability for each order |
//! | [`extraction`] | which words state it? | proposals |
//! | [`ordering`] | which should be read first? | an order of ids |
//!
//! What a stage proposes is verified by [`crate::verify`], which knows none of them.

pub(crate) mod answerability;
pub(crate) mod extraction;
pub(crate) mod ordering;
pub(crate) mod relevance;

use std::sync::Arc;

use florilegium_files::sha256_hex_parts;
use florilegium_llm::{Choices, Cost, Decision, Generation, Judgement, LlmError, Schema};

use crate::candidate::{Asked, Candidate};
use crate::prompts::{Listed, PromptError};
use crate::synthesis::{Call, Note, Trace};
use crate::synthesize::Means;

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

/// One question on its way through the stages.
pub(crate) struct Run<'a> {
    pub asked: Asked<'a>,
    pub candidates: &'a [Candidate<'a>],
    pub means: Means<'a>,
    pub trace: Trace,
}

impl<'a> Run<'a> {
    /// Takes decisions in one call.
    pub fn decide(
        &mut self,
        stage: &'static str,
        asked: Vec<(String, Choices)>,
    ) -> Result<Vec<Judgement>, StageFailed> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        (self.means.watch)(stage);
        let system = self.means.prompts.instructions()?;
        let parts = asked.iter().map(|(user, _)| user.as_str()).chain([system.as_str()]);
        let prompt = sha256_hex_parts(parts.map(str::as_bytes));
        let count = asked.len();
        let decision = |(user, choices)| Decision { system: system.clone(), user, choices };
        let decisions = asked.into_iter().map(decision).collect();
        let failed = |source| StageFailed::Engine { stage, source };
        let (judgements, cost) =
            self.means.engine.decide(decisions, self.means.deadline).map_err(failed)?;
        let sound = judgements.len() == count
            && judgements.iter().all(|j| j.first().is_finite() && (0.0..=1.0).contains(&j.first()));
        if !sound {
            let problem = "its judgements are not probabilities, one a decision".to_owned();
            let model = self.means.engine.identity().to_owned();
            return Err(failed(LlmError::Model { model, problem }));
        }
        let output: Vec<String> = judgements.iter().map(|j| format!("{:.4}", j.first())).collect();
        self.note_call(stage, prompt, cost, output.join(" "), false);
        Ok(judgements)
    }

    /// Takes one decision for each prompt, and nothing for one that is too long: its candidate is left
    /// out, and the trace says so. `of` names each prompt's candidate.
    pub fn decide_each(
        &mut self,
        stage: &'static str,
        asked: Vec<(String, Choices)>,
        of: impl Fn(usize) -> usize,
    ) -> Result<Vec<Option<Judgement>>, StageFailed> {
        match self.decide(stage, asked.clone()) {
            Ok(judgements) => return Ok(judgements.into_iter().map(Some).collect()),
            Err(StageFailed::Engine { source: LlmError::PromptTooLong { .. }, .. }) => {}
            Err(error) => return Err(error),
        }
        let mut judgements = Vec::with_capacity(asked.len());
        for (at, one) in asked.into_iter().enumerate() {
            match self.decide(stage, vec![one]) {
                Ok(judged) => judgements.extend(judged.into_iter().map(Some)),
                Err(StageFailed::Engine { source: LlmError::PromptTooLong { .. }, .. }) => {
                    self.leave_out(of(at), stage);
                    judgements.push(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(judgements)
    }

    /// Has a structure written. The engine has checked it against the schema; it is checked again.
    pub fn write(
        &mut self,
        stage: &'static str,
        user: String,
        schema: Schema,
        allowance: usize,
    ) -> Result<serde_json::Value, StageFailed> {
        (self.means.watch)(stage);
        let system = self.means.prompts.writing()?;
        let prompt = sha256_hex_parts([system.as_bytes(), user.as_bytes()]);
        let schema = Arc::new(schema);
        let generation = Generation { system, user, schema: schema.clone(), allowance };
        let failed = |source| StageFailed::Engine { stage, source };
        let written =
            self.means.engine.generate(generation, self.means.deadline).map_err(failed)?;
        let output = written.value.to_string();
        self.note_call(stage, prompt, written.cost, output, written.retried);
        schema.check(&written.value).map_err(|problem| {
            let model = self.means.engine.identity().to_owned();
            failed(LlmError::Model { model, problem: format!("outside its schema: {problem}") })
        })?;
        Ok(written.value)
    }

    /// Asks with as many of `passages` (numbers of candidates, the best first) as the engine takes:
    /// when the prompt is too long, the last is left out, and the trace says so.
    pub fn with_fewer_passages<T>(
        &mut self,
        stage: &'static str,
        mut passages: Vec<usize>,
        mut ask: impl FnMut(&mut Self, &[usize]) -> Result<T, StageFailed>,
    ) -> Result<T, StageFailed> {
        loop {
            match ask(self, &passages) {
                Err(StageFailed::Engine { source: LlmError::PromptTooLong { .. }, .. })
                    if passages.len() > 1 =>
                {
                    if let Some(left_out) = passages.pop() {
                        self.leave_out(left_out, stage);
                    }
                }
                asked => return asked,
            }
        }
    }

    pub fn leave_out(&mut self, candidate: usize, stage: &str) {
        let passage = self.candidates[candidate].passage.id.clone();
        let note = Note::PassageLeftOut { passage, stage: stage.to_owned() };
        if !self.trace.notes.contains(&note) {
            self.trace.notes.push(note);
        }
    }

    /// Candidates as they are listed in a prompt, in this order; ids name their rank.
    pub fn listed<'b>(&'b self, passages: &[usize], ids: &'b [String]) -> Vec<Listed<'b>> {
        passages
            .iter()
            .filter_map(|&at| {
                let candidate = self.candidates.get(at)?;
                Some(Listed {
                    id: ids.get(at)?,
                    title: candidate.title,
                    headings: candidate.passage.headings.join(" / "),
                    text: candidate.text,
                })
            })
            .collect()
    }

    fn note_call(
        &mut self,
        stage: &str,
        prompt: String,
        cost: Cost,
        output: String,
        retried: bool,
    ) {
        self.trace.cost += cost;
        self.trace.calls.push(Call { stage: stage.to_owned(), prompt, cost, output, retried });
    }
}
