//! What earlier nights did: a record a run, from which the next one is estimated and reported.
//!
//! Runs are numbered. Nothing here is ordered by the clock, so that one that is set back changes
//! nothing but the dates that are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use florilegium_files::FileError;
use florilegium_files::record::{self, Format};
use florilegium_llm::Cost;
use serde::{Deserialize, Serialize};

use crate::ingest::Built;
use crate::store::load_if_whole;

const RUN: Format = Format { magic: *b"FLORNGHT", version: 1 };
const FAILURES: Format = Format { magic: *b"FLORFAIL", version: 1 };
const PUBLISHED: Format = Format { magic: *b"FLORPUBL", version: 1 };

/// Runs that are kept.
const KEPT: usize = 400;
/// Estimates go by this many of the last runs that did any work.
const RECENT: usize = 10;
/// A question that goes on failing is tried at least every so many nights.
const LONGEST_PAUSE: u64 = 8;

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Everything is answered and published.
    #[default]
    Published,
    /// Published, but something failed, waits or is left.
    Incomplete,
    /// Not published: too much had changed or failed.
    KeptBack,
}

/// What became of a question in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Answered with quotations.
    #[default]
    Answered,
    /// The material is insufficient.
    Insufficient,
    /// It failed.
    Failed,
    /// The language model was away.
    Waiting,
    /// It failed before and is left alone this night.
    Paused,
    /// The time was over, or the run was stopped.
    Left,
}

/// How a question's page differs from last night's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Not at all.
    #[default]
    Same,
    /// It is new.
    New,
    /// Other quotations.
    Changed,
    /// Answered now, and was not.
    Gained,
    /// Insufficient now, and was answered.
    Lost,
}

/// A quotation that the verification rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// The passage that was named as its source.
    pub passage: String,
    /// The words proposed.
    pub quotation: String,
    /// What the verification found.
    pub reason: String,
}

/// A question in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QuestionRecord {
    /// Its id.
    pub id: String,
    /// Its language.
    pub lang: String,
    /// Its words.
    pub question: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Against last night.
    pub change: Change,
    /// Why it was to be answered anew; empty when nothing had changed.
    pub reasons: Vec<String>,
    /// Whether the model was asked in this run.
    pub fresh: bool,
    /// Whether an earlier answer is shown for it.
    pub stale: bool,
    /// Day on which the answer shown was made; empty when there is none.
    pub computed_on: String,
    /// Quotations shown.
    pub quotations: u64,
    /// Quotations rejected.
    pub rejected: Vec<Rejected>,
    /// What the model cost.
    pub cost: Cost,
    /// Seconds.
    pub seconds: f64,
    /// Tokens of its passages, as the embedding model counts them.
    pub passage_tokens: u64,
    /// Why it failed.
    pub error: Option<String>,
    /// Identity of the model that answered.
    pub model: String,
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// From 1.
    pub number: u64,
    /// The archive.
    pub archive: String,
    /// When it began (UTC).
    pub started: String,
    /// The machine.
    pub host: String,
    /// How it ended.
    pub status: Status,
    /// Why it was not published, or what else an operator should know.
    pub notes: Vec<String>,
    /// Folder of the release.
    pub release: Option<String>,
    /// Documents in the archive.
    pub documents: u64,
    /// Passages in the archive.
    pub passages: u64,
    /// Passages of the last release that are gone.
    pub removed_passages: u64,
    /// What reading, embedding and indexing did.
    pub built: Built,
    /// Identity of the language model.
    pub model: String,
    /// The published questions, in the order in which they were taken.
    pub questions: Vec<QuestionRecord>,
    /// Questions no longer published that were in the last release.
    pub retired: Vec<String>,
    /// Quotations checked against the original files.
    pub audited: u64,
    /// Of these, not found there.
    pub audit_failures: Vec<String>,
    /// What the model cost.
    pub cost: Cost,
    /// Seconds that the plan had expected for the language model, if it could tell.
    pub expected_seconds: Option<f64>,
    /// Tokens that the plan had expected, if it could tell.
    pub expected_tokens: Option<f64>,
    /// Seconds of planning.
    pub plan_seconds: f64,
    /// Seconds spent on answers.
    pub synthesis_seconds: f64,
    /// Seconds spent on audit and publication.
    pub publish_seconds: f64,
    /// Seconds in all.
    pub seconds: f64,
}

impl RunRecord {
    /// How many questions had this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.questions.iter().filter(|question| question.outcome == outcome).count()
    }

    /// How many questions changed in this way.
    pub fn changes(&self, change: Change) -> usize {
        self.questions.iter().filter(|question| question.change == change).count()
    }

    /// How many questions the model was asked.
    pub fn fresh(&self) -> usize {
        self.questions.iter().filter(|question| question.fresh).count()
    }
}

/// The runs of an archive.
#[derive(Debug, Clone)]
pub struct History {
    folder: PathBuf,
}

