//! A library: an archive that has been read, embedded and indexed, with the models that search it and
//! answer from it. The batch run, the command line and the live server all ask the same library.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use florilegium_corpus::{Archive, Passage, Report, Role, read_collection, segment};
use florilegium_embed::{EmbedConfig, Embedder};
use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex, sha256_hex_file, sha256_hex_parts};
use florilegium_index::{Filter, Index, Origin, Row};
use florilegium_llm::local::{Local, LocalConfig};
use florilegium_llm::{Deadline, Engine, LlmError};
use florilegium_models::{Model, ModelList, Status};
use florilegium_synthesis::answer::{Answer, Excerpt};
use florilegium_synthesis::{Asked, Candidate, Prompts, decide, excerpts, render};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::decisions::{Decisions, Remembering};
use crate::error::BatchError;
use crate::pipeline::{Languages, Pipeline};
use crate::progress;
use crate::store::{Inputs, Store, Stored, load_if_whole};
use crate::vectors::Vectors;

const ARCHIVE: Format = Format { magic: *b"FLORARCH", version: 1 };
/// Raised when the readers or the segmentation change what comes out.
const READER: &str = "reader/1";
/// Numbers in a vector.
const DIMENSION: usize = 384;
/// Vectors are saved each time this many passages were embedded.
const SAVE_EVERY: usize = 2048;

#[derive(Serialize, Deserialize)]
struct StoredArchive {
    fingerprint: String,
    archive: Archive,
    reports: Vec<(String, Report)>,
}

/// An archive that can be searched and asked.
pub struct Library {
    /// The pipeline file it comes from.
    pub pipeline: Pipeline,
    /// Documents and passages.
    pub archive: Archive,
    /// What the readers had to say, by collection.
    pub reports: Vec<(String, Report)>,
    /// Where answers are kept.
    pub store: Store,
    index: Index,
    prompts: Prompts,
    models: Models,
    vectors: Mutex<Vectors>,
    /// Decisions taken before; a batch run keeps them, the live server does not.
    decisions: Option<Mutex<Decisions>>,
    embedder: Mutex<Option<Arc<Embedder>>>,
    engine: Mutex<Option<Arc<dyn Engine>>>,
}

/// What building a library did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Built {
    /// Whether the sources were read again, because something in them had changed.
    pub read: bool,
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

/// A passage found, and the others that say exactly the same.
#[derive(Debug, Clone)]
pub struct Found<'a> {
    /// The passage.
    pub passage: &'a Passage,
    /// Cosine of question and passage.
    pub score: f32,
    /// Identical passages elsewhere (editions), which are not listed again.
    pub editions: Vec<&'a Passage>,
}

/// An answer to a question, from the store or made now.
#[derive(Debug, Clone)]
pub struct Answered {
    /// As it is kept.
    pub stored: Stored,
    /// As it is shown.
    pub answer: Answer,
    /// Whether the model was asked for it just now.
    pub fresh: bool,
}

/// Identities and files of the models, from the model list.
struct Models {
    weights: Model,
    tokenizer: Model,
    language: Model,
    folder: PathBuf,
}

