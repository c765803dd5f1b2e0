//! From sources to an index: reads, cuts, embeds and indexes what has changed, and nothing else.
//!
//! A file is not read again while its size and time are the same, or, if they are not, its hash. One
//! that was renamed is known by its hash. What a file gave goes with it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use florilegium_corpus::blocks::AUTO;
use florilegium_corpus::{
    Archive, Catalogue, Collection, CorpusError, Document, FileContent, Passage, Report,
    SourceFile, Warning, all_or_errors, finish, list_files, read_file, segment,
};
use florilegium_embed::Embedder;
use florilegium_files::lock::Lock;
use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex_file, sha256_hex_parts};
use florilegium_index::{Index, Origin, Row};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::BatchError;
use crate::models::{Models, open_embedder};
use crate::pipeline::Pipeline;
use crate::progress;
use crate::stop;
use crate::store::load_if_whole;
use crate::vectors::Vectors;

const ARCHIVE: Format = Format { magic: *b"FLORARCH", version: 2 };
/// Raised when the readers or the segmentation change what comes out.
const READER: &str = "reader/2";
/// Numbers in a vector.
const DIMENSION: usize = 384;
/// A file written so shortly before it was read, in nanoseconds, may have been written again in the
/// same tick of the clock: its time proves nothing.
const TICK: u64 = 2_000_000_000;

#[derive(Default, Serialize, Deserialize)]
struct StoredArchive {
    archive: Archive,
    reports: Vec<(String, Report)>,
    files: Vec<StoredFile>,
}

/// A file that was read, and what it gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredFile {
    collection: String,
    /// Hash of everything but the file that decides what it gives.
    settings: String,
    file: SourceFile,
    hash: String,
    /// When it was read, in nanoseconds since 1970.
    read: u64,
    documents: Vec<String>,
    skipped: Option<String>,
    warnings: Vec<Warning>,
}

/// What building a library did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Built {
    /// Whether anything in the sources had changed.
    pub read: bool,
    /// Files read now.
    pub files_read: usize,
    /// Files kept as they were read before.
    pub files_kept: usize,
    /// Of these, files that have another name now.
    pub files_renamed: usize,
    /// Files that are gone, and their passages with them.
    pub files_removed: usize,
    /// Passages embedded.
    pub embedded_passages: usize,
    /// Their tokens.
    pub embedded_tokens: usize,
    /// Seconds spent reading and cutting into passages.
    pub read_seconds: f64,
    /// Seconds spent embedding.
    pub embed_seconds: f64,
    /// Whether the index was made anew.
    pub indexed: bool,
}

/// An archive that has been read, embedded and indexed.
pub(crate) struct Ingested {
    pub(crate) archive: Archive,
    pub(crate) reports: Vec<(String, Report)>,
    pub(crate) vectors: Vectors,
    pub(crate) index: Index,
}

/// Reads, embeds and indexes what has changed.
pub(crate) fn ingest(
    pipeline: &Pipeline,
    models: &Models,
    embedder: &Mutex<Option<Arc<Embedder>>>,
) -> Result<(Ingested, Built), BatchError> {
    let mut built = Built::default();
    let start = Instant::now();
    let counter = || token_counter(pipeline, models, embedder);
    let stored = read(pipeline, &models.embedding_identity(), counter, &mut built)?;
    built.read_seconds = start.elapsed().as_secs_f64();
    let archive = stored.archive.with_look_ups();

    let start = Instant::now();
    let mut vectors = open_vectors(pipeline, models)?;
    embed(
        &archive,
        &mut vectors,
        pipeline.embedding.chunk,
        || open_embedder(embedder, models, pipeline),
        &mut built,
    )?;
    built.embed_seconds = start.elapsed().as_secs_f64();

    let folder = index_path(pipeline);
    let origin = origin(&archive, models);
    let index = match Index::open(&folder, &origin) {
        Ok(index) => index,
        Err(_) => {
            // Missing, damaged or made from something else: made anew from what is at hand.
            built.indexed = true;
            let rows = rows(&archive, &vectors)?;
            Index::build(&folder, origin, &rows)?
        }
    };
    Ok((Ingested { archive, reports: stored.reports, vectors, index }, built))
}

