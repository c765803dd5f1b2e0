//! A library: an archive that has been read, embedded and indexed, with the models that search it and
//! answer from it. The batch run, the command line and the live server all ask the same library.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use florilegium_corpus::{Archive, Passage, Report, Role};
use florilegium_embed::Embedder;
use florilegium_files::sha256_hex;
use florilegium_index::{Filter, Hit, Index, Origin, Question, dot};
use florilegium_llm::{Deadline, Engine, LlmError};
use florilegium_synthesis::answer::{Answer, Excerpt};
use florilegium_synthesis::{Asked, Candidate, Likeness, Prompts, decide, excerpts, render};
use unicode_normalization::UnicodeNormalization;

use crate::clock::today;
use crate::content::Content;
use crate::decisions::{Decisions, Remembering};
use crate::engine::open_engine;
use crate::error::BatchError;
use crate::ingest::{Built, Ingested, ingest, open_ingested};
use crate::models::{Models, identity, open_embedder};
use crate::pipeline::{Languages, Pipeline};
use crate::store::{Inputs, InputsRecord, Store, Stored};
use crate::vectors::Vectors;

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

/// A passage found, and the others that say exactly the same.
#[derive(Debug, Clone)]
pub struct Found<'a> {
    /// The passage.
    pub passage: &'a Passage,
    /// Its scores.
    pub hit: Hit,
    /// Passages elsewhere that say the same, or nearly (editions), which are not listed again.
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

/// A question and everything that its answer depends on.
#[derive(Debug, Clone)]
pub struct Looked<'a> {
    /// Hash of the inputs: the answer is kept under it.
    pub key: String,
    /// What the answer depends on.
    pub inputs: InputsRecord,
    /// The question, normalised.
    question: String,
    /// Its vector.
    asked: Vec<f32>,
    /// The passages retrieved for it.
    candidates: Vec<Candidate<'a>>,
}

impl Looked<'_> {
    /// Tokens of the passages retrieved, as the embedding model counts them.
    pub fn passage_tokens(&self) -> usize {
        self.candidates.iter().map(|candidate| candidate.passage.tokens).sum()
    }
}

impl Library {
    /// Reads, embeds and indexes what has changed, and opens the result.
    pub fn build(pipeline: Pipeline) -> Result<(Self, Built), BatchError> {
        let models = Models::of(&pipeline)?;
        let embedder = Mutex::new(None);
        let (ingested, built) = ingest(&pipeline, &models, &embedder)?;
        let folder = pipeline.paths.work.join("decisions");
        let decisions = Decisions::open(&folder, &identity(&models.language))?;
        let library = Self::of(pipeline, models, embedder, ingested)?;
        Ok((Library { decisions: Some(Mutex::new(decisions)), ..library }, built))
    }

    /// Opens what an earlier run has built; reads no source and computes nothing.
    pub fn open(pipeline: Pipeline) -> Result<Self, BatchError> {
        let models = Models::of(&pipeline)?;
        let ingested = open_ingested(&pipeline, &models)?;
        Self::of(pipeline, models, Mutex::new(None), ingested)
    }

    /// The same, to answer from: decisions that were taken before are known, and new ones kept.
    pub fn open_to_answer(pipeline: Pipeline) -> Result<Self, BatchError> {
        let library = Self::open(pipeline)?;
        let folder = library.pipeline.paths.work.join("decisions");
        let decisions = Decisions::open(&folder, &library.language_identity())?;
        Ok(Library { decisions: Some(Mutex::new(decisions)), ..library })
    }

    fn of(
        pipeline: Pipeline,
        models: Models,
        embedder: Mutex<Option<Arc<Embedder>>>,
        ingested: Ingested,
    ) -> Result<Self, BatchError> {
        Ok(Library {
            decisions: None,
            store: Store::new(&pipeline.paths.work),
            prompts: Prompts::built_in()?,
            archive: ingested.archive,
            reports: ingested.reports,
            index: ingested.index,
            models,
            vectors: Mutex::new(ingested.vectors),
            embedder,
            engine: Mutex::new(None),
            pipeline,
        })
    }

