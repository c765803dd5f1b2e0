//! Answers in the making. A question is one job, however often and by however many it is asked; only
//! some wait at a time; what was accepted survives the end of the process.
//!
//! Three cases: the primary engine is there, and makes a full synthesis; it is away, and a degraded one
//! is made here; it is there and fails this question, and a degraded one is made too.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use florilegium_batch::{Answered, BatchError, LiveServer};
use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex_parts};
use florilegium_llm::LlmError;
use florilegium_synthesis::{Mode, StageFailed};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::limits::Client;
use crate::loaded::Current;
use crate::log::QuestionLog;
use crate::metrics::Metrics;

const FORMAT: Format = Format { magic: *b"FLORJOB\0", version: 1 };
/// Workers when the primary engine answers: it has slots.
const WORKERS: usize = 4;
/// Jobs kept after their end; older ones are answered from the store when they are asked again.
const KEPT: usize = 4096;
/// Seconds a job takes before any was measured.
const GUESS: f64 = 60.0;
/// What makes a job another one although the question is the same.
const METHOD: &str = "job/1";

/// A job as it is kept on disk. It holds nothing about who asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The question, normalised.
    pub question: String,
    /// BCP 47 tag.
    pub language: String,
    /// Hash of the passages at the time.
    pub corpus: String,
    /// Seconds since 1970.
    pub accepted: u64,
    /// How it ended.
    pub ended: Option<Ended>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ended {
    /// With a synthesis, which is in the store: full or degraded.
    Made,
    /// Without one; the reason is in the log.
    Failed,
}

/// How a job stands.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// It waits for a worker.
    Waiting,
    /// It is being made.
    Running {
        /// The stage that asks the engine.
        stage: &'static str,
        /// Full or degraded.
        mode: Mode,
    },
    /// It is there.
    Done(Arc<Answered>),
    /// It could not be made; the reason is in the log.
    Failed,
}

impl Standing {
    /// Whether nothing more will change.
    pub fn has_ended(&self) -> bool {
        matches!(self, Standing::Done(_) | Standing::Failed)
    }
}

/// A job that was found or made.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Its id: the hash of what makes it this job.
    pub id: String,
    /// What it is about.
    pub record: Record,
    /// How it stands.
    pub standing: watch::Receiver<Standing>,
}

/// Why a job is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too many wait.
    Full,
    /// Too many of this client do.
    Client,
    /// It could not be written down; the reason is in the log.
    Unwritten,
}

struct Entry {
    job: Job,
    sender: watch::Sender<Standing>,
    client: Option<Client>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<String, Entry>,
    waiting: VecDeque<String>,
    /// Ids in the order in which they ended.
    ended: VecDeque<String>,
    /// Moving mean of the seconds a job takes.
    seconds: Option<f64>,
    running: usize,
    away_until: Option<Instant>,
}

/// The jobs.
pub(crate) struct Jobs {
    folder: PathBuf,
    settings: LiveServer,
    inner: Mutex<Inner>,
    wake: Condvar,
    stopping: AtomicBool,
    /// Degraded syntheses are made one at a time.
    degraded: Mutex<()>,
    metrics: Arc<Metrics>,
    log: QuestionLog,
}