/// Opens what an earlier run has made.
pub(crate) fn open_ingested(pipeline: &Pipeline, models: &Models) -> Result<Ingested, BatchError> {
    let missing = || BatchError::NotBuilt { id: pipeline.id.clone() };
    let stored =
        load_if_whole::<StoredArchive>(&archive_path(pipeline), ARCHIVE)?.ok_or_else(missing)?;
    let archive = stored.archive.with_look_ups();
    let index = Index::open(&index_path(pipeline), &origin(&archive, models))?;
    let vectors = open_vectors(pipeline, models)?;
    Ok(Ingested { archive, reports: stored.reports, vectors, index })
}

pub(crate) fn open_vectors(pipeline: &Pipeline, models: &Models) -> Result<Vectors, FileError> {
    Vectors::open(&pipeline.paths.work.join("vectors"), &models.embedding_identity())
}

fn origin(archive: &Archive, models: &Models) -> Origin {
    Origin {
        corpus: corpus_hash(archive),
        model: models.embedding_identity(),
        dimension: DIMENSION,
    }
}

fn index_path(pipeline: &Pipeline) -> PathBuf {
    pipeline.paths.work.join("index")
}

/// Reads the files that have changed and cuts them into passages; keeps the others.
fn read(
    pipeline: &Pipeline,
    embedding: &str,
    counter: impl FnOnce() -> Result<TokenCounter, BatchError>,
    built: &mut Built,
) -> Result<StoredArchive, BatchError> {
    let path = archive_path(pipeline);
    let stored = load_if_whole::<StoredArchive>(&path, ARCHIVE)?;
    let is_new = stored.is_none();
    let mut before = Before::of(stored.unwrap_or_default());
    let mut languages: Vec<String> =
        pipeline.collections.iter().map(|c| c.language.clone()).filter(|tag| tag != AUTO).collect();
    languages.sort_unstable();
    languages.dedup();
    let common = [
        READER.to_owned(),
        embedding.to_owned(),
        pipeline.passages.tokens.to_string(),
        languages.join(","),
    ];
    let mut plans = Vec::new();
    for collection in &pipeline.collections {
        let (files, report) = list_files(collection)?;
        let settings = settings(collection, &common)?;
        let states = files
            .par_iter()
            .map(|file| before.state(collection, &settings, file))
            .collect::<Result<Vec<State>, FileError>>()?;
        let mut taken = HashSet::new();
        let states: Vec<(SourceFile, State)> = files
            .into_iter()
            .zip(states)
            .map(|(file, state)| match state {
                // Two files may be copies of the one that is gone: only one of them is that one.
                State::Renamed { number, hash } if !taken.insert(number) => {
                    (file, State::Read { hash })
                }
                state => (file, state),
            })
            .collect();
        plans.push(Plan {
            collection,
            settings,
            report,
            catalogue: Catalogue::of(collection)?,
            states,
        });
    }
    let all = || plans.iter().flat_map(|plan| &plan.states);
    let count = |wanted: fn(&State) -> bool| all().filter(|(_, state)| wanted(state)).count();
    built.files_read = count(|state| matches!(state, State::Read { .. }));
    built.files_renamed = count(|state| matches!(state, State::Renamed { .. }));
    built.files_kept = all().count() - built.files_read;
    built.files_removed = before.removed(&plans);
    let same_order = before.collections.iter().eq(plans.iter().map(|plan| plan.collection));
    built.read =
        is_new || !same_order || built.files_read + built.files_renamed + built.files_removed > 0;
    let touched = all().any(|(_, state)| matches!(state, State::Kept { touched: true, .. }));
    if !built.read && !touched {
        return Ok(before.into_stored());
    }

    let count_tokens = match built.files_read {
        0 => Box::new(|_: &str| 0_usize) as TokenCounter,
        _ => counter()?,
    };
    let cutting =
        Cutting { languages: &languages, count: &count_tokens, budget: pipeline.passages.tokens };
    let bar = progress::bar(built.files_read as u64, "reading", "files");
    let mut after = StoredArchive::default();
    let (mut documents, mut passages) = (Vec::new(), Vec::new());
    for plan in plans {
        let Plan { collection, settings, mut report, catalogue, states } = plan;
        let read: Vec<Result<Given, CorpusError>> = states
            .par_iter()
            .map(|(file, state)| {
                let given = match state {
                    State::Read { .. } => cutting.read(collection, &catalogue, &file.path)?,
                    State::Kept { .. } | State::Renamed { .. } => Given::default(),
                };
                bar.inc(u64::from(matches!(state, State::Read { .. })));
                Ok(given)
            })
            .collect();
        let start = documents.len();
        for ((file, state), mut given) in states.into_iter().zip(all_or_errors(read)?) {
            let hash = match state {
                State::Read { hash } => hash,
                State::Kept { number, .. } => before.take(number, &mut given),
                State::Renamed { number, .. } => before.renamed(number, &file.path, &mut given),
            };
            report.add(&file.path, &given.content);
            report.passages += given.passages.len();
            report.tokens += given.passages.iter().map(|passage| passage.tokens).sum::<usize>();
            after.files.push(StoredFile {
                collection: collection.id.clone(),
                settings: settings.clone(),
                file,
                hash,
                read: now(),
                documents: given.content.documents.iter().map(|d| d.id.clone()).collect(),
                skipped: given.content.skipped,
                warnings: given.content.warnings,
            });
            documents.extend(given.content.documents);
            passages.extend(given.passages);
        }
        finish(collection, &catalogue, documents.get(start..).unwrap_or_default(), &mut report)?;
        for warning in &report.warnings {
            tracing::warn!("{}: {}", collection.id, describe(warning));
        }
        after.reports.push((collection.id.clone(), report));
    }
    bar.finish_and_clear();
    after.archive = Archive::new(pipeline.collections.clone(), documents, passages);
    record::write(&path, ARCHIVE, &after)?;
    Ok(after)
}