    /// Hash of the passages.
    pub fn corpus(&self) -> &str {
        &self.index.origin().corpus
    }

    /// What the index was made from.
    pub fn origin(&self) -> &Origin {
        self.index.origin()
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

    /// The `k` passages that match `question` best among those the filter lets through. Passages that
    /// say the same, or nearly, count once; of one document there are at most as many as the pipeline
    /// allows.
    pub fn search(
        &self,
        question: &str,
        filter: &Filter,
        k: usize,
    ) -> Result<Vec<Found<'_>>, BatchError> {
        let vector = self.question_vector(question)?;
        self.search_near(Question { vector: &vector, text: question }, filter, k)
    }

    fn search_near(
        &self,
        question: Question<'_>,
        filter: &Filter,
        k: usize,
    ) -> Result<Vec<Found<'_>>, BatchError> {
        let ranking = self.pipeline.retrieval.ranking();
        let mut wanted = k.saturating_mul(2).saturating_add(8);
        loop {
            let hits = self.index.search(question, filter, wanted, &ranking)?;
            let exhausted = hits.len() < wanted;
            let found = self.distinct(&hits, k);
            if found.len() >= k || exhausted {
                return Ok(found);
            }
            wanted = wanted.saturating_mul(4);
        }
    }

    /// The first `k` passages of `hits` that do not say what one before them says.
    fn distinct(&self, hits: &[Hit], k: usize) -> Vec<Found<'_>> {
        let mut found: Vec<Found<'_>> = Vec::new();
        let mut contents: Vec<Content> = Vec::new();
        for hit in hits {
            let Some(passage) = self.archive.passages().get(hit.passage) else { continue };
            let content = Content::of(self.archive.text(passage).unwrap_or_default());
            if let Some(at) = contents.iter().position(|earlier| earlier.is_nearly(&content)) {
                if let Some(same) = found.get_mut(at) {
                    same.editions.push(passage);
                }
                continue;
            }
            let here = found.iter().filter(|f| f.passage.document == passage.document).count();
            let most = self.pipeline.retrieval.per_document.unwrap_or(usize::MAX);
            // Those after the last that is wanted are looked at for its editions only.
            if here < most && found.len() < k {
                contents.push(content);
                found.push(Found { passage, hit: *hit, editions: Vec::new() });
            }
        }
        found
    }

    /// Passages found, as they are shown.
    pub fn excerpts(&self, found: &[Found<'_>]) -> Result<Vec<Excerpt>, BatchError> {
        let ids: Vec<String> = found.iter().map(|found| found.passage.id.clone()).collect();
        Ok(excerpts(&ids, &self.archive)?)
    }

    /// Everything that the answer to a question depends on, without answering it. `collections`
    /// restricts where the answer may come from; collections that do not feed answers are never
    /// quoted.
    pub fn look(
        &self,
        question: &str,
        language: &str,
        collections: &[String],
    ) -> Result<Looked<'_>, BatchError> {
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
        let searched = Question { vector: &asked, text: &question };
        let found = self.search_near(searched, &filter, settings.passages)?;
        let candidates: Vec<Candidate<'_>> = found
            .iter()
            .filter_map(|found| {
                let document = self.archive.document(&found.passage.document)?;
                Some(Candidate {
                    passage: found.passage,
                    title: &document.title,
                    text: document.slice(&found.passage.range)?,
                    similarity: found.hit.dense,
                })
            })
            .collect();
        let embedding = self.embedding_identity();
        let model = self.language_identity();
        let inputs = Inputs {
            question: &question,
            language,
            candidates: &candidates,
            embedding: &embedding,
            model: &model,
            prompts: self.prompts.hash(),
            settings,
        }
        .record();
        Ok(Looked { key: inputs.key(), question, asked, candidates, inputs })
    }

    /// Answers a question: from the store when these very inputs were answered before, else by
    /// asking the model.
    pub fn ask(
        &self,
        question: &str,
        language: &str,
        collections: &[String],
    ) -> Result<Answered, BatchError> {
        let Looked { key, question, asked, candidates, inputs } =
            self.look(question, language, collections)?;
        let settings = &self.pipeline.synthesis;
        let model = self.language_identity();
        if let Some(stored) = self.store.get(&key)? {
            let answer = render(&stored.synthesis, &self.archive)?;
            return Ok(Answered { stored, answer, fresh: false });
        }
        let allowed = Duration::from_secs(self.pipeline.language_model.deadline_seconds);
        let compare = |texts: &[&str], above: &str| {
            self.compare(&question, &asked, texts, above).map_err(|e| e.to_string())
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
                remembering = Remembering {
                    identity: &model,
                    open: &open,
                    decisions,
                    reproducible: self.pipeline.language_model.reproducible,
                    begun: OnceLock::new(),
                };
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
            &compare,
            settings,
            deadline,
        );
        self.save_decisions()?;
        let synthesis = synthesis?;
        let answer = render(&synthesis, &self.archive)?;
        let stored = Stored { key, computed_on: today(), synthesis, inputs };
        self.store.put(&stored)?;
        Ok(Answered { stored, answer, fresh: true })
    }

    /// How like the question each of some texts is that stand under the headings `above`.
    fn compare(
        &self,
        question: &str,
        asked: &[f32],
        texts: &[&str],
        above: &str,
    ) -> Result<Vec<Likeness>, BatchError> {
        let vectors = self.embedder()?.passages(texts, &mut |_, _| {})?;
        let under: Vec<String> = texts.iter().map(|text| format!("{above} {text}")).collect();
        let under: Vec<&str> = under.iter().map(String::as_str).collect();
        let coverages = self.index.coverage(question, &under)?;
        let likeness = |(vector, coverage): (&Vec<f32>, f32)| Likeness {
            similarity: dot(vector, asked),
            coverage,
        };
        Ok(vectors.iter().zip(coverages).map(likeness).collect())
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

    /// The vector of a curated question, kept, so that a run with nothing new embeds nothing.
    pub fn remember(&self, question: &str) -> Result<Vec<f32>, BatchError> {
        let question = normalise(question);
        let vector = self.question_vector(&question)?;
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if vectors.get(&question_key(&question)).is_none() {
            vectors.put(question_key(&question), vector.clone());
        }
        Ok(vector)
    }

    /// Puts everything that was added to vectors and decisions in its place.
    pub fn fold(&self) -> Result<(), BatchError> {
        if let Some(decisions) = &self.decisions {
            decisions.lock().unwrap_or_else(PoisonError::into_inner).fold()?;
        }
        Ok(self.vectors.lock().unwrap_or_else(PoisonError::into_inner).fold()?)
    }

    /// Writes the vectors of the questions that were remembered.
    pub fn save_vectors(&self) -> Result<(), BatchError> {
        Ok(self.vectors.lock().unwrap_or_else(PoisonError::into_inner).save()?)
    }

    /// The vector of a question, from those kept or computed now.
    pub(crate) fn question_vector(&self, question: &str) -> Result<Vec<f32>, BatchError> {
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
        let opened = open_engine(&self.pipeline, &self.models)?;
        *engine = Some(opened.clone());
        Ok(opened)
    }
}

/// The key under which the vector of a question is kept.
pub(crate) fn question_key(question: &str) -> String {
    format!("query:{}", sha256_hex(question.as_bytes()))
}

/// A question as it is kept and asked: canonical composition, white space collapsed.
pub fn normalise(question: &str) -> String {
    let composed: String = question.nfc().collect();
    composed.split_whitespace().collect::<Vec<_>>().join(" ")
}
