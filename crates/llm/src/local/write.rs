//! Writing a structure in this process.
//!
//! What is determined already (keys, punctuation, the rest of a sentence that is being quoted) is fed
//! in one batch with the token before it; only where there is a choice does the model take one: the
//! likeliest token that the schema admits here.

use std::time::Instant;

use llama_cpp_2::token::LlamaToken;

use super::Session;
use crate::automaton::{Automaton, Place};
use crate::{Cost, Deadline, Generated, Generation, LlmError};

/// What one attempt to write came to.
#[derive(Default)]
struct Draft {
    text: Vec<u8>,
    decoded: u64,
    fed: u64,
}

impl Session<'_> {
    /// Writes a structure; one retry with twice the allowance if it is cut off.
    pub(super) fn write(
        &mut self,
        generation: &Generation,
        deadline: Deadline,
    ) -> Result<Generated, LlmError> {
        let start = Instant::now();
        let prompt = self.frame.prompt(self.model, &generation.system, &generation.user);
        let automaton = Automaton::of(&generation.schema);
        let mut cost = Cost::default();
        let (mut decoded_tokens, mut fed_tokens) = (0, 0);
        let mut allowance = generation.allowance;
        for retried in [false, true] {
            cost.prompt_tokens += prompt.len() as u64;
            let written = self.attempt(&prompt, &automaton, allowance, deadline, &mut cost);
            let (draft, complete) = match written {
                Ok(written) => written,
                Err(error) => {
                    // What is half computed must not be mistaken for something kept.
                    self.forget_all();
                    return Err(error);
                }
            };
            decoded_tokens += draft.decoded;
            fed_tokens += draft.fed;
            if complete {
                let malformed =
                    |problem| LlmError::Malformed { engine: self.identity.clone(), problem };
                let text = String::from_utf8(draft.text).map_err(|e| malformed(e.to_string()))?;
                let value = generation.schema.read(&text).map_err(malformed)?;
                cost.milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                return Ok(Generated { value, cost, decoded_tokens, fed_tokens, retried });
            }
            if !retried {
                allowance *= 2;
            }
        }
        Err(LlmError::Truncated { engine: self.identity.clone(), tokens: allowance })
    }

    /// Writes until the text is complete, or the allowance is used up.
    fn attempt(
        &mut self,
        prompt: &[LlamaToken],
        automaton: &Automaton,
        allowance: usize,
        deadline: Deadline,
        cost: &mut Cost,
    ) -> Result<(Draft, bool), LlmError> {
        let tokens = prompt.len() + allowance;
        if tokens > self.cells {
            return Err(LlmError::PromptTooLong { tokens, limit: self.cells });
        }
        self.make_a_clean_start(&[prompt]);
        let branch = self.fork(0, prompt, allowance, &[])?;
        let mut at = branch.from;
        let mut pending = prompt[branch.from..].to_vec();
        let mut draft = Draft::default();
        let mut place = automaton.start();
        let complete = loop {
            if std::str::from_utf8(&draft.text).is_ok() {
                let (forced, after) = automaton.forced(&place);
                let tokens = self.model.vocab().tokenize(&forced, false, false);
                // Some vocabularies put a space before every text: then token by token.
                if self.spelled(&tokens) == forced {
                    draft.fed += tokens.len() as u64;
                    draft.text.extend(forced);
                    pending.extend(tokens);
                    place = after;
                }
            }
            if automaton.complete(&place) {
                break true;
            }
            if draft.decoded + draft.fed >= allowance as u64 {
                break false;
            }
            let last = self.feed(branch.sequence, &mut at, &pending, deadline, cost)?;
            let (token, after) = self
                .likeliest(last, automaton, &place)
                .ok_or_else(|| self.failed("no token of its vocabulary fits the schema"))?;
            draft.text.extend(self.pieces[token.0 as usize].iter());
            draft.decoded += 1;
            place = after;
            pending = vec![token];
        };
        // The prompt stays in memory for the next call, what was written does not.
        if at >= prompt.len() {
            let end = u32::try_from(prompt.len()).ok();
            let cut = self.context.kv_cache_seq_rm(branch.sequence as i32, end, None);
            cut.map_err(|e| self.failed(&e.to_string()))?;
            self.cache.ready(branch.sequence);
        } else {
            self.forget(branch.sequence)?;
        }
        Ok((draft, complete))
    }

    /// Computes tokens of a sequence; returns where the logits of the last one are.
    fn feed(
        &mut self,
        sequence: usize,
        at: &mut usize,
        tokens: &[LlamaToken],
        deadline: Deadline,
        cost: &mut Cost,
    ) -> Result<i32, LlmError> {
        let end = *at + tokens.len();
        for chunk in tokens.chunks(self.batch_size) {
            deadline.check()?;
            self.batch.clear();
            for &token in chunk {
                let added = self.batch.add(token, *at as i32, &[sequence as i32], *at + 1 == end);
                added.map_err(|e| self.failed(&e.to_string()))?;
                *at += 1;
            }
            let decoded = self.context.decode(&mut self.batch);
            decoded.map_err(|e| self.failed(&format!("decoding failed: {e}")))?;
            cost.computed_tokens += chunk.len() as u64;
        }
        let last = self.batch.n_tokens() - 1;
        self.batch.clear();
        Ok(last)
    }

    /// The likeliest token that may be written here, and where the text is after it.
    fn likeliest(
        &mut self,
        last: i32,
        automaton: &Automaton,
        place: &Place,
    ) -> Option<(LlamaToken, Place)> {
        if self.pieces.is_empty() {
            let vocabulary = self.model.vocab();
            let piece = |token| vocabulary.token_to_piece(token, false, None).into();
            self.pieces = vocabulary.tokens().map(piece).collect();
        }
        let next = automaton.next_bytes(place);
        let logits = self.context.get_logits_ith(last);
        let fits = |&token: &usize| {
            let first = self.pieces.get(token).and_then(|piece| piece.first());
            first.is_some_and(|&byte| next[usize::from(byte)])
        };
        let after = |token: usize| {
            let place = automaton.walk(place, &self.pieces[token])?;
            Some((LlamaToken(i32::try_from(token).ok()?), place))
        };
        let by_logit = |a: &usize, b: &usize| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b));
        let mut fitting: Vec<usize> = (0..logits.len()).filter(fits).collect();
        // Nearly always the best one will do, and nothing need be sorted.
        if let Some(found) = fitting.iter().copied().min_by(by_logit).and_then(after) {
            return Some(found);
        }
        fitting.sort_unstable_by(by_logit);
        fitting.into_iter().find_map(after)
    }

    /// The text that tokens stand for.
    fn spelled(&self, tokens: &[LlamaToken]) -> Vec<u8> {
        let mut text = Vec::new();
        for &token in tokens {
            text.extend(self.model.vocab().token_to_piece(token, false, None));
        }
        text
    }
}