/// Counts the tokens of a text.
type TokenCounter = Box<dyn Fn(&str) -> usize + Sync>;

fn token_counter(
    pipeline: &Pipeline,
    models: &Models,
    embedder: &Mutex<Option<Arc<Embedder>>>,
) -> Result<TokenCounter, BatchError> {
    let embedder = open_embedder(embedder, models, pipeline)?;
    Ok(Box::new(move |text| embedder.count_tokens(text)))
}

/// A warning with its place.
fn describe(warning: &Warning) -> String {
    match warning.line {
        Some(line) => format!("{}, line {line}: {}", warning.path, warning.message),
        None => format!("{}: {}", warning.path, warning.message),
    }
}

/// What is to be done with one collection.
struct Plan<'a> {
    collection: &'a Collection,
    settings: String,
    report: Report,
    catalogue: Catalogue,
    states: Vec<(SourceFile, State)>,
}

/// What a file is, compared with what was read before; numbers are those of the stored files.
enum State {
    /// The same. Touched: only its time has changed.
    Kept { number: usize, touched: bool },
    /// The same under another name.
    Renamed { number: usize, hash: String },
    /// New or changed.
    Read { hash: String },
}

/// What a file gives.
#[derive(Default)]
struct Given {
    content: FileContent,
    passages: Vec<Passage>,
}

/// How documents are cut.
struct Cutting<'a> {
    languages: &'a [String],
    count: &'a (dyn Fn(&str) -> usize + Sync),
    budget: usize,
}

