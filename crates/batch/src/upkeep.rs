//! Looking after what a run keeps: is it whole, what can go, how much is it.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use florilegium_files::record::examine;
use florilegium_files::{FileError, read, sweep};
use florilegium_index::Index;
use serde::Serialize;

use crate::clock::{now, today};
use crate::error::BatchError;
use crate::history::Published;
use crate::ingest::{open_archive, open_vectors};
use crate::library::{normalise, question_key};
use crate::models::Models;
use crate::night::lock;
use crate::pipeline::Pipeline;
use crate::run::questions;
use crate::store::Store;

/// Folders with a FAISS index and words, which answer for themselves.
const INDEXES: [&str; 2] = ["index", "wordings"];
/// What is no record: the lock, reports, files of a cluster, the model's own states.
const FREE: [&str; 3] = ["lock", "states", "cluster"];

/// A damaged file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: String,
}

/// What `verify` found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Records examined.
    pub records: usize,
    /// Indexes examined.
    pub indexes: usize,
    /// What is damaged. The next run makes it anew, and nothing else.
    pub damaged: Vec<Damage>,
}

/// Examines every file that a run keeps. Changes nothing.
pub fn verify(pipeline: &Pipeline) -> Result<Verified, BatchError> {
    let work = &pipeline.paths.work;
    let mut found = Verified::default();
    for path in files(work)? {
        let name = path.strip_prefix(work).unwrap_or(&path);
        let room = name.components().next().and_then(|part| part.as_os_str().to_str());
        let free = FREE.iter().chain(&INDEXES).any(|free| room == Some(free));
        if free || !is_record(name) {
            continue;
        }
        found.records += 1;
        if let Err(problem) = read(&path).map_err(|e| e.to_string()).and_then(|b| examine(&b)) {
            found.damaged.push(Damage { path, problem });
        } else if room == Some("answers")
            && let Some(key) = name.file_name().and_then(|name| name.to_str())
            && Store::new(work).get(key)?.is_none()
        {
            let problem = "an older format, or the answer to other inputs".to_owned();
            found.damaged.push(Damage { path, problem });
        }
    }
    for name in INDEXES {
        let folder = work.join(name);
        if !folder.is_dir() {
            continue;
        }
        found.indexes += 1;
        if let Err(error) = Index::verify(&folder) {
            found.damaged.push(Damage { path: folder, problem: error.to_string() });
        }
    }
    Ok(found)
}

/// Whether a file, named from the folder of the work, is a record. Reports, scripts and what is being
/// written are none.
fn is_record(name: &Path) -> bool {
    let hidden = name.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && (!name.starts_with("runs") || name.ends_with("run"))
}

/// What `gc` removed, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Answers that no question has any more.
    pub answers: usize,
    /// Answers that are kept.
    pub answers_kept: usize,
    /// Notes of the last answer of questions that are no longer listed.
    pub latest: usize,
    /// Vectors of texts that are gone.
    pub vectors: usize,
    /// Decisions and vectors of models that are no longer used: whole folders.
    pub models: usize,
    /// Files that killed runs had not finished.
    pub unfinished: usize,
    /// Bytes of the files removed.
    pub bytes: u64,
}