impl Jobs {
    /// Opens the jobs kept in `folder`: those that had not ended wait again, in their order; those of
    /// another corpus are forgotten.
    pub fn open(
        folder: &Path,
        corpus: &str,
        settings: &LiveServer,
        metrics: Arc<Metrics>,
        log: QuestionLog,
    ) -> Result<Self, FileError> {
        florilegium_files::create_dir(folder)?;
        let mut inner = Inner::default();
        let mut found: Vec<(String, Record)> = Vec::new();
        let entries = std::fs::read_dir(folder).map_err(|source| FileError::Io {
            action: "read the folder",
            path: folder.to_owned(),
            source,
        })?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !is_id(&id) {
                continue;
            }
            match record::load::<Record>(&path, FORMAT) {
                Ok(record) if record.corpus == corpus => found.push((id, record)),
                Ok(_) => forget(&path),
                Err(error) => {
                    tracing::warn!("{error}; the job is forgotten");
                    forget(&path);
                }
            }
        }
        found.sort_by_key(|(id, record)| (record.accepted, id.clone()));
        for (id, record) in found {
            let standing = match record.ended {
                // What was made is in the store, and is found again when it is asked for.
                Some(Ended::Made) => continue,
                Some(Ended::Failed) => Standing::Failed,
                None => Standing::Waiting,
            };
            let waits = !standing.has_ended();
            inner.add(id.clone(), record, standing, None);
            if waits { inner.waiting.push_back(id) } else { inner.ended.push_back(id) }
        }
        metrics.queue.set(i64::try_from(inner.waiting.len()).unwrap_or(i64::MAX));
        Ok(Jobs {
            folder: folder.to_owned(),
            settings: settings.clone(),
            inner: Mutex::new(inner),
            wake: Condvar::new(),
            stopping: AtomicBool::new(false),
            degraded: Mutex::new(()),
            metrics,
            log,
        })
    }

    /// The id of the job of a question.
    pub fn id(question: &str, language: &str, corpus: &str) -> String {
        let parts = [METHOD, question, language, corpus];
        sha256_hex_parts(parts.map(str::as_bytes)).chars().take(32).collect()
    }

    /// Finds the job of a question, or takes it in. It is written down before this returns.
    pub fn start(
        &self,
        question: &str,
        language: &str,
        corpus: &str,
        client: Option<Client>,
    ) -> Result<Job, Refused> {
        let id = Self::id(question, language, corpus);
        let mut inner = self.lock();
        if let Some(entry) = inner.entries.get(&id) {
            // One that failed is tried again when it is asked again; a page that only looks again asks
            // for the job, not for the question.
            if !matches!(*entry.sender.borrow(), Standing::Failed) {
                return Ok(entry.job.clone());
            }
        }
        if inner.waiting.len() >= self.settings.queue {
            return Err(Refused::Full);
        }
        let of_client = |entry: &&Entry| {
            client.is_some() && entry.client == client && !entry.sender.borrow().has_ended()
        };
        if inner.entries.values().filter(of_client).count() >= self.settings.jobs_per_client {
            return Err(Refused::Client);
        }
        let record = Record {
            question: question.to_owned(),
            language: language.to_owned(),
            corpus: corpus.to_owned(),
            accepted: seconds_since_1970(),
            ended: None,
        };
        if let Err(error) = record::write(&self.folder.join(&id), FORMAT, &record) {
            tracing::error!("{error}");
            return Err(Refused::Unwritten);
        }
        let job = inner.add(id.clone(), record, Standing::Waiting, client);
        inner.waiting.push_back(id);
        self.count_queue(&inner);
        drop(inner);
        self.wake.notify_one();
        Ok(job)
    }

    /// The job of an id.
    pub fn find(&self, id: &str) -> Option<Job> {
        if let Some(entry) = self.lock().entries.get(id) {
            return Some(entry.job.clone());
        }
        if !is_id(id) {
            return None;
        }
        // One that ended before a restart.
        let record: Record = record::load(&self.folder.join(id), FORMAT).ok()?;
        let (_, standing) = watch::channel(Standing::Failed);
        Some(Job { id: id.to_owned(), record, standing })
    }

    /// How many jobs come before this one; 0 when it is being made.
    pub fn position(&self, id: &str) -> usize {
        self.lock().waiting.iter().position(|waiting| waiting == id).map_or(0, |at| at + 1)
    }

    /// Seconds until a job at this position is done, from what was measured.
    pub fn estimate(&self, position: usize) -> u64 {
        let inner = self.lock();
        let each = inner.seconds.unwrap_or(GUESS);
        (each * (position as f64 + 1.0)).ceil() as u64
    }

    /// Starts the workers. They end when [`Jobs::stop`] is called.
    pub fn work(self: &Arc<Self>, current: &Arc<Current>) -> Vec<std::thread::JoinHandle<()>> {
        let workers = match current.get().library.configured_mode() {
            Mode::Full => WORKERS,
            Mode::Degraded => 1,
        };
        (0..workers)
            .filter_map(|_| {
                let (jobs, current) = (self.clone(), current.clone());
                let work = move || {
                    // Search goes first; threads that this one starts inherit it.
                    if let Err(error) = rustix::process::nice(NICE) {
                        tracing::warn!("syntheses run at the priority of searches: {error}");
                    }
                    while let Some(job) = jobs.next() {
                        jobs.make(&job, &current);
                    }
                };
                std::thread::Builder::new().name("synthesis".into()).spawn(work).ok()
            })
            .collect()
    }

    /// Takes no further job; those that wait are kept on disk.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.wake.notify_all();
    }

    /// Forgets what was made from another corpus: its results have expired.
    pub fn expire(&self, corpus: &str) {
        let mut inner = self.lock();
        let old: Vec<String> = inner
            .ended
            .iter()
            .filter(|id| inner.entries.get(*id).is_some_and(|e| e.job.record.corpus != corpus))
            .cloned()
            .collect();
        for id in old {
            inner.entries.remove(&id);
            inner.ended.retain(|ended| *ended != id);
            forget(&self.folder.join(&id));
        }
    }

    fn next(&self) -> Option<Job> {
        let mut inner = self.lock();
        loop {
            if self.stopping.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(id) = inner.waiting.pop_front() {
                inner.running += 1;
                self.count_queue(&inner);
                if let Some(entry) = inner.entries.get(&id) {
                    return Some(entry.job.clone());
                }
                inner.running -= 1;
                continue;
            }
            inner = self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn make(&self, job: &Job, current: &Current) {
        let start = Instant::now();
        let loaded = current.get();
        let made = self.synthesis(job, &loaded.library);
        let outcome = match &made {
            Some(answered) if answered.answer.answered => "answered",
            Some(_) => "insufficient",
            None => "failed",
        };
        self.log.note(&job.record.language, &job.record.question, outcome);
        self.metrics.job(outcome);
        let ended = if made.is_some() { Ended::Made } else { Ended::Failed };
        let record = Record { ended: Some(ended), ..job.record.clone() };
        if let Err(error) = record::write(&self.folder.join(&job.id), FORMAT, &record) {
            // It is made again after a restart: nothing is lost but time.
            tracing::error!("{error}");
        }
        let mut inner = self.lock();
        inner.running -= 1;
        let seconds = start.elapsed().as_secs_f64();
        inner.seconds = Some(inner.seconds.map_or(seconds, |mean| 0.7 * mean + 0.3 * seconds));
        if let Some(entry) = inner.entries.get_mut(&job.id) {
            entry.job.record = record;
            entry.client = None;
            entry.sender.send_replace(match made {
                Some(answered) => Standing::Done(Arc::new(answered)),
                None => Standing::Failed,
            });
        }
        inner.ended.push_back(job.id.clone());
        while inner.ended.len() > KEPT {
            if let Some(old) = inner.ended.pop_front() {
                inner.entries.remove(&old);
                forget(&self.folder.join(&old));
            }
        }
    }

    /// A full synthesis if the primary engine is there and makes it, else a degraded one.
    fn synthesis(&self, job: &Job, library: &florilegium_batch::Library) -> Option<Answered> {
        let Record { question, language, .. } = &job.record;
        let ask = |mode: Mode| {
            let watch = |stage: &'static str| {
                if let Some(entry) = self.lock().entries.get(&job.id) {
                    entry.sender.send_replace(Standing::Running { stage, mode });
                }
            };
            watch("retrieval");
            library.ask_in(mode, question, language, &[], &watch)
        };
        if library.configured_mode() == Mode::Full && !self.is_away() {
            match ask(Mode::Full) {
                Ok(answered) => return Some(answered),
                Err(error) => {
                    tracing::warn!("no full synthesis: {error}");
                    self.metrics.full_failed.inc();
                    if is_away(&error) {
                        let away = Duration::from_secs(self.settings.away_seconds);
                        self.lock().away_until = Some(Instant::now() + away);
                    }
                }
            }
        }
        let _one = self.degraded.lock().unwrap_or_else(PoisonError::into_inner);
        match ask(Mode::Degraded) {
            Ok(answered) => Some(answered),
            Err(error) => {
                tracing::error!("a question could not be answered: {error}");
                None
            }
        }
    }

    fn is_away(&self) -> bool {
        self.lock().away_until.is_some_and(|until| Instant::now() < until)
    }

    fn count_queue(&self, inner: &Inner) {
        self.metrics.queue.set(i64::try_from(inner.waiting.len()).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much the workers give way.
const NICE: i32 = 10;

impl Inner {
    fn add(
        &mut self,
        id: String,
        record: Record,
        standing: Standing,
        client: Option<Client>,
    ) -> Job {
        self.ended.retain(|ended| *ended != id);
        let (sender, receiver) = watch::channel(standing);
        let job = Job { id: id.clone(), record, standing: receiver };
        self.entries.insert(id, Entry { job: job.clone(), sender, client });
        job
    }
}

/// Whether an error means that no server is there.
fn is_away(error: &BatchError) -> bool {
    let of = |error: &LlmError| {
        matches!(
            error,
            LlmError::Unavailable { .. }
                | LlmError::WrongModel { .. }
                | LlmError::Unauthorized { .. }
        )
    };
    match error {
        BatchError::Llm(error) => of(error),
        BatchError::Stage(StageFailed::Engine { source, .. }) => of(source),
        _ => false,
    }
}

fn is_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn forget(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!("{}: {error}", path.display());
    }
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(folder: &Path, queue: usize) -> Jobs {
        let settings = LiveServer { queue, jobs_per_client: 2, ..LiveServer::default() };
        Jobs::open(folder, "corpus", &settings, Arc::new(Metrics::new()), QuestionLog::off())
            .unwrap()
    }

    fn client(last: u8) -> Option<Client> {
        Some(Client::of(std::net::IpAddr::from([192, 0, 2, last])))
    }

    #[test]
    fn a_question_is_one_job_and_a_full_queue_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = jobs(folder.path(), 3);
        let one = jobs.start("How tall?", "en", "corpus", None).unwrap();
        let same = jobs.start("How tall?", "en", "corpus", None).unwrap();
        assert_eq!(one.id, same.id);
        assert_ne!(one.id, jobs.start("How tall?", "fr", "corpus", None).unwrap().id);
        let third = jobs.start("Who?", "en", "corpus", None).unwrap();
        assert_eq!((jobs.position(&one.id), jobs.position(&third.id)), (1, 3));
        assert_eq!(jobs.start("When?", "en", "corpus", None).unwrap_err(), Refused::Full);
        assert!(jobs.start("How tall?", "en", "corpus", None).is_ok(), "it is there already");
    }

    #[test]
    fn one_client_does_not_fill_the_queue() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = jobs(folder.path(), 9);
        for question in ["a?", "b?"] {
            jobs.start(question, "en", "corpus", client(1)).unwrap();
        }
        assert_eq!(jobs.start("c?", "en", "corpus", client(1)).unwrap_err(), Refused::Client);
        jobs.start("c?", "en", "corpus", client(2)).unwrap();
        jobs.start("b?", "en", "corpus", client(1)).unwrap();
    }

    #[test]
    fn what_was_accepted_waits_again_after_a_restart_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let ids: Vec<String> = {
            let jobs = jobs(folder.path(), 9);
            let start = |question: &str| jobs.start(question, "en", "corpus", None).unwrap().id;
            [start("a?"), start("b?")].to_vec()
        };
        std::fs::write(folder.path().join("0".repeat(32)), b"FLORJOB\0 damaged").unwrap();
        let again = jobs(folder.path(), 9);
        let mut waiting: Vec<String> = again.lock().waiting.iter().cloned().collect();
        waiting.sort();
        let mut expected = ids.clone();
        expected.sort();
        assert_eq!(waiting, expected);
        assert_eq!(again.find(&ids[0]).unwrap().record.question, "a?");
        assert!(again.find("../../etc/passwd").is_none());
        // Another corpus: the results have expired, and with them the jobs.
        let settings = LiveServer::default();
        let metrics = Arc::new(Metrics::new());
        let other =
            Jobs::open(folder.path(), "other", &settings, metrics, QuestionLog::off()).unwrap();
        assert!(other.find(&ids[0]).is_none());
    }
}