impl History {
    /// Those kept in the folder of the work.
    pub fn new(work: &Path) -> Self {
        History { folder: work.join("runs") }
    }

    /// The folder of a run: its record and its report.
    pub fn folder(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}"))
    }

    /// The number of the next run.
    pub fn next(&self) -> u64 {
        self.numbers().last().map_or(1, |last| last + 1)
    }

    fn numbers(&self) -> BTreeSet<u64> {
        let listed = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// The last `count` runs, the oldest first. A damaged record is reported in the log and left out.
    pub fn last(&self, count: usize) -> Result<Vec<RunRecord>, FileError> {
        let mut runs = Vec::new();
        for number in self.numbers().into_iter().rev() {
            if runs.len() == count {
                break;
            }
            runs.extend(load_if_whole::<RunRecord>(&self.folder(number).join("run"), RUN)?);
        }
        runs.reverse();
        Ok(runs)
    }

    /// Keeps a run, and forgets those of long ago.
    pub fn put(&self, run: &RunRecord) -> Result<(), FileError> {
        record::write(&self.folder(run.number).join("run"), RUN, run)?;
        let numbers = self.numbers();
        for old in numbers.iter().take(numbers.len().saturating_sub(KEPT)) {
            let folder = self.folder(*old);
            fs::remove_dir_all(&folder).map_err(|e| FileError::io("remove", folder, e))?;
        }
        Ok(())
    }

    /// The rates of the last runs.
    pub fn rates(&self, model: &str) -> Result<Rates, FileError> {
        Ok(Rates::of(&self.last(60)?, model))
    }
}

/// What work has cost in earlier runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Runs that these rates come from.
    pub runs: usize,
    /// Tokens embedded in a second.
    pub embedded_a_second: Option<f64>,
    /// Tokens the language model computed in a second.
    pub computed_a_second: Option<f64>,
    /// Tokens the language model computed for each token of a question's passages, by language.
    pub tokens_by_language: BTreeMap<String, f64>,
    /// The same over all languages.
    pub tokens: Option<f64>,
}

/// What work will cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Tokens that the language model computes.
    pub tokens: f64,
    /// Seconds.
    pub seconds: f64,
}

impl Rates {
    /// The rates of the last of `runs` that asked `model` anything.
    pub fn of(runs: &[RunRecord], model: &str) -> Self {
        let asked = |question: &&QuestionRecord| {
            question.fresh && question.model == model && question.cost.computed_tokens > 0
        };
        let mut rates = Rates::default();
        let (mut tokens, mut seconds, mut passages) = (0.0, 0.0, 0.0);
        let mut by_language: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for run in runs.iter().rev() {
            let questions: Vec<&QuestionRecord> = run.questions.iter().filter(asked).collect();
            if questions.is_empty() || rates.runs == RECENT {
                continue;
            }
            rates.runs += 1;
            for question in questions {
                let computed = question.cost.computed_tokens as f64;
                tokens += computed;
                seconds += question.seconds;
                passages += question.passage_tokens as f64;
                let own = by_language.entry(question.lang.clone()).or_default();
                own.0 += computed;
                own.1 += question.passage_tokens as f64;
            }
        }
        let ratio = |above: f64, below: f64| (below > 0.0).then_some(above / below);
        rates.computed_a_second = ratio(tokens, seconds);
        rates.tokens = ratio(tokens, passages);
        rates.tokens_by_language = by_language
            .into_iter()
            .filter_map(|(language, (tokens, passages))| Some((language, ratio(tokens, passages)?)))
            .collect();
        let embedding: Vec<&Built> = runs
            .iter()
            .rev()
            .map(|run| &run.built)
            .filter(|built| built.embedded_tokens > 0)
            .take(RECENT)
            .collect();
        rates.embedded_a_second = ratio(
            embedding.iter().map(|built| built.embedded_tokens as f64).sum(),
            embedding.iter().map(|built| built.embed_seconds).sum(),
        );
        rates
    }

    /// What a question with this many tokens of passages will cost; none without an earlier run.
    pub fn estimate(&self, language: &str, passage_tokens: usize) -> Option<Estimate> {
        let ratio = self.tokens_by_language.get(language).copied().or(self.tokens)?;
        let tokens = ratio * passage_tokens as f64;
        Some(Estimate { tokens, seconds: tokens / self.computed_a_second? })
    }
}

/// A question that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Hash of its inputs: when they change, it is tried at once.
    pub key: String,
    /// How often in a row.
    pub times: u32,
    /// Number of the run in which it is tried again.
    pub again: u64,
    /// The day it failed last.
    pub on: String,
    /// Why.
    pub reason: String,
}

/// The questions that failed last time, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures(BTreeMap<String, Failure>);

impl Failures {
    /// Those kept in the folder of the work.
    pub fn open(work: &Path) -> Result<Self, FileError> {
        Ok(load_if_whole(&work.join("failures"), FAILURES)?.unwrap_or_default())
    }