impl Library {
    /// Reads, embeds and indexes what has changed, and opens the result.
    pub fn build(pipeline: Pipeline) -> Result<(Self, Built), BatchError> {
        let models = Models::of(&pipeline)?;
        let mut built = Built::default();
        let embedder = Mutex::new(None);
        let start = Instant::now();
        let fingerprint = fingerprint(&pipeline, &models.embedding_identity())?;
        let path = archive_path(&pipeline);
        let stored = match load_if_whole::<StoredArchive>(&path, ARCHIVE)?
            .filter(|stored| stored.fingerprint == fingerprint)
        {
            Some(stored) => stored,
            None => {
                built.read = true;
                let embedder = open_embedder(&embedder, &models, &pipeline)?;
                let (archive, reports) = read(&pipeline, &embedder)?;
                let stored = StoredArchive { fingerprint, archive, reports };
                record::write(&path, ARCHIVE, &stored)?;
                stored
            }
        };
        built.read_seconds = start.elapsed().as_secs_f64();
        let archive = stored.archive.with_look_ups();

        let embedding = models.embedding_identity();
        let mut vectors = Vectors::open(&pipeline.paths.work.join("vectors"), &embedding)?;
        let start = Instant::now();
        embed(&archive, &mut vectors, || open_embedder(&embedder, &models, &pipeline), &mut built)?;
        built.embed_seconds = start.elapsed().as_secs_f64();

        let origin =
            Origin { corpus: corpus_hash(&archive), model: embedding, dimension: DIMENSION };
        let folder = pipeline.paths.work.join("index");
        let index = match Index::open(&folder, &origin) {
            Ok(index) => index,
            Err(_) => {
                // Missing, damaged or made from something else: made anew from what is at hand.
                built.indexed = true;
                let rows = rows(&archive, &vectors)?;
                Index::build(&folder, origin, &rows)?
            }
        };
        let language = identity(&models.language);
        let decisions = Decisions::open(&pipeline.paths.work.join("decisions"), &language)?;
        let library = Library {
            decisions: Some(Mutex::new(decisions)),
            store: Store::new(&pipeline.paths.work),
            prompts: Prompts::built_in()?,
            archive,
            reports: stored.reports,
            index,
            models,
            vectors: Mutex::new(vectors),
            embedder,
            engine: Mutex::new(None),
            pipeline,
        };
        Ok((library, built))
    }

    /// Opens what an earlier run has built; reads no source and computes nothing.
    pub fn open(pipeline: Pipeline) -> Result<Self, BatchError> {
        let models = Models::of(&pipeline)?;
        let missing = || BatchError::NotBuilt { id: pipeline.id.clone() };
        let stored = load_if_whole::<StoredArchive>(&archive_path(&pipeline), ARCHIVE)?
            .ok_or_else(missing)?;
        let archive = stored.archive.with_look_ups();
        let identity = models.embedding_identity();
        let origin =
            Origin { corpus: corpus_hash(&archive), model: identity.clone(), dimension: DIMENSION };
        let index = Index::open(&pipeline.paths.work.join("index"), &origin)?;
        Ok(Library {
            decisions: None,
            store: Store::new(&pipeline.paths.work),
            prompts: Prompts::built_in()?,
            archive,
            reports: stored.reports,
            index,
            models,
            vectors: Mutex::new(Vectors::open(&pipeline.paths.work.join("vectors"), &identity)?),
            embedder: Mutex::new(None),
            engine: Mutex::new(None),
            pipeline,
        })
    }

    /// Hash of the passages.
    pub fn corpus(&self) -> &str {
        &self.index.origin().corpus
    }

    /// Identity of the embedding model.
    pub fn embedding_identity(&self) -> String {
        self.models.embedding_identity()
    }

    /// Identity of the language model.
    pub fn language_identity(&self) -> String {
        identity(&self.models.language)
    }

    /// The languages that passages are in.
    pub fn languages(&self) -> Vec<String> {
        let mut languages: Vec<String> =
            self.archive.passages().iter().map(|passage| passage.language.clone()).collect();
        languages.sort_unstable();
        languages.dedup();
        languages
    }

