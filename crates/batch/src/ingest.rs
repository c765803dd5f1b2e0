//! From sources to an index: reads, cuts, embeds and indexes what has changed, and nothing else.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use florilegium_corpus::{Archive, Passage, Report, read_collection, segment};
use florilegium_embed::Embedder;
use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex_file, sha256_hex_parts};
use florilegium_index::{Index, Origin, Row};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::BatchError;
use crate::models::{Models, open_embedder};
use crate::pipeline::Pipeline;
use crate::progress;
use crate::store::load_if_whole;
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
    let fingerprint = fingerprint(pipeline, &models.embedding_identity())?;
    let path = archive_path(pipeline);
    let stored = match load_if_whole::<StoredArchive>(&path, ARCHIVE)?
        .filter(|stored| stored.fingerprint == fingerprint)
    {
        Some(stored) => stored,
        None => {
            built.read = true;
            let embedder = open_embedder(embedder, models, pipeline)?;
            let (archive, reports) = read(pipeline, &embedder)?;
            let stored = StoredArchive { fingerprint, archive, reports };
            record::write(&path, ARCHIVE, &stored)?;
            stored
        }
    };
    built.read_seconds = start.elapsed().as_secs_f64();
    let archive = stored.archive.with_look_ups();

    let start = Instant::now();
    let mut vectors = open_vectors(pipeline, models)?;
    embed(&archive, &mut vectors, || open_embedder(embedder, models, pipeline), &mut built)?;
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

fn open_vectors(pipeline: &Pipeline, models: &Models) -> Result<Vectors, FileError> {
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
                text: archive.text(passage).ok_or_else(missing)?,
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