/// Removes what nothing needs: answers that are neither the last nor the published one of a listed
/// question and older than `keep_days`, and what belongs to texts, questions and models that are gone.
pub fn gc(pipeline: &Pipeline, keep_days: u64, dry_run: bool) -> Result<Swept, BatchError> {
    let work = &pipeline.paths.work;
    let (_lock, _) = lock(pipeline)?;
    // Before anything is removed: a list with a fault, or no archive, must not pass for an empty one.
    let list = questions(pipeline)?;
    let archive = open_archive(pipeline)?;
    let models = Models::of(pipeline)?;
    let store = Store::new(work);
    let mut swept = Swept::default();
    let remove = |path: &Path, bytes: &mut u64| -> Result<(), FileError> {
        *bytes += size(path);
        if dry_run {
            return Ok(());
        }
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.map_err(|error| FileError::io("remove", path, error))
    };

    let ids: HashSet<&str> = list.questions().iter().map(|q| q.id.as_str()).collect();
    let mut needed: HashSet<String> = HashSet::new();
    for path in files(&work.join("latest"))? {
        let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if ids.contains(id.as_str()) {
            needed.extend(store.latest_key(&id)?);
        } else if !id.starts_with('.') {
            swept.latest += 1;
            remove(&path, &mut swept.bytes)?;
        }
    }
    if let Some(published) = Published::open(work)? {
        needed.extend(published.questions.into_values().map(|(key, _)| key));
    }
    let oldest = oldest_kept(keep_days);
    for path in files(&work.join("answers"))? {
        let key = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_kept = key.starts_with('.')
            || needed.contains(&key)
            || store.get(&key)?.is_some_and(|stored| stored.computed_on >= oldest);
        if is_kept {
            swept.answers_kept += usize::from(!key.starts_with('.'));
        } else {
            swept.answers += 1;
            remove(&path, &mut swept.bytes)?;
        }
    }

    let mut texts: HashSet<String> =
        archive.passages().iter().map(|passage| passage.text_hash.clone()).collect();
    for question in list.questions() {
        let wordings = std::iter::once(&question.question).chain(&question.variants);
        texts.extend(wordings.map(|wording| question_key(&normalise(wording))));
    }
    let mut vectors = open_vectors(pipeline, &models)?;
    swept.vectors = vectors.retain(|key| texts.contains(key));
    if !dry_run && swept.vectors > 0 {
        vectors.fold()?;
    }
    let used = [&models.language, &models.degraded].map(crate::models::identity).to_vec();
    for (room, used) in [("decisions", used), ("vectors", vec![models.embedding_identity()])] {
        let used: Vec<String> =
            used.iter().map(|model| crate::ledger::folder_name(model)).collect();
        for entry in fs::read_dir(work.join(room)).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !used.iter().any(|used| path.ends_with(used)) {
                swept.models += 1;
                remove(&path, &mut swept.bytes)?;
            }
        }
    }
    if !dry_run {
        swept.unfinished = sweep(work);
    }
    Ok(swept)
}

/// The day before which answers may go.
fn oldest_kept(keep_days: u64) -> String {
    let back = Duration::from_secs(keep_days.saturating_mul(86_400));
    let day = now().checked_sub(back).filter(|day| *day >= UNIX_EPOCH).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_seconds(day).to_string().chars().take(10).collect()
}

/// How much a run keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Answers that can be used.
    pub answers: usize,
    /// Answers that are damaged or of an older format.
    pub unusable: usize,
    /// Answers by model.
    pub by_model: BTreeMap<String, usize>,
    /// Day of the oldest answer.
    pub oldest: String,
    /// Day of the newest answer.
    pub newest: String,
    /// Questions with an answer.
    pub questions: usize,
    /// Runs on record.
    pub runs: usize,
    /// Bytes by what they are of.
    pub bytes: BTreeMap<String, u64>,
}

/// Counts what a run keeps.
pub fn stats(pipeline: &Pipeline) -> Result<Stats, BatchError> {
    let work = &pipeline.paths.work;
    let store = Store::new(work);
    let mut stats = Stats { newest: String::new(), oldest: today(), ..Stats::default() };
    for path in files(work)? {
        let name = path.strip_prefix(work).unwrap_or(&path);
        let room = name.components().next().map(|part| part.as_os_str().to_string_lossy());
        let room = room.unwrap_or_default().into_owned();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        *stats.bytes.entry(room.clone()).or_default() += size(&path);
        match room.as_str() {
            "answers" if !file.starts_with('.') => match store.get(&file)? {
                Some(stored) => {
                    stats.answers += 1;
                    *stats.by_model.entry(stored.synthesis.model).or_default() += 1;
                    stats.oldest = stats.oldest.min(stored.computed_on.clone());
                    stats.newest = stats.newest.max(stored.computed_on);
                }
                None => stats.unusable += 1,
            },
            "latest" => stats.questions += 1,
            "runs" => stats.runs += usize::from(file == "run"),
            _ => {}
        }
    }
    if stats.answers == 0 {
        stats.oldest.clear();
    }
    Ok(stats)
}

fn size(path: &Path) -> u64 {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| size(&entry.path()))
            .sum(),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}

/// All files below a folder, in order; none when there is no such folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.map_err(|error| {
            FileError::io(
                "list",
                folder,
                error.into_io_error().unwrap_or(std::io::ErrorKind::Other.into()),
            )
        })?;
        if entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}