impl Cutting<'_> {
    fn read(
        &self,
        collection: &Collection,
        catalogue: &Catalogue,
        path: &str,
    ) -> Result<Given, CorpusError> {
        let content = read_file(collection, catalogue, path)?;
        let cut = |document| segment(document, self.languages, self.count, self.budget);
        let passages = content.documents.iter().flat_map(cut).collect();
        Ok(Given { content, passages })
    }
}

/// What was read before.
struct Before {
    collections: Vec<Collection>,
    reports: Vec<(String, Report)>,
    files: Vec<StoredFile>,
    documents: HashMap<String, Document>,
    passages: HashMap<String, Vec<Passage>>,
    /// The order of documents.
    order: Vec<String>,
    /// Numbers of files by collection and path, and by collection and hash.
    by_path: HashMap<(String, String), usize>,
    by_hash: HashMap<(String, String), usize>,
}

impl Before {
    fn of(stored: StoredArchive) -> Self {
        let collections = stored.archive.collections().to_vec();
        let (documents, all) = stored.archive.into_parts();
        let mut passages: HashMap<String, Vec<Passage>> = HashMap::new();
        for passage in all {
            passages.entry(passage.document.clone()).or_default().push(passage);
        }
        let numbers = |key: fn(&StoredFile) -> &str| {
            let of = |(number, file): (usize, &StoredFile)| {
                ((file.collection.clone(), key(file).to_owned()), number)
            };
            stored.files.iter().enumerate().map(of).collect()
        };
        Before {
            by_path: numbers(|file| &file.file.path),
            by_hash: numbers(|file| &file.hash),
            collections,
            reports: stored.reports,
            order: documents.iter().map(|document| document.id.clone()).collect(),
            documents: documents
                .into_iter()
                .map(|document| (document.id.clone(), document))
                .collect(),
            passages,
            files: stored.files,
        }
    }

    fn state(
        &self,
        collection: &Collection,
        settings: &str,
        file: &SourceFile,
    ) -> Result<State, FileError> {
        let known = |map: &HashMap<(String, String), usize>, key: &str| {
            let number = *map.get(&(collection.id.clone(), key.to_owned()))?;
            let stored = self.files.get(number).filter(|stored| stored.settings == settings)?;
            Some((number, stored))
        };
        let same = known(&self.by_path, &file.path);
        if let Some((number, stored)) = same
            && stored.file == *file
            && file.modified.saturating_add(TICK) < stored.read
        {
            return Ok(State::Kept { number, touched: false });
        }
        let hash = sha256_hex_file(&collection.path.join(&file.path))?;
        if let Some((number, stored)) = same
            && stored.hash == hash
        {
            return Ok(State::Kept { number, touched: true });
        }
        if let Some((number, stored)) = known(&self.by_hash, &hash)
            && may_be_renamed(collection, &stored.file.path, &file.path)
            && !collection.path.join(&stored.file.path).exists()
        {
            return Ok(State::Renamed { number, hash });
        }
        Ok(State::Read { hash })
    }

