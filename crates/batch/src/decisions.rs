//! Decisions that were taken before, by everything they depend on: the model and the whole prompt.
//!
//! A changed threshold, a question asked again with one passage more, a run killed in the middle of
//! a question: none of them asks the model again what it has said already.
//!
//! They also let the decisions of many questions be taken together, passage by passage, before the
//! questions are answered one by one: [`decide_ahead`].

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use florilegium_files::record::Format;
use florilegium_files::{FileError, sha256_hex, sha256_hex_parts};
use florilegium_llm::schedule::decide_many;
use florilegium_llm::{
    Cost, Deadline, Decision, Engine, Facts, Generated, Generation, Judgement, LlmError,
};
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;
use crate::store::load_if_whole;
use crate::vectors::remove;

const FORMAT: Format = Format { magic: *b"FLORDECI", version: 2 };
/// All decisions in one file.
const FIRST: Format = Format { magic: *b"FLORDECI", version: 1 };

/// Decisions handed to the engine in one call when they are taken ahead.
const AT_A_TIME: usize = 32;
/// A run that is killed loses the decisions of at most this long.
const SAVE_EVERY: Duration = Duration::from_secs(20);

/// The decisions of one model.
#[derive(Debug)]
pub struct Decisions {
    ledger: Ledger<Judgement>,
    saved: Instant,
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
        Ok(Decisions { ledger, saved: Instant::now(), first })
    }

    /// Writes what is new.
    pub fn save(&mut self) -> Result<(), FileError> {
        self.ledger.save()?;
        self.saved = Instant::now();
        remove(&mut self.first)
    }

    /// Writes what is new, and puts all that was added in its place.
    pub fn fold(&mut self) -> Result<(), FileError> {
        self.ledger.fold()?;
        remove(&mut self.first)
    }

    fn known(&self, decisions: &[Decision]) -> Vec<Option<Judgement>> {
        decisions.iter().map(|decision| self.ledger.get(&key(decision)).cloned()).collect()
    }
}

/// Takes the decisions that some questions need and that are not known yet, those of one passage
/// together; afterwards `attempt` finds them all known. `attempt` answers the question of a number
/// with the engine it is given; what it makes is thrown away. What fails here fails again, with its
/// reason, when the question is answered. `progress` hears how many decisions are to be taken.
pub fn decide_ahead(
    engine: &dyn Engine,
    decisions: &Mutex<Decisions>,
    questions: usize,
    allowed: Duration,
    attempt: &dyn Fn(usize, &dyn Engine),
    progress: &dyn Fn(usize),
) {
    let mut pending: Vec<usize> = (0..questions).collect();
    // Each stage needs what the one before it decided.
    while !pending.is_empty() {
        let mut asked: Vec<Vec<Decision>> = Vec::new();
        pending.retain(|&question| {
            let deferring = Deferring { engine, decisions, deferred: Mutex::default() };
            attempt(question, &deferring);
            let deferred = deferring.deferred.into_inner().unwrap_or_else(PoisonError::into_inner);
            let more = !deferred.is_empty();
            if more {
                asked.push(deferred);
            }
            more
        });
        progress(asked.iter().map(Vec::len).sum());
        let remembering = Remembering::open(engine, decisions);
        let decided = decide_many(&remembering, &asked, AT_A_TIME, allowed);
        // A question that failed is left to its own attempt; the others go on.
        let mut failed = decided.iter().map(Result::is_err);
        pending.retain(|_| !failed.next().unwrap_or(true));
    }
}

/// Answers from what is known, and notes what is not.
struct Deferring<'a> {
    engine: &'a dyn Engine,
    decisions: &'a Mutex<Decisions>,
    deferred: Mutex<Vec<Decision>>,
}

impl Engine for Deferring<'_> {
    fn identity(&self) -> &str {
        self.engine.identity()
    }

    fn decide(
        &self,
        decisions: Vec<Decision>,
        _: Deadline,
    ) -> Result<(Vec<Judgement>, Cost), LlmError> {
        let known = self.decisions.lock().unwrap_or_else(PoisonError::into_inner).known(&decisions);
        if let Some(judgements) = known.iter().cloned().collect::<Option<Vec<_>>>() {
            return Ok((judgements, Cost::default()));
        }
        let unknown = decisions.into_iter().zip(known).filter(|(_, known)| known.is_none());
        let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
        deferred.extend(unknown.map(|(decision, _)| decision));
        Err(LlmError::Deferred)
    }

    fn generate(&self, _: Generation, _: Deadline) -> Result<Generated, LlmError> {
        Err(LlmError::Deferred)
    }
}

