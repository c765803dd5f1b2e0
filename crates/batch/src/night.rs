//! The nightly run up to publication: reads, embeds, indexes, plans, and answers what must be
//! answered, the most wanted first.
//!
//! It may be killed at any instant. What it has finished is kept, each answer the moment it exists;
//! what it had not is done by the next run. Nothing that goes wrong with one question, or with the
//! language model, takes away an answer that was good.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use florilegium_files::lock::{Lock, host};
use florilegium_llm::LlmError;
use florilegium_questions::{Question, QuestionList};
use florilegium_synthesis::verify::Outcome as Found;
use florilegium_synthesis::{Mode, StageFailed, render};

use crate::clock::{timestamp, today};
use crate::cluster::ShardTold;
use crate::error::BatchError;
use crate::history::{
    Change, Estimate, Failures, History, Outcome, Published, QuestionRecord, Rejected, RunRecord,
    Status,
};
use crate::library::{Answered, Library};
use crate::pipeline::{Pipeline, WhenAway};
use crate::plan::{Action, KEPT, Plan, Planned, frequencies, plan};
use crate::progress;
use crate::run::{Curated, questions};
use crate::stop;
use crate::store::Stored;
use crate::wordings::Wordings;

/// How a night is to be spent.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// When the last answer must be there.
    pub deadline: Option<Instant>,
    /// Whether questions that failed lately are tried all the same.
    pub try_all: bool,
    /// Whether nothing is to be answered: only what is there already is published.
    pub answer_nothing: bool,
    /// What the parts of a cluster have done about the questions, by id.
    pub shards: Option<BTreeMap<String, ShardTold>>,
}

/// A night's work, ready to be published.
pub struct Night {
    /// The library, open.
    pub library: Library,
    /// The questions that have an answer, in the order of the list.
    pub curated: Vec<Curated>,
    /// What was done.
    pub record: RunRecord,
    /// Why it should not be published: too much has failed or changed.
    pub refusals: Vec<String>,
    failures: Failures,
    history: History,
    published: Published,
    start: Instant,
    /// Held until the run is published.
    _lock: Lock,
}

/// What became of the publication.
#[derive(Debug, Clone, Default)]
pub struct Publication {
    /// Folder of the release; none when it was kept back.
    pub release: Option<String>,
    /// Quotations checked against the original files.
    pub audited: usize,
    /// Of these, those that are not there.
    pub audit_failures: Vec<String>,
    /// Seconds of audit and publication.
    pub seconds: f64,
}

/// The lock of an archive's work, and what is known of an owner that died.
pub(crate) fn lock(pipeline: &Pipeline) -> Result<(Lock, Option<String>), BatchError> {
    let work = &pipeline.paths.work;
    let lock = Lock::take(&work.join("lock"))?;
    // Not only after a kill: what others write for us (FAISS) they leave when the disk is full.
    let swept = florilegium_files::sweep(work);
    let note = lock.stale().map(|owner| {
        format!(
            "the run of process {owner} ended without giving back its lock (killed, or the machine went down); its work is kept, {swept} unfinished files were removed"
        )
    });
    if let Some(note) = &note {
        tracing::warn!("{note}");
    }
    Ok((lock, note))
}

