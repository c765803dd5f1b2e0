//! The decisions of many questions, put together by passage.
//!
//! The passage stands before the question in a prompt. Taken question by question, a passage is
//! computed again for each question that has retrieved it; taken by passage, it is computed once a
//! night. What comes out is the same, up to the rounding of the engine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::tree::shared_length;
use crate::{Cost, Deadline, Decision, Engine, Judgement, LlmError};

/// What came of one question's decisions.
pub type Decided = Result<(Vec<Judgement>, Cost), LlmError>;

/// A decision on its way: its question, and its number there.
type Place = (usize, usize);

/// Takes the decisions of many questions; what comes back is in the order of the questions.
///
/// At most `most` decisions are handed to the engine in one call, each call with a deadline of
/// `allowed`; calls with the longest prompts come first, so that none is left over at the end when
/// all slots but one are idle. A question whose decision is refused fails alone. The tokens and the
/// time of a call are shared out among its questions by the length of their prompts; they add up to
/// what the engine counted.
pub fn decide_many(
    engine: &dyn Engine,
    questions: &[Vec<Decision>],
    most: usize,
    allowed: Duration,
) -> Vec<Decided> {
    let calls = calls(questions, most.max(1));
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Results::of(questions));
    let work = || {
        while let Some(call) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
            take(engine, questions, call, allowed, &results);
        }
    };
    std::thread::scope(|scope| {
        // While the last requests of a call are under way, the next fills the other slots.
        if engine.slots() > 1 {
            scope.spawn(work);
        }
        work();
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
}

/// Makes one call, and shares out what comes of it.
fn take(
    engine: &dyn Engine,
    questions: &[Vec<Decision>],
    call: &[Place],
    allowed: Duration,
    results: &Mutex<Results>,
) {
    let ask = |places: &[Place]| {
        let asked: Vec<Decision> = places.iter().map(|&(q, at)| questions[q][at].clone()).collect();
        let count = asked.len();
        let (judgements, cost) = engine.decide(asked, Deadline::after(allowed))?;
        if judgements.len() != count {
            let problem = "it has not judged every decision".to_owned();
            return Err(LlmError::Model { model: engine.identity().to_owned(), problem });
        }
        Ok((judgements, cost))
    };
    let note = |places: &[Place], asked: Decided| {
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        match asked {
            Ok((judgements, cost)) => {
                let length =
                    |&(q, at): &Place| questions[q][at].system.len() + questions[q][at].user.len();
                let shares = shares(cost, &places.iter().map(length).collect::<Vec<_>>());
                for ((&(q, at), judgement), share) in places.iter().zip(judgements).zip(shares) {
                    results.judgements[q][at] = Some(judgement);
                    results.costs[q] += share;
                }
            }
            Err(error) => {
                for &(q, _) in places {
                    results.failures[q].get_or_insert_with(|| error.clone());
                }
            }
        }
    };
    match ask(call) {
        // One question's fault must not fail the others in the call.
        Err(error) if is_of_one_prompt(&error) && call.iter().any(|place| place.0 != call[0].0) => {
            let mut by_question: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
            for &place in call {
                by_question.entry(place.0).or_default().push(place);
            }
            by_question.values().for_each(|places| note(places, ask(places)));
        }
        asked => note(call, asked),
    }
}

/// Whether an error is about a prompt rather than about the engine.
fn is_of_one_prompt(error: &LlmError) -> bool {
    matches!(
        error,
        LlmError::PromptTooLong { .. }
            | LlmError::Refused { .. }
            | LlmError::Malformed { .. }
            | LlmError::Lost { .. }
    )
}

/// Puts all decisions in the order of their prompts, cuts them into calls, preferably between
/// passages, and orders the calls by length.
fn calls(questions: &[Vec<Decision>], most: usize) -> Vec<Vec<Place>> {
    let decision = |&(q, at): &Place| &questions[q][at];
    let mut places: Vec<Place> = questions
        .iter()
        .enumerate()
        .flat_map(|(q, decisions)| (0..decisions.len()).map(move |at| (q, at)))
        .collect();
    places.sort_by(|a, b| {
        let (one, other) = (decision(a), decision(b));
        (&one.system, &one.user).cmp(&(&other.system, &other.user)).then(a.cmp(b))
    });
    let same_passage = |a: &Place, b: &Place| {
        let (a, b) = (decision(a), decision(b));
        let shared = shared_length(a.user.as_bytes(), b.user.as_bytes());
        a.system == b.system && shared * 2 >= a.user.len().min(b.user.len())
    };
    let mut calls: Vec<Vec<Place>> = Vec::new();
    for passage in places.chunk_by(same_passage).flat_map(|passage| passage.chunks(most)) {
        match calls.last_mut() {
            Some(call) if call.len() + passage.len() <= most => call.extend(passage),
            _ => calls.push(passage.to_vec()),
        }
    }
    let length = |call: &Vec<Place>| call.iter().map(|p| decision(p).user.len()).sum::<usize>();
    calls.sort_by_key(|call| std::cmp::Reverse(length(call)));
    calls
}

/// Shares a cost out by weight; the shares add up to it.
fn shares(cost: Cost, weights: &[usize]) -> Vec<Cost> {
    let all = weights.iter().sum::<usize>().max(1) as u128;
    let mut before = 0;
    let share = |&weight: &usize| {
        let until = before + weight as u128;
        // Both roundings are downwards, and the last is exact.
        let part = |whole: u64| {
            let at =
                |weight: u128| u64::try_from(u128::from(whole) * weight / all).unwrap_or(whole);
            at(until) - at(before)
        };
        let share = Cost {
            decisions: 1,
            prompt_tokens: part(cost.prompt_tokens),
            computed_tokens: part(cost.computed_tokens),
            milliseconds: part(cost.milliseconds),
        };
        before = until;
        share
    };
    weights.iter().map(share).collect()
}

struct Results {
    judgements: Vec<Vec<Option<Judgement>>>,
    costs: Vec<Cost>,
    failures: Vec<Option<LlmError>>,
}

impl Results {
    fn of(questions: &[Vec<Decision>]) -> Self {
        Results {
            judgements: questions.iter().map(|decisions| vec![None; decisions.len()]).collect(),
            costs: vec![Cost::default(); questions.len()],
            failures: vec![None; questions.len()],
        }
    }

    fn finish(self) -> Vec<Decided> {
        let judged = self.judgements.into_iter().zip(self.costs).zip(self.failures);
        judged
            .map(|((judgements, cost), failure)| match failure {
                Some(error) => Err(error),
                None => {
                    let judgements: Option<Vec<Judgement>> = judgements.into_iter().collect();
                    Ok((judgements.ok_or(LlmError::Stopped)?, cost))
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::YES_NO;
    use proptest::prelude::*;

    /// Judges by the length of the prompt, refuses what contains "bad", and counts calls.
    struct Scripted {
        calls: Mutex<Vec<usize>>,
        slots: usize,
    }

    impl Engine for Scripted {
        fn identity(&self) -> &str {
            "scripted"
        }

        fn slots(&self) -> usize {
            self.slots
        }

        fn decide(
            &self,
            decisions: Vec<Decision>,
            _: Deadline,
        ) -> Result<(Vec<Judgement>, Cost), LlmError> {
            self.calls.lock().unwrap().push(decisions.len());
            if decisions.iter().any(|decision| decision.user.contains("bad")) {
                return Err(LlmError::PromptTooLong { tokens: 9, limit: 8 });
            }
            let cost = Cost {
                decisions: decisions.len() as u64,
                prompt_tokens: 1009,
                computed_tokens: 101,
                milliseconds: 7,
            };
            let judge = |decision: Decision| Judgement {
                probabilities: vec![decision.user.len() as f64 / 1000.0, 0.0],
                mass: 1.0,
            };
            Ok((decisions.into_iter().map(judge).collect(), cost))
        }
    }

    fn question(users: Vec<String>) -> Vec<Decision> {
        let decision = |user| Decision { system: "s".into(), user, choices: YES_NO };
        users.into_iter().map(decision).collect()
    }

    proptest! {
        #[test]
        fn every_question_gets_its_own_judgements_and_costs_add_up(
            texts in prop::collection::vec(prop::collection::vec("p[ab]{0,9} q[cd]{0,9}", 0..5), 0..12),
            most in 1_usize..9, slots in 1_usize..3,
        ) {
            let questions: Vec<_> = texts.iter().cloned().map(question).collect();
            let engine = Scripted { calls: Mutex::default(), slots };
            let decided = decide_many(&engine, &questions, most, Duration::from_secs(9));
            let mut all = Cost::default();
            for (texts, decided) in texts.iter().zip(decided) {
                let (judgements, cost) = decided.unwrap();
                let expected: Vec<f64> = texts.iter().map(|t| t.len() as f64 / 1000.0).collect();
                let judged: Vec<f64> = judgements.iter().map(Judgement::first).collect();
                prop_assert_eq!(judged, expected);
                prop_assert_eq!(cost.decisions, texts.len() as u64);
                all += cost;
            }
            let calls = engine.calls.into_inner().unwrap();
            prop_assert!(calls.iter().all(|&size| size <= most));
            prop_assert_eq!(all.computed_tokens, 101 * calls.len() as u64);
            prop_assert_eq!(all.prompt_tokens, 1009 * calls.len() as u64);
        }
    }

    #[test]
    fn one_prompt_that_is_refused_fails_its_question_alone() {
        let engine = Scripted { calls: Mutex::default(), slots: 1 };
        let questions: Vec<_> = ["good", "bad", "good too"]
            .iter()
            .map(|text| question(vec!["a passage".into(), (*text).into()]))
            .collect();
        let decided = decide_many(&engine, &questions, 100, Duration::from_secs(9));
        assert!(decided[0].is_ok() && decided[2].is_ok());
        assert!(matches!(decided[1], Err(LlmError::PromptTooLong { .. })));
    }
}