/// An engine that asks another only what is not known yet.
pub struct Remembering<'a> {
    /// Identity of the model.
    pub identity: &'a str,
    /// The model.
    pub engine: Lazy<'a>,
    /// What is known.
    pub decisions: &'a Mutex<Decisions>,
    /// Whether what the model says must not depend on what it was asked before this question.
    pub reproducible: bool,
    /// Whether it has been asked something about this question.
    pub begun: OnceLock<()>,
}

/// An engine that is open, or is opened at the first decision that is not known.
pub enum Lazy<'a> {
    /// It is open.
    Open(&'a dyn Engine),
    /// How to open it.
    Closed(&'a (dyn Fn() -> Result<Arc<dyn Engine>, LlmError> + Send + Sync)),
}

impl<'a> Remembering<'a> {
    /// Over an engine that is open.
    pub fn open(engine: &'a dyn Engine, decisions: &'a Mutex<Decisions>) -> Self {
        Remembering {
            identity: engine.identity(),
            engine: Lazy::Open(engine),
            decisions,
            reproducible: false,
            begun: OnceLock::new(),
        }
    }

    fn with<T>(&self, ask: impl FnOnce(&dyn Engine) -> Result<T, LlmError>) -> Result<T, LlmError> {
        match self.engine {
            Lazy::Open(engine) => ask(engine),
            Lazy::Closed(open) => ask(open()?.as_ref()),
        }
    }

    /// Writes what is new, now and then. That it could not be written is said when the run ends.
    fn save_if_due(&self) {
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if decisions.saved.elapsed() <= SAVE_EVERY {
            return;
        }
        if let Err(error) = decisions.save() {
            tracing::warn!("{error}");
        }
    }
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
        let mut judgements =
            self.decisions.lock().unwrap_or_else(PoisonError::into_inner).known(&decisions);
        let unknown: Vec<usize> =
            (0..decisions.len()).filter(|&at| judgements[at].is_none()).collect();
        let mut cost = Cost::default();
        if !unknown.is_empty() {
            let asked = unknown.iter().map(|&at| decisions[at].clone()).collect();
            let (answers, spent) = self.with(|engine| {
                if self.reproducible && self.begun.set(()).is_ok() {
                    engine.forget();
                }
                engine.decide(asked, deadline)
            })?;
            cost = spent;
            let mut kept = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
            for (&at, judgement) in unknown.iter().zip(answers) {
                kept.ledger.put(key(&decisions[at]), judgement.clone());
                judgements[at] = Some(judgement);
            }
            drop(kept);
            self.save_if_due();
        }
        cost.decisions = decisions.len() as u64;
        Ok((judgements.into_iter().flatten().collect(), cost))
    }

    /// What is written is kept with the answer it belongs to, not here.
    fn generate(&self, generation: Generation, deadline: Deadline) -> Result<Generated, LlmError> {
        self.with(|engine| engine.generate(generation, deadline))
    }

    fn facts(&self) -> Vec<Facts> {
        match self.engine {
            Lazy::Open(engine) => engine.facts(),
            Lazy::Closed(_) => Vec::new(),
        }
    }

    fn slots(&self) -> usize {
        match self.engine {
            Lazy::Open(engine) => engine.slots(),
            Lazy::Closed(_) => 1,
        }
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
                engine: Lazy::Closed(&open),
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

    #[test]
    fn what_is_decided_ahead_is_what_is_decided_question_by_question() {
        let folder = tempfile::tempdir().unwrap();
        let counting = Counting(AtomicUsize::new(0));
        let decisions = Mutex::new(Decisions::open(folder.path(), "counting").unwrap());
        let deadline = Deadline::after(Duration::from_secs(9));
        let decision = |user: String| Decision { system: String::new(), user, choices: YES_NO };
        // Two stages: the second asks about what the first said. Two passages, three questions.
        let answer = |question: usize, engine: &dyn Engine| -> Result<Vec<f64>, LlmError> {
            let first = ["lamp", "keeper"].map(|p| decision(format!("{p} {question}")));
            let (said, _) = engine.decide(first.to_vec(), deadline)?;
            let second = said.iter().map(|j| decision(format!("sure? {:.2}", j.first())));
            let (said, _) = engine.decide(second.collect(), deadline)?;
            Ok(said.iter().map(Judgement::first).collect())
        };
        let told = Mutex::new(Vec::new());
        let attempt = |question: usize, engine: &dyn Engine| {
            let _ = answer(question, engine);
        };
        let progress = |count| told.lock().unwrap().push(count);
        decide_ahead(&counting, &decisions, 3, Duration::from_secs(9), &attempt, &progress);
        let asked = counting.0.load(Ordering::Relaxed);
        assert_eq!(told.into_inner().unwrap(), [6, 6, 0]);
        let known = Remembering::open(&counting, &decisions);
        for question in 0..3 {
            assert_eq!(answer(question, &known), answer(question, &Counting(AtomicUsize::new(0))));
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), asked, "nothing was asked again");
    }
}