/// Does a night's work up to publication.
pub fn night(pipeline: Pipeline, options: Options) -> Result<Night, BatchError> {
    let start = Instant::now();
    let (lock, note) = lock(&pipeline)?;
    // Before any work: a fault in the list should not be found after an hour of embedding.
    let list = questions(&pipeline)?;
    list.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    let work = pipeline.paths.work.clone();
    let history = History::new(&work);
    let frequencies = frequencies(pipeline.questions.asked.as_deref(), &list)?;
    let (library, built) = Library::build(pipeline)?;
    let mut record = RunRecord {
        number: history.next(),
        archive: library.pipeline.id.clone(),
        started: timestamp(),
        host: host(),
        documents: library.archive.documents().len() as u64,
        passages: library.archive.passages().len() as u64,
        model: library.language_identity(),
        notes: note.into_iter().collect(),
        ..RunRecord::default()
    };
    let planning = Instant::now();
    let rates = history.rates(&record.model)?;
    let plan = plan(&library, &list, &built, rates, record.number, &frequencies)?;
    record.built = built;
    record.plan_seconds = planning.elapsed().as_secs_f64();
    record.expected_seconds = plan.estimate.map(|estimate| estimate.seconds);
    record.expected_tokens = plan.estimate.map(|estimate| estimate.tokens);

    let before = Published::open(&work)?;
    let synthesis = Instant::now();
    let mut shift = Shift {
        library: &library,
        mode: library.configured_mode(),
        list: &list,
        failures: Failures::open(&work)?,
        run: record.number,
        options,
        away: None,
        over: None,
        taken: (0, 0.0),
        notes: Vec::new(),
    };
    let answers = shift.work(&plan)?;
    let Shift { mut failures, notes, .. } = shift;
    failures.retain(|id| list.questions().iter().any(|question| question.id == id));
    record.notes.extend(notes);
    record.synthesis_seconds = synthesis.elapsed().as_secs_f64();
    Wordings::open(&library, &list)?;
    library.fold()?;

    let mut published = Published {
        run: record.number,
        passages: library
            .archive
            .passages()
            .iter()
            .map(|p| Published::number(&p.text_hash))
            .collect(),
        ..Published::default()
    };
    let mut curated: Vec<(usize, Curated)> = Vec::new();
    for (planned, mut told, answered) in answers {
        if let Some(answered) = answered {
            let (stored, shown) = *answered;
            compare(&library, before.as_ref(), &stored, &mut told)?;
            let entry = (stored.key.clone(), shown.answer.answered);
            published.questions.insert(planned.id.clone(), entry);
            curated.push((planned.number, shown));
        }
        record.cost += told.cost;
        record.questions.push(told);
    }
    curated.sort_by_key(|(number, _)| *number);
    let curated: Vec<Curated> = curated.into_iter().map(|(_, curated)| curated).collect();
    if let Some(before) = &before {
        record.removed_passages = before.passages.difference(&published.passages).count() as u64;
        let listed: HashSet<&String> = record.questions.iter().map(|told| &told.id).collect();
        let gone = before.questions.keys().filter(|id| !listed.contains(id));
        record.retired = gone.cloned().collect();
    }
    let refusals = refusals(&library.pipeline, &record, before.as_ref());
    record.seconds = start.elapsed().as_secs_f64();
    Ok(Night {
        library,
        curated,
        record,
        refusals,
        failures,
        history,
        published,
        start,
        _lock: lock,
    })
}

/// A question's last answer as it is kept and shown.
type Last = Box<(Stored, Curated)>;

/// A question of the plan, what became of it, and the answer that is shown.
type Told<'p> = (&'p Planned, QuestionRecord, Option<Last>);

/// The part of a night in which questions are answered.
struct Shift<'a> {
    library: &'a Library,
    /// The mode in which questions are answered.
    mode: Mode,
    list: &'a QuestionList,
    failures: Failures,
    run: u64,
    options: Options,
    /// Why the language model cannot be reached, once that is known.
    away: Option<String>,
    /// Why no further question is taken.
    over: Option<String>,
    /// Questions answered, and the seconds they took.
    taken: (u32, f64),
    notes: Vec<String>,
}

