//! Decisions that were taken before, by everything they depend on: the model and the whole prompt.
//!
//! A changed threshold, a question asked again with one passage more, a run killed in the middle of
//! a question: none of them asks the model again what it has said already.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex, sha256_hex_parts};
use florilegium_llm::{
    Cost, Deadline, Decision, Engine, Generated, Generation, Judgement, LlmError,
};
use serde::{Deserialize, Serialize};

use crate::store::load_if_whole;

const FORMAT: Format = Format { magic: *b"FLORDECI", version: 1 };

/// The decisions of one model.
#[derive(Debug)]
pub(crate) struct Decisions {
    path: PathBuf,
    model: String,
    known: HashMap<String, Judgement>,
    changed: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    model: String,
    /// Sorted by key.
    decisions: Vec<(String, Judgement)>,
}

impl Decisions {
    /// Opens the decisions of `model` kept in the folder `path`. A damaged file is reported in the
    /// log, and its decisions are taken again.
    pub fn open(path: &Path, model: &str) -> Result<Self, FileError> {
        let path = path.join(sha256_hex(model.as_bytes()));
        let known = load_if_whole::<Stored>(&path, FORMAT)?
            .filter(|stored| stored.model == model)
            .map(|stored| stored.decisions.into_iter().collect())
            .unwrap_or_default();
        Ok(Decisions { path, model: model.to_owned(), known, changed: false })
    }

    /// Writes what is new.
    pub fn save(&mut self) -> Result<(), FileError> {
        if !self.changed {
            return Ok(());
        }
        let mut decisions: Vec<_> =
            self.known.iter().map(|(k, j)| (k.clone(), j.clone())).collect();
        decisions.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let stored = Stored { model: self.model.clone(), decisions };
        record::write(&self.path, FORMAT, &stored)?;
        self.changed = false;
        Ok(())
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
            keys.iter().map(|key| kept.known.get(key).cloned()).collect()
        };
        let unknown: Vec<usize> = (0..keys.len()).filter(|&at| judgements[at].is_none()).collect();
        let mut cost = Cost::default();
        if !unknown.is_empty() {
            let asked = unknown.iter().map(|&at| decisions[at].clone()).collect();
            let (answers, spent) = (self.open)()?.decide(asked, deadline)?;
            cost = spent;
            let mut kept = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
            for (&at, judgement) in unknown.iter().zip(answers) {
                kept.known.insert(keys[at].clone(), judgement.clone());
                kept.changed = true;
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
            let engine = Remembering { identity: "counting", open: &open, decisions: &decisions };
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
}