    /// Writes them.
    pub fn save(&self, work: &Path) -> Result<(), FileError> {
        if *self == Failures::open(work)? {
            return Ok(());
        }
        record::write(&work.join("failures"), FAILURES, self)
    }

    /// The failure for which a question with these inputs is left alone in run `run`.
    pub fn pauses(&self, id: &str, key: &str, run: u64) -> Option<&Failure> {
        self.0.get(id).filter(|failure| failure.key == key && run < failure.again)
    }

    /// The question failed in run `run`: it is tried again in the next, and if it goes on failing,
    /// after two nights, four, and from then on eight.
    pub fn add(&mut self, id: &str, key: &str, run: u64, on: &str, reason: &str) {
        let before = self.0.get(id).filter(|failure| failure.key == key);
        let times = before.map_or(0, |failure| failure.times).saturating_add(1);
        let pause = 1_u64.checked_shl(times - 1).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
        let failure = Failure {
            key: key.to_owned(),
            times,
            again: run + pause,
            on: on.to_owned(),
            reason: reason.to_owned(),
        };
        self.0.insert(id.to_owned(), failure);
    }

    /// The question has its answer.
    pub fn clear(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Keeps only the questions that are listed.
    pub fn retain(&mut self, listed: impl Fn(&str) -> bool) {
        self.0.retain(|id, _| listed(id));
    }
}

/// What the last release was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The run that published it.
    pub run: u64,
    /// The beginnings of the hashes of the passages' texts.
    pub passages: BTreeSet<u64>,
    /// Key of the answer to each question, and whether it was answered.
    pub questions: BTreeMap<String, (String, bool)>,
}

impl Published {
    /// That of the folder of the work; none before the first release.
    pub fn open(work: &Path) -> Result<Option<Self>, FileError> {
        load_if_whole(&work.join("published"), PUBLISHED)
    }

    /// Keeps it.
    pub fn save(&self, work: &Path) -> Result<(), FileError> {
        record::write(&work.join("published"), PUBLISHED, self)
    }

    /// The number under which a text is remembered.
    pub fn number(text_hash: &str) -> u64 {
        text_hash.get(..16).and_then(|start| u64::from_str_radix(start, 16).ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(lang: &str, passages: u64, computed: u64, seconds: f64) -> QuestionRecord {
        QuestionRecord {
            lang: lang.into(),
            fresh: true,
            model: "m".into(),
            passage_tokens: passages,
            cost: Cost { computed_tokens: computed, ..Cost::default() },
            seconds,
            ..QuestionRecord::default()
        }
    }

    #[test]
    fn rates_come_from_runs_that_did_work_with_this_model_by_language() {
        let runs = [
            RunRecord {
                questions: vec![question("en", 100, 200, 2.0), question("el", 100, 800, 8.0)],
                ..RunRecord::default()
            },
            RunRecord::default(),
        ];
        let rates = Rates::of(&runs, "m");
        assert_eq!((rates.runs, rates.computed_a_second), (1, Some(100.0)));
        let estimate = rates.estimate("el", 50).unwrap();
        assert_eq!((estimate.tokens, estimate.seconds), (400.0, 4.0));
        assert_eq!(rates.estimate("fr", 100).unwrap().tokens, 500.0, "as the average");
        assert_eq!(Rates::of(&runs, "other").estimate("en", 100), None);
    }

    #[test]
    fn a_question_that_goes_on_failing_is_tried_less_and_less_and_at_once_when_it_changes() {
        let mut failures = Failures::default();
        let mut tried = Vec::new();
        for run in 1..=40 {
            if failures.pauses("q", "key", run).is_none() {
                tried.push(run);
                failures.add("q", "key", run, "2026-11-30", "why");
            }
        }
        assert_eq!(tried, [1, 2, 4, 8, 16, 24, 32, 40]);
        assert!(failures.pauses("q", "other key", 41).is_none());
        assert!(failures.pauses("q", "key", 41).is_some());
        failures.clear("q");
        assert!(failures.pauses("q", "key", 41).is_none());
    }

    #[test]
    fn runs_are_numbered_and_come_back_in_order_and_a_damaged_one_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path());
        assert_eq!(history.next(), 1);
        for number in 1..=3 {
            // The clock goes backwards.
            let started = format!("2026-11-0{}", 9 - number);
            let run = RunRecord { number, started, ..RunRecord::default() };
            history.put(&run).unwrap();
        }
        assert_eq!(history.next(), 4);
        let path = history.folder(2).join("run");
        let mut bytes = fs::read(&path).unwrap();
        bytes[70] ^= 1;
        fs::write(&path, bytes).unwrap();
        let numbers: Vec<u64> = history.last(30).unwrap().iter().map(|run| run.number).collect();
        assert_eq!(numbers, [1, 3]);
        assert_eq!(history.last(1).unwrap()[0].number, 3);
    }
}