    /// Files of these collections that no plan keeps.
    fn removed(&self, plans: &[Plan<'_>]) -> usize {
        let kept: HashSet<usize> = plans
            .iter()
            .flat_map(|plan| &plan.states)
            .filter_map(|(_, state)| match state {
                State::Kept { number, .. } | State::Renamed { number, .. } => Some(*number),
                State::Read { .. } => None,
            })
            .collect();
        let here: HashSet<(&str, &str)> = plans
            .iter()
            .flat_map(|plan| {
                plan.states
                    .iter()
                    .map(|(file, _)| (plan.collection.id.as_str(), file.path.as_str()))
            })
            .collect();
        let gone = |(number, file): &(usize, &StoredFile)| {
            !kept.contains(number)
                && !here.contains(&(file.collection.as_str(), file.file.path.as_str()))
        };
        self.files.iter().enumerate().filter(gone).count()
    }

    /// Hands over what a file gave. Gives its hash.
    fn take(&mut self, number: usize, given: &mut Given) -> String {
        let Some(file) = self.files.get(number) else { return String::new() };
        given.content.skipped = file.skipped.clone();
        given.content.warnings = file.warnings.clone();
        for id in &file.documents {
            given.content.documents.extend(self.documents.remove(id));
            given.passages.extend(self.passages.remove(id).into_iter().flatten());
        }
        file.hash.clone()
    }

    /// The same under another name.
    fn renamed(&mut self, number: usize, path: &str, given: &mut Given) -> String {
        let hash = self.take(number, given);
        let old = self.files.get(number).map(|file| file.file.path.clone()).unwrap_or_default();
        let renamed = |name: &str| match name.strip_prefix(&old) {
            Some(rest) => format!("{path}{rest}"),
            None => name.to_owned(),
        };
        let (old_name, new_name) = (file_name(&old).to_owned(), file_name(path));
        for document in &mut given.content.documents {
            document.path = renamed(&document.path);
            document.id = format!("{}/{}", document.collection, document.path);
            // A text without a title is called by its file.
            if document.title == old_name {
                new_name.clone_into(&mut document.title);
            }
        }
        for passage in &mut given.passages {
            let rename = |id: &str| match id.strip_prefix(&format!("{}/", passage.collection)) {
                Some(rest) => format!("{}/{}", passage.collection, renamed(rest)),
                None => id.to_owned(),
            };
            (passage.id, passage.document) = (rename(&passage.id), rename(&passage.document));
        }
        for warning in &mut given.content.warnings {
            path.clone_into(&mut warning.path);
        }
        hash
    }

    /// As it was.
    fn into_stored(mut self) -> StoredArchive {
        let mut passages = Vec::new();
        let mut documents = Vec::new();
        for id in &self.order {
            documents.extend(self.documents.remove(id));
            passages.extend(self.passages.remove(id).into_iter().flatten());
        }
        StoredArchive {
            archive: Archive::new(self.collections, documents, passages),
            reports: self.reports,
            files: self.files,
        }
    }
}

/// Whether nothing but its name tells the file under its new name from what it was: not its format,
/// nor what a CSV or, in TEI, its own name says of it.
fn may_be_renamed(collection: &Collection, old: &str, new: &str) -> bool {
    let extension = |path: &str| Path::new(path).extension().map(std::ffi::OsStr::to_owned);
    let kind = extension(new);
    collection.metadata.is_none()
        && kind == extension(old)
        && !kind.is_some_and(|kind| kind == "xml" || kind == "tei" || kind == "gz")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Hash of everything but a file that decides what it gives.
fn settings(collection: &Collection, common: &[String]) -> Result<String, FileError> {
    // Where the folder lies, what is left out of it and what readers are told of it changes nothing
    // in a file that is in it.
    let collection = Collection {
        path: PathBuf::new(),
        exclude: Vec::new(),
        title: String::new(),
        licence: String::new(),
        url: String::new(),
        ..collection.clone()
    };
    let catalogue = match &collection.metadata {
        Some(path) if path.is_file() => sha256_hex_file(path)?,
        _ => String::new(),
    };
    let own = [serde_json::to_string(&collection).unwrap_or_default(), catalogue];
    Ok(sha256_hex_parts(common.iter().chain(&own).map(String::as_bytes)))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// An archive's texts: read and cut, not necessarily embedded.
pub struct Texts {
    /// Documents and passages.
    pub archive: Archive,
    /// What the readers had to say, by collection.
    pub reports: Vec<(String, Report)>,
}

/// Reading alone: what `florilegium ingest` does.
pub struct Ingest {
    /// What was read.
    pub texts: Texts,
    /// What it took.
    pub built: Built,
}

impl Ingest {
    /// Reads what has changed and cuts it into passages; embeds and indexes them too, unless only the
    /// texts are wanted.
    pub fn run(pipeline: &Pipeline, texts_only: bool) -> Result<Self, BatchError> {
        let _lock = Lock::take(&pipeline.paths.work.join("lock"))?;
        let models = Models::of(pipeline)?;
        let embedder = Mutex::new(None);
        if texts_only {
            let mut built = Built::default();
            let start = Instant::now();
            let counter = || token_counter(pipeline, &models, &embedder);
            let stored = read(pipeline, &models.embedding_identity(), counter, &mut built)?;
            built.read_seconds = start.elapsed().as_secs_f64();
            let texts = Texts { archive: stored.archive.with_look_ups(), reports: stored.reports };
            return Ok(Ingest { texts, built });
        }
        let (ingested, built) = ingest(pipeline, &models, &embedder)?;
        let texts = Texts { archive: ingested.archive, reports: ingested.reports };
        Ok(Ingest { texts, built })
    }
}

/// The documents and passages of an archive as they were read last.
pub fn open_archive(pipeline: &Pipeline) -> Result<Archive, BatchError> {
    let missing = || BatchError::NotBuilt { id: pipeline.id.clone() };
    let stored =
        load_if_whole::<StoredArchive>(&archive_path(pipeline), ARCHIVE)?.ok_or_else(missing)?;
    Ok(stored.archive.with_look_ups())
}

/// Passages without a vector, as they were at one moment: embedded by several machines, what is
/// embedded together must not depend on what one of them has finished meanwhile.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Frozen {
    corpus: String,
    /// Numbers of passages in the archive.
    numbers: Vec<u64>,
}

impl Frozen {
    /// How many there are.
    pub(crate) fn passages(&self) -> usize {
        self.numbers.len()
    }
}

/// Reads what has changed, and says what is to be embedded.
pub(crate) fn freeze(pipeline: &Pipeline) -> Result<(Frozen, Built), BatchError> {
    let models = Models::of(pipeline)?;
    let embedder = Mutex::new(None);
    let mut built = Built::default();
    let start = Instant::now();
    let counter = || token_counter(pipeline, &models, &embedder);
    let stored = read(pipeline, &models.embedding_identity(), counter, &mut built)?;
    built.read_seconds = start.elapsed().as_secs_f64();
    let archive = stored.archive.with_look_ups();
    let vectors = open_vectors(pipeline, &models)?;
    let numbers = lacking(&archive, &vectors).into_iter().map(|number| number as u64).collect();
    Ok((Frozen { corpus: corpus_hash(&archive), numbers }, built))
}

/// Embeds one of `shards` shares of what was frozen. Gives how many passages it has.
pub(crate) fn embed_frozen(
    pipeline: &Pipeline,
    frozen: &Frozen,
    shard: u32,
    shards: u32,
) -> Result<usize, BatchError> {
    let models = Models::of(pipeline)?;
    let archive = open_archive(pipeline)?;
    if corpus_hash(&archive) != frozen.corpus {
        return Err(BatchError::ArchiveChanged);
    }
    let mut vectors = open_vectors(pipeline, &models)?;
    let numbers: Vec<usize> =
        frozen.numbers.iter().filter_map(|&number| usize::try_from(number).ok()).collect();
    let own: Vec<&[usize]> = numbers
        .chunks(pipeline.embedding.chunk)
        .skip(shard as usize)
        .step_by(shards.max(1) as usize)
        .collect();
    // A chunk is there as a whole or not at all.
    let is_missing = |chunk: &&&[usize]| {
        chunk.iter().any(|&number| {
            let passage = archive.passages().get(number);
            passage.is_some_and(|passage| vectors.get(&passage.text_hash).is_none())
        })
    };
    let missing: Vec<&[usize]> = own.iter().filter(is_missing).copied().collect();
    let embedder = Mutex::new(None);
    let open = || open_embedder(&embedder, &models, pipeline);
    embed_chunks(&archive, &mut vectors, &missing, open, &mut Built::default())?;
    Ok(own.iter().map(|chunk| chunk.len()).sum())
}

/// Numbers of the passages whose texts have no vector yet, each text once.
fn lacking(archive: &Archive, vectors: &Vectors) -> Vec<usize> {
    let mut seen = HashSet::new();
    let lacks = |(_, passage): &(usize, &Passage)| {
        vectors.get(&passage.text_hash).is_none() && seen.insert(passage.text_hash.clone())
    };
    archive.passages().iter().enumerate().filter(lacks).map(|(number, _)| number).collect()
}

/// Embeds the passages whose texts have no vector yet.
fn embed(
    archive: &Archive,
    vectors: &mut Vectors,
    chunk: usize,
    embedder: impl Fn() -> Result<Arc<Embedder>, BatchError>,
    built: &mut Built,
) -> Result<(), BatchError> {
    let numbers = lacking(archive, vectors);
    let chunks: Vec<&[usize]> = numbers.chunks(chunk).collect();
    embed_chunks(archive, vectors, &chunks, embedder, built)
}

/// Embeds passages, the ones of each chunk together.
fn embed_chunks(
    archive: &Archive,
    vectors: &mut Vectors,
    chunks: &[&[usize]],
    embedder: impl Fn() -> Result<Arc<Embedder>, BatchError>,
    built: &mut Built,
) -> Result<(), BatchError> {
    if chunks.is_empty() {
        return Ok(());
    }
    let embedder = embedder()?;
    let text = |number: &usize| {
        let passage = archive.passages().get(*number)?;
        Some((passage, archive.text(passage)?))
    };
    let chunks: Vec<Vec<(&Passage, &str)>> =
        chunks.iter().map(|chunk| chunk.iter().filter_map(text).collect()).collect();
    let passages: usize = chunks.iter().map(Vec::len).sum();
    let total: usize = chunks.iter().flatten().map(|(passage, _)| passage.tokens).sum();
    let bar = progress::bar(total as u64, "embedding", "tokens");
    for chunk in chunks {
        if stop::requested() {
            return Err(BatchError::StoppedEmbedding {
                done: built.embedded_passages,
                total: passages,
            });
        }
        let texts: Vec<&str> = chunk.iter().map(|(_, text)| *text).collect();
        let before = bar.position();
        let computed =
            embedder.passages(&texts, &mut |_, tokens| bar.set_position(before + tokens as u64))?;
        for ((passage, _), vector) in chunk.iter().zip(computed) {
            vectors.put(passage.text_hash.clone(), vector);
            built.embedded_tokens += passage.tokens;
        }
        built.embedded_passages += chunk.len();
        bar.set_position(built.embedded_tokens as u64);
        vectors.save()?;
    }
    bar.finish_and_clear();
    Ok(())
}

fn rows<'a>(archive: &'a Archive, vectors: &'a Vectors) -> Result<Vec<Row<'a>>, BatchError> {
    archive
        .passages()
        .iter()
        .enumerate()
        .map(|(number, passage)| {
            let missing = || BatchError::NotBuilt { id: passage.id.clone() };
            Ok(Row {
                passage: number,
                collection: &passage.collection,
                language: &passage.language,
                vector: vectors.get(&passage.text_hash).ok_or_else(missing)?,
                text: archive.text(passage).ok_or_else(missing)?,
            })
        })
        .collect()
}

fn corpus_hash(archive: &Archive) -> String {
    let passages = archive.passages().iter().flat_map(|passage| {
        [&passage.id, &passage.text_hash, &passage.collection, &passage.language]
    });
    sha256_hex_parts(passages.map(|part| part.as_bytes()))
}

fn archive_path(pipeline: &Pipeline) -> PathBuf {
    pipeline.paths.work.join("archive")
}

#[cfg(test)]
mod tests;
