//! Decisions that were taken before, by everything they depend on: the model and the whole prompt.
//!
//! A changed threshold, a question asked again with one passage more, a run killed in the middle of
//! a question: none of them asks the model again what it has said already.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use florilegium_files::record::Format;
use florilegium_files::{FileError, sha256_hex, sha256_hex_parts};
use florilegium_llm::{
    Cost, Deadline, Decision, Engine, Generated, Generation, Judgement, LlmError,
};
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;
use crate::store::load_if_whole;
use crate::vectors::remove;

const FORMAT: Format = Format { magic: *b"FLORDECI", version: 2 };
/// All decisions in one file.
const FIRST: Format = Format { magic: *b"FLORDECI", version: 1 };

/// The decisions of one model.
#[derive(Debug)]
pub(crate) struct Decisions {
    ledger: Ledger<Judgement>,
    /// The file of the first version, while it is there.
    first: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct First {
    model: String,
    /// Sorted by key.
    decisions: Vec<(String, Judgement)>,
}

impl Decisions {
    /// Opens the decisions of `model` kept in the folder `path`. A damaged file is reported in the
    /// log, and its decisions are taken again.
    pub fn open(path: &Path, model: &str) -> Result<Self, FileError> {
        let mut ledger = Ledger::open(path, FORMAT, model)?;
        let first = Some(path.join(sha256_hex(model.as_bytes()))).filter(|path| path.is_file());
        if let Some(path) = &first
            && let Some(stored) = load_if_whole::<First>(path, FIRST)?
            && stored.model == model
        {
            stored.decisions.into_iter().for_each(|(key, judgement)| ledger.put(key, judgement));
        }
        Ok(Decisions { ledger, first })
    }

    /// Writes what is new.
    pub fn save(&mut self) -> Result<(), FileError> {
        self.ledger.save()?;
        remove(&mut self.first)
    }

    /// Writes what is new, and puts all that was added in its place.
    pub fn fold(&mut self) -> Result<(), FileError> {
        self.ledger.fold()?;
        remove(&mut self.first)
    }
}

/// An engine that asks another only what is not known yet.
pub(crate) struct Remembering<'a> {
    /// Identity of the model.
    pub identity: &'a str,
    /// Opens the model, at the first decision that is not known.
    pub open: &'a (dyn Fn() -> Result<Arc<dyn Engine>, LlmError> + Send + Sync),
    /// What is known.
    pub decisions: &'a Mutex<Decisions>,
    /// Whether what the model says must not depend on what it was asked before this question.
    pub reproducible: bool,
    /// Whether it has been asked something about this question.
    pub begun: OnceLock<()>,
}

impl Engine for Remembering<'_> {
    fn identity(&self) -> &str {
        self.identity
    }

    fn decide(
        &self,
        decisions: Vec<Decision>,
        deadline: Deadline,
    ) -> Result<(Vec<Judgement>, Cost), LlmError> {
        let keys: Vec<String> = decisions.iter().map(key).collect();
        let mut judgements: Vec<Option<Judgement>> = {
            let kept = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
            keys.iter().map(|key| kept.ledger.get(key).cloned()).collect()
        };
        let unknown: Vec<usize> = (0..keys.len()).filter(|&at| judgements[at].is_none()).collect();
        let mut cost = Cost::default();
        if !unknown.is_empty() {
            let asked = unknown.iter().map(|&at| decisions[at].clone()).collect();
            let engine = (self.open)()?;
            if self.reproducible && self.begun.set(()).is_ok() {
                engine.forget();
            }
            let (answers, spent) = engine.decide(asked, deadline)?;
            cost = spent;
            let mut kept = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
            for (&at, judgement) in unknown.iter().zip(answers) {
                kept.ledger.put(keys[at].clone(), judgement.clone());
                judgements[at] = Some(judgement);
            }
        }
        cost.decisions = decisions.len() as u64;
        Ok((judgements.into_iter().flatten().collect(), cost))
    }

    /// What is written is kept with the answer it belongs to, not here.
    fn generate(&self, generation: Generation, deadline: Deadline) -> Result<Generated, LlmError> {
        (self.open)()?.generate(generation, deadline)
    }
}

fn key(decision: &Decision) -> String {
    let choices = decision.choices.iter().flat_map(|choice| choice.iter()).map(|s| s.as_bytes());
    let parts = [decision.system.as_bytes(), decision.user.as_bytes()];
    sha256_hex_parts(parts.into_iter().chain(choices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use florilegium_llm::YES_NO;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    struct Counting(AtomicUsize);

    impl Engine for Counting {
        fn identity(&self) -> &str {
            "counting"
        }

        fn decide(
            &self,
            decisions: Vec<Decision>,
            _: Deadline,
        ) -> Result<(Vec<Judgement>, Cost), LlmError> {
            self.0.fetch_add(decisions.len(), Ordering::Relaxed);
            let judge = |decision: Decision| {
                let yes = decision.user.len() as f64 / 100.0;
                Judgement { probabilities: vec![yes, 1.0 - yes], mass: 1.0 }
            };
            Ok((decisions.into_iter().map(judge).collect(), Cost::default()))
        }
    }

    #[test]
    fn only_what_is_not_known_is_asked_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let counting = Arc::new(Counting(AtomicUsize::new(0)));
        let decide = |users: &[&str]| {
            let decisions = Mutex::new(Decisions::open(folder.path(), "counting").unwrap());
            let counting = counting.clone();
            let open = move || Ok(counting.clone() as Arc<dyn Engine>);
            let engine = Remembering {
                identity: "counting",
                open: &open,
                decisions: &decisions,
                reproducible: true,
                begun: OnceLock::new(),
            };
            let asked = users
                .iter()
                .map(|user| Decision {
                    system: String::new(),
                    user: (*user).into(),
                    choices: YES_NO,
                })
                .collect();
            let (judgements, _) =
                engine.decide(asked, Deadline::after(Duration::from_secs(1))).unwrap();
            decisions.into_inner().unwrap().save().unwrap();
            judgements.iter().map(Judgement::first).collect::<Vec<_>>()
        };
        assert_eq!(decide(&["a", "bb"]), [0.01, 0.02]);
        assert_eq!(decide(&["ccc", "bb", "a"]), [0.03, 0.02, 0.01]);
        assert_eq!(counting.0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn decisions_of_the_first_version_are_read_and_written_anew() {
        const MODEL: &str = "smollm2-135m-instruct-q4@b179c9523d0e6a0f";
        let folder = tempfile::tempdir().unwrap();
        let fixture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/fixtures/store/decisions-v1");
        let first = folder.path().join(sha256_hex(MODEL.as_bytes()));
        std::fs::copy(fixture, &first).unwrap();
        let mut decisions = Decisions::open(folder.path(), MODEL).unwrap();
        let key = "013c05e3bec441023a81ac10f40d4e3aaa65966f3e5b3d1343bb1e3f04320020";
        let judgement = decisions.ledger.get(key).cloned().unwrap();
        assert!((0.0..=1.0).contains(&judgement.first()));
        decisions.fold().unwrap();
        assert!(!first.exists());
        let decisions = Decisions::open(folder.path(), MODEL).unwrap();
        assert_eq!(decisions.ledger.get(key), Some(&judgement));
    }
}