    /// The `k` passages nearest to `question` that the filter lets through. Passages that say
    /// exactly the same count once.
    pub fn search(
        &self,
        question: &str,
        filter: &Filter,
        k: usize,
    ) -> Result<Vec<Found<'_>>, BatchError> {
        self.search_near(&self.question_vector(question)?, filter, k)
    }

    fn search_near(
        &self,
        vector: &[f32],
        filter: &Filter,
        k: usize,
    ) -> Result<Vec<Found<'_>>, BatchError> {
        let mut wanted = k.saturating_mul(2).saturating_add(8);
        loop {
            let hits = self.index.search(vector, filter, wanted)?;
            let exhausted = hits.len() < wanted;
            let mut found: Vec<Found<'_>> = Vec::new();
            for hit in hits {
                let Some(passage) = self.archive.passages().get(hit.passage) else { continue };
                match found.iter_mut().find(|f| f.passage.text_hash == passage.text_hash) {
                    Some(same) => same.editions.push(passage),
                    None => found.push(Found { passage, score: hit.score, editions: Vec::new() }),
                }
            }
            if found.len() >= k || exhausted {
                found.truncate(k);
                return Ok(found);
            }
            wanted = wanted.saturating_mul(4);
        }
    }

    /// Passages found, as they are shown.
    pub fn excerpts(&self, found: &[Found<'_>]) -> Result<Vec<Excerpt>, BatchError> {
        let ids: Vec<String> = found.iter().map(|found| found.passage.id.clone()).collect();
        Ok(excerpts(&ids, &self.archive)?)
    }

    /// Answers a question: from the store when these very inputs were answered before, else by
    /// asking the model. `collections` restricts where the answer may come from; collections that
    /// do not feed answers are never quoted.
    pub fn ask(
        &self,
        question: &str,
        language: &str,
        collections: &[String],
    ) -> Result<Answered, BatchError> {
        florilegium_questions::check_question(question)?;
        let question = normalise(question);
        let feeding = self.pipeline.synthesis_collections();
        let allowed = |id: &String| collections.is_empty() || collections.contains(id);
        let filter = Filter {
            collections: feeding.into_iter().filter(allowed).collect(),
            languages: self.answer_languages(language),
        };
        if filter.collections.is_empty() {
            return Err(BatchError::NothingFeeds { collections: collections.to_vec() });
        }
        let settings = &self.pipeline.synthesis;
        let asked = self.question_vector(&question)?;
        let found = self.search_near(&asked, &filter, settings.passages)?;
        let candidates: Vec<Candidate<'_>> = found
            .iter()
            .filter_map(|found| {
                let document = self.archive.document(&found.passage.document)?;
                Some(Candidate {
                    passage: found.passage,
                    title: &document.title,
                    text: document.slice(&found.passage.range)?,
                    similarity: found.score,
                })
            })
            .collect();
        let embedding = self.embedding_identity();
        let model = self.language_identity();
        let key = Inputs {
            question: &question,
            language,
            candidates: &candidates,
            embedding: &embedding,
            model: &model,
            prompts: self.prompts.hash(),
            settings,
        }
        .key();
        if let Some(stored) = self.store.get(&key)? {
            let answer = render(&stored.synthesis, &self.archive)?;
            return Ok(Answered { stored, answer, fresh: false });
        }
        let allowed = Duration::from_secs(self.pipeline.language_model.deadline_seconds);
        let similarity = |texts: &[&str]| {
            let embedder = self.embedder().map_err(|e| e.to_string())?;
            let vectors = embedder.passages(texts, &mut |_, _| {}).map_err(|e| e.to_string())?;
            Ok(vectors.iter().map(|vector| dot(vector, &asked)).collect())
        };
        let open = || match self.engine() {
            Ok(engine) => Ok(engine),
            Err(BatchError::Llm(error)) => Err(error),
            Err(BatchError::NoModel { path, .. }) => {
                Err(LlmError::Missing(path.display().to_string()))
            }
            Err(error) => Err(LlmError::Model { model: model.clone(), problem: error.to_string() }),
        };
        let (remembering, direct);
        let engine: &dyn Engine = match &self.decisions {
            Some(decisions) => {
                remembering = Remembering { identity: &model, open: &open, decisions };
                &remembering
            }
            None => {
                direct = open()?;
                direct.as_ref()
            }
        };
        let asked = Asked { text: &question, language };
        let deadline = Deadline::after(allowed);
        let synthesis = decide(
            asked,
            &candidates,
            self.corpus(),
            engine,
            &self.prompts,
            &similarity,
            settings,
            deadline,
        );
        self.save_decisions()?;
        let synthesis = synthesis?;
        let answer = render(&synthesis, &self.archive)?;
        let stored = Stored { key, computed_on: today(), synthesis };
        self.store.put(&stored)?;
        Ok(Answered { stored, answer, fresh: true })
    }

    /// The languages that may feed the answer to a question in `language`.
    fn answer_languages(&self, language: &str) -> Vec<String> {
        let feeds = |passage: &Passage| {
            passage.language == language
                && self
                    .archive
                    .collection(&passage.collection)
                    .is_some_and(|collection| collection.role == Role::Synthesis)
        };
        match self.pipeline.retrieval.languages {
            Languages::Question if self.archive.passages().iter().any(feeds) => {
                vec![language.to_owned()]
            }
            _ => Vec::new(),
        }
    }

    /// Writes the decisions taken since the last time.
    fn save_decisions(&self) -> Result<(), BatchError> {
        if let Some(decisions) = &self.decisions {
            decisions.lock().unwrap_or_else(PoisonError::into_inner).save()?;
        }
        Ok(())
    }

    /// Embeds a curated question and keeps its vector, so that a run with nothing new embeds nothing.
    pub fn remember(&self, question: &str) -> Result<(), BatchError> {
        let question = normalise(question);
        let vector = self.question_vector(&question)?;
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if vectors.get(&question_key(&question)).is_none() {
            vectors.put(question_key(&question), vector);
        }
        Ok(())
    }

    /// Writes the vectors of the questions that were remembered.
    pub fn save_vectors(&self) -> Result<(), BatchError> {
        Ok(self.vectors.lock().unwrap_or_else(PoisonError::into_inner).save()?)
    }

    /// The vector of a question, from those kept or computed now.
    fn question_vector(&self, question: &str) -> Result<Vec<f32>, BatchError> {
        let known = {
            let vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
            vectors.get(&question_key(question)).map(<[f32]>::to_vec)
        };
        match known {
            Some(vector) => Ok(vector),
            None => Ok(self.embedder()?.question(question)?),
        }
    }

    /// The embedding engine, opened at first use.
    pub fn embedder(&self) -> Result<Arc<Embedder>, BatchError> {
        open_embedder(&self.embedder, &self.models, &self.pipeline)
    }

    /// The language model, opened at first use.
    pub fn engine(&self) -> Result<Arc<dyn Engine>, BatchError> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = engine.as_ref() {
            return Ok(engine.clone());
        }
        let settings = &self.pipeline.language_model;
        let opened: Arc<dyn Engine> = Arc::new(Local::open(LocalConfig {
            path: self.models.file(&self.models.language)?,
            identity: self.language_identity(),
            threads: settings.threads,
            context: settings.context,
            batch: settings.batch,
        })?);
        *engine = Some(opened.clone());
        Ok(opened)
    }
}