impl Shift<'_> {
    fn work<'p>(&mut self, plan: &'p Plan) -> Result<Vec<Told<'p>>, BatchError> {
        let total = plan.count(Action::Answer);
        self.decide_ahead(plan)?;
        let bar = progress::bar(total as u64, "answering", "questions");
        let mut answers = Vec::with_capacity(plan.questions.len());
        let mut left = 0;
        for planned in &plan.questions {
            let Some(question) = self.list.questions().get(planned.number) else { continue };
            if stop::requested() && planned.action == Action::Answer {
                bar.abandon();
                self.library.save_vectors()?;
                self.failures.save(&self.library.pipeline.paths.work)?;
                let kept = plan.questions.len() - total;
                let done = kept + self.taken.0 as usize;
                return Err(BatchError::Stopped { done, total: plan.questions.len() });
            }
            let (told, last) = self.question(planned, question)?;
            left += usize::from(told.outcome == Outcome::Left);
            bar.inc(u64::from(planned.action == Action::Answer));
            answers.push((planned, told, last));
        }
        bar.finish_and_clear();
        if let (Some(why), true) = (&self.over, left > 0) {
            self.notes.push(format!("{why}: {left} questions are left for the next run"));
        }
        if let Some(why) = &self.away {
            let waiting =
                answers.iter().filter(|(_, told, _)| told.outcome == Outcome::Waiting).count();
            if self.mode != self.library.configured_mode() {
                self.notes.push(format!(
                    "{why}; the degraded mode answered in its stead, and its answers are replaced when it is back"
                ));
            }
            if waiting > 0 {
                self.notes.push(format!(
                    "{why}; {waiting} questions wait for it, with the answers they had"
                ));
            }
        }
        Ok(answers)
    }

    /// Takes the decisions of all questions together where the pipeline lets them depend on one
    /// another. Not before a deadline: it might come before any answer is there.
    fn decide_ahead(&self, plan: &Plan) -> Result<(), BatchError> {
        if self.options.answer_nothing || self.options.deadline.is_some() {
            return Ok(());
        }
        let todo = plan.questions.iter().filter(|planned| planned.action == Action::Answer);
        let questions: Vec<(&str, &str, &[String])> = todo
            .filter_map(|planned| self.list.questions().get(planned.number))
            .map(|q| (q.question.as_str(), q.lang.as_str(), q.collections.as_slice()))
            .collect();
        match self.library.decide_ahead(&questions, &stop::requested) {
            // It is said, and dealt with, when the first of them is asked.
            Err(BatchError::Llm(_) | BatchError::NoModel { .. }) => Ok(()),
            decided => decided,
        }
    }

    fn question(
        &mut self,
        planned: &Planned,
        question: &Question,
    ) -> Result<(QuestionRecord, Option<Last>), BatchError> {
        let mut told = QuestionRecord {
            id: question.id.clone(),
            lang: question.lang.clone(),
            question: question.question.clone(),
            reasons: planned.reasons.clone(),
            passage_tokens: planned.passage_tokens as u64,
            ..QuestionRecord::default()
        };
        let paused = planned.action == Action::Pause && !self.options.try_all;
        let start = Instant::now();
        let shard =
            self.options.shards.as_ref().and_then(|shards| shards.get(&question.id)).cloned();
        let failed = shard.as_ref().and_then(|shard| shard.error.clone());
        let answered = if let (Action::Answer, Some(reason)) = (planned.action, failed) {
            self.fail(planned, reason, &mut told);
            None
        } else if planned.action != Action::Keep && paused {
            told.outcome = Outcome::Paused;
            None
        } else if planned.action != Action::Keep && self.is_over(planned.estimate) {
            told.outcome = Outcome::Left;
            None
        } else {
            self.ask(planned, question, &mut told)?
        };
        told.seconds = start.elapsed().as_secs_f64();
        if let Some(shard) = shard.filter(|shard| shard.fresh) {
            (told.fresh, told.cost, told.seconds) = (true, shard.cost, shard.seconds);
            told.reasons.retain(|reason| reason != KEPT);
        }
        if told.fresh {
            self.taken = (self.taken.0 + 1, self.taken.1 + told.seconds);
        }
        let stale = answered.is_none();
        let last = match answered {
            Some(Answered { stored, answer, .. }) => {
                self.library.store.set_latest(&question.id, &stored.key)?;
                Some((stored, answer))
            }
            // An answer whose sources have changed may no longer be shown.
            None => self.library.store.latest(&question.id)?.and_then(|stored| {
                let answer = render(&stored.synthesis, &self.library.archive).ok()?;
                Some((stored, answer))
            }),
        };
        let Some((stored, answer)) = last else { return Ok((told, None)) };
        told.stale = stale;
        told.computed_on = stored.computed_on.clone();
        told.model = stored.synthesis.model.clone();
        told.quotations = stored.synthesis.quotations.len() as u64;
        told.rejected = rejected(&stored);
        if !stale {
            told.outcome = if answer.answered { Outcome::Answered } else { Outcome::Insufficient };
        }
        let computed_on = stored.computed_on.clone();
        let shown = Curated { question: question.clone(), answer, computed_on, stale };
        Ok((told, Some(Box::new((stored, shown)))))
    }

    /// Whether there is no time for one more question.
    fn is_over(&mut self, estimate: Option<Estimate>) -> bool {
        if self.options.answer_nothing {
            self.over.get_or_insert_with(|| "nothing was to be answered".to_owned());
        }
        if let Some(deadline) = self.options.deadline {
            let usual = self.taken.1 / f64::from(self.taken.0.max(1));
            let seconds = estimate.map_or(usual, |estimate| estimate.seconds).clamp(0.0, 1e6);
            if Instant::now() + Duration::from_secs_f64(seconds) >= deadline {
                self.over.get_or_insert_with(|| "the deadline has come".to_owned());
            }
        }
        self.over.is_some()
    }

    /// Gets a question's answer from the store or the model; none when that failed, which is noted.
    fn ask(
        &mut self,
        planned: &Planned,
        question: &Question,
        told: &mut QuestionRecord,
    ) -> Result<Option<Answered>, BatchError> {
        let keep = planned.action == Action::Keep;
        if keep && let Some(stored) = self.library.store.get(&planned.key)? {
            let answer = render(&stored.synthesis, &self.library.archive)?;
            self.failures.clear(&question.id);
            return Ok(Some(Answered { stored, answer, fresh: false }));
        }
        let configured = self.library.configured_mode();
        if self.away.is_some() && self.mode == configured {
            told.outcome = Outcome::Waiting;
            return Ok(None);
        }
        loop {
            let Question { question: words, lang, collections, .. } = question;
            match self.library.ask_in(self.mode, words, lang, collections, &|_| {}) {
                Ok(answered) => {
                    told.fresh = answered.fresh;
                    if answered.fresh {
                        told.cost = answered.stored.synthesis.trace.cost;
                    }
                    self.failures.clear(&question.id);
                    return Ok(Some(answered));
                }
                Err(
                    error @ BatchError::Stage(StageFailed::Engine {
                        source: LlmError::Missing(_),
                        ..
                    }),
                ) => {
                    // Without a model every question would fail: that is the run's failure.
                    if self.away.is_none() {
                        return Err(error);
                    }
                    // Nothing stands in for the one that is away.
                    self.mode = configured;
                    told.outcome = Outcome::Waiting;
                    return Ok(None);
                }
                Err(
                    BatchError::Stage(StageFailed::Engine {
                        source: error @ LlmError::Unavailable { .. },
                        ..
                    })
                    | BatchError::Llm(error @ LlmError::Unavailable { .. }),
                ) if self.away.is_none() => {
                    tracing::warn!("{error}");
                    self.away = Some(error.to_string());
                    let degrades = self.library.pipeline.nightly.when_away == WhenAway::Degraded;
                    if !degrades || configured == Mode::Degraded {
                        told.outcome = Outcome::Waiting;
                        return Ok(None);
                    }
                    self.mode = Mode::Degraded;
                }
                Err(error @ (BatchError::Stage(_) | BatchError::Llm(_))) => {
                    tracing::warn!("{}: {error}", question.id);
                    self.fail(planned, error.to_string(), told);
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn fail(&mut self, planned: &Planned, reason: String, told: &mut QuestionRecord) {
        self.failures.add(&planned.id, &planned.key, self.run, &today(), &reason);
        told.outcome = Outcome::Failed;
        told.error = Some(reason);
    }
}

/// The quotations that the verification rejected, and why.
fn rejected(stored: &Stored) -> Vec<Rejected> {
    let proposals = stored.synthesis.trace.proposals.iter();
    proposals
        .filter_map(|proposal| {
            let reason = match proposal.outcome.as_ref()? {
                Found::Exact(_) => return None,
                Found::Equivalent(_) => "equivalent",
                Found::Ellipsis => "ellipsis",
                Found::Misattributed => "misattributed",
                Found::Absent => "absent",
                Found::Empty => "empty",
                Found::TooShort => "too_short",
                Found::UnknownPassage => "unknown_passage",
            };
            Some(Rejected {
                passage: proposal.passage.clone(),
                quotation: proposal.quotation.clone(),
                reason: reason.to_owned(),
            })
        })
        .collect()
}

/// Notes how a question's answer differs from the one in the last release.
fn compare(
    library: &Library,
    before: Option<&Published>,
    stored: &Stored,
    told: &mut QuestionRecord,
) -> Result<(), BatchError> {
    let answered = !stored.synthesis.quotations.is_empty();
    told.change = match before.and_then(|before| before.questions.get(&told.id)) {
        None => Change::New,
        Some((key, _)) if *key == stored.key => Change::Same,
        Some((_, false)) if answered => Change::Gained,
        Some((_, true)) if !answered => Change::Lost,
        Some((_, false)) => Change::Same,
        Some((key, true)) => match library.store.get(key)? {
            Some(old) if old.synthesis.quotations == stored.synthesis.quotations => Change::Same,
            _ => Change::Changed,
        },
    };
    Ok(())
}

/// Why a run should not be published.
fn refusals(pipeline: &Pipeline, record: &RunRecord, before: Option<&Published>) -> Vec<String> {
    let settings = &pipeline.nightly;
    let mut refusals = Vec::new();
    let mut hold = |part: usize, whole: usize, limit: f64, what: &str, setting: &str| {
        let share = part as f64 / whole.max(1) as f64;
        if share > limit {
            refusals.push(format!(
                "{part} of {whole} {what} ({:.0} %), more than nightly.{setting} = {limit} allows",
                share * 100.0
            ));
        }
    };
    let failed = record.count(Outcome::Failed);
    hold(failed, failed + record.fresh(), settings.failures, "questions asked failed", "failures");
    if let Some(before) = before {
        let listed: HashMap<&str, &QuestionRecord> =
            record.questions.iter().map(|question| (question.id.as_str(), question)).collect();
        let answered = before
            .questions
            .iter()
            .filter(|(id, (_, answered))| *answered && listed.contains_key(id.as_str()));
        hold(
            record.changes(Change::Lost),
            answered.count(),
            settings.insufficient,
            "answers turned into \"insufficient\"",
            "insufficient",
        );
        let removed = usize::try_from(record.removed_passages).unwrap_or(usize::MAX);
        hold(removed, before.passages.len(), settings.removed, "passages are gone", "removed");
    }
    refusals
}

impl Night {
    /// Writes down how the night ended, and gives its record.
    pub fn finish(self, publication: &Publication) -> Result<RunRecord, BatchError> {
        let Night { library, mut record, failures, history, published, start, _lock, .. } = self;
        let work = &library.pipeline.paths.work;
        record.release = publication.release.clone();
        record.audited = publication.audited as u64;
        record.audit_failures.clone_from(&publication.audit_failures);
        record.publish_seconds = publication.seconds;
        let complete = record
            .questions
            .iter()
            .all(|question| matches!(question.outcome, Outcome::Answered | Outcome::Insufficient));
        record.status = match (&publication.release, complete) {
            (None, _) => Status::KeptBack,
            (Some(_), true) => Status::Published,
            (Some(_), false) => Status::Incomplete,
        };
        failures.save(work)?;
        if publication.release.is_some() {
            published.save(work)?;
        }
        record.seconds = start.elapsed().as_secs_f64();
        history.put(&record)?;
        Ok(record)
    }
}