impl Models {
    fn of(pipeline: &Pipeline) -> Result<Self, BatchError> {
        let list = ModelList::load(&pipeline.paths.model_list)?;
        Ok(Models {
            weights: list.get(&pipeline.embedding.model)?.clone(),
            tokenizer: list.get(&pipeline.embedding.tokenizer)?.clone(),
            language: list.get(&pipeline.language_model.model)?.clone(),
            folder: pipeline.paths.models.clone(),
        })
    }

    /// Weights, tokenizer and prefixes: what a vector depends on.
    fn embedding_identity(&self) -> String {
        format!("{} {} query:/passage:", identity(&self.weights), identity(&self.tokenizer))
    }

    /// The file of a model that has been fetched.
    fn file(&self, model: &Model) -> Result<PathBuf, BatchError> {
        match model.status(&self.folder) {
            Status::Present => Ok(model.path(&self.folder)),
            _ => Err(BatchError::NoModel { id: model.id.clone(), path: model.path(&self.folder) }),
        }
    }
}

fn identity(model: &Model) -> String {
    format!("{}@{}", model.id, model.sha256.get(..16).unwrap_or(&model.sha256))
}

fn open_embedder(
    slot: &Mutex<Option<Arc<Embedder>>>,
    models: &Models,
    pipeline: &Pipeline,
) -> Result<Arc<Embedder>, BatchError> {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(embedder) = slot.as_ref() {
        return Ok(embedder.clone());
    }
    let mut config =
        EmbedConfig::new(models.file(&models.weights)?, models.file(&models.tokenizer)?);
    config.threads = pipeline.embedding.threads;
    let opened = Arc::new(Embedder::open(&config)?);
    *slot = Some(opened.clone());
    Ok(opened)
}

/// Reads all collections and cuts them into passages.
fn read(
    pipeline: &Pipeline,
    embedder: &Embedder,
) -> Result<(Archive, Vec<(String, Report)>), BatchError> {
    let mut documents = Vec::new();
    let mut passages = Vec::new();
    let mut reports = Vec::new();
    let mut languages: Vec<String> =
        pipeline.collections.iter().map(|c| c.language.clone()).collect();
    languages.sort_unstable();
    languages.dedup();
    let bar = progress::bar(pipeline.collections.len() as u64, "reading", "collections");
    for collection in &pipeline.collections {
        let (read, report) = read_collection(collection)?;
        let count = |text: &str| embedder.count_tokens(text);
        let cut: Vec<Vec<Passage>> = read
            .par_iter()
            .map(|document| segment(document, &languages, &count, pipeline.passages.tokens))
            .collect();
        passages.extend(cut.into_iter().flatten());
        documents.extend(read);
        for warning in &report.warnings {
            tracing::warn!("{}: {}: {}", collection.id, warning.path, warning.message);
        }
        reports.push((collection.id.clone(), report));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((Archive::new(pipeline.collections.clone(), documents, passages), reports))
}

/// Embeds the passages whose texts have no vector yet.
fn embed(
    archive: &Archive,
    vectors: &mut Vectors,
    embedder: impl Fn() -> Result<Arc<Embedder>, BatchError>,
    built: &mut Built,
) -> Result<(), BatchError> {
    let mut seen = HashSet::new();
    let new: Vec<(&Passage, &str)> = archive
        .passages()
        .iter()
        .filter(|passage| vectors.get(&passage.text_hash).is_none())
        .filter(|passage| seen.insert(passage.text_hash.as_str()))
        .filter_map(|passage| Some((passage, archive.text(passage)?)))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let embedder = embedder()?;
    let total: usize = new.iter().map(|(passage, _)| passage.tokens).sum();
    let bar = progress::bar(total as u64, "embedding", "tokens");
    for chunk in new.chunks(SAVE_EVERY) {
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
            })
        })
        .collect()
}

/// Hash of everything that decides what the archive holds: the bytes of the sources, how they are
/// described, and how they are read and cut.
fn fingerprint(pipeline: &Pipeline, embedding: &str) -> Result<String, BatchError> {
    let mut parts: Vec<String> =
        vec![READER.into(), embedding.into(), pipeline.passages.tokens.to_string()];
    for collection in &pipeline.collections {
        parts.push(serde_json::to_string(collection).unwrap_or_default());
        let mut files: Vec<PathBuf> = walkdir::WalkDir::new(&collection.path)
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file())
            .map(walkdir::DirEntry::into_path)
            .collect();
        files.sort_unstable();
        let hashes: Vec<String> =
            files.par_iter().map(|file| sha256_hex_file(file)).collect::<Result<_, FileError>>()?;
        for (file, hash) in files.iter().zip(hashes) {
            parts.push(file.to_string_lossy().into_owned());
            parts.push(hash);
        }
    }
    Ok(sha256_hex_parts(parts.iter().map(String::as_bytes)))
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

fn question_key(question: &str) -> String {
    format!("query:{}", sha256_hex(question.as_bytes()))
}

/// A question as it is kept and asked: canonical composition, white space collapsed.
pub fn normalise(question: &str) -> String {
    let composed: String = question.nfc().collect();
    composed.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// Today, as `2026-11-30` (UTC).
fn today() -> String {
    let mut text = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    text.truncate(10);
    text
}
