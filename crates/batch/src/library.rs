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
use florilegium_synthesis::{
    Asked, Calibration, Candidate, Likeness, Means, Mode, PromptError, Prompts, Settings,
    StageFailed, Synthesis, excerpts, render, synthesize,
};
use unicode_normalization::UnicodeNormalization;

use crate::clock::today;
use crate::content::Content;
use crate::decisions::{Decisions, Lazy, Remembering, decide_ahead};
use crate::engine::{configured_mode, open_degraded, open_engine, open_primary};
use crate::error::BatchError;
use crate::ingest::{Built, Ingested, ingest, open_ingested};
use crate::models::{Models, degraded, identity, open_embedder};
use crate::pipeline::{LanguageModel, Languages, Pipeline};
use crate::progress;
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
    /// Settings of the full and of the degraded mode, calibrated where the pipeline says so.
    settings: (Settings, Settings),
    models: Models,
    vectors: Mutex<Vectors>,
    /// Decisions taken before; a batch run keeps them, the live server does not.
    decisions: Option<(Mutex<Decisions>, Mutex<Decisions>)>,
    embedder: Mutex<Option<Arc<Embedder>>>,
    /// The engine that answers as a rule, and its mode.
    engine: Mutex<Option<Opened>>,
    /// The engine of the degraded mode, when that is another.
    degraded: Mutex<Option<Arc<dyn Engine>>>,
}

type Opened = (Arc<dyn Engine>, Mode);

/// A question and everything that its answer depends on.
#[derive(Debug, Clone)]
pub struct Looked<'a> {
    /// Hash of the inputs: the answer is kept under it.
    pub key: String,
    /// What the answer depends on, in the mode that the pipeline is meant to work in.
    pub inputs: InputsRecord,
    /// The question, normalised.
    question: String,
    /// Its language.
    language: String,
    /// Its vector.
    vector: Vec<f32>,
    /// The passages retrieved for it.
    candidates: Vec<Candidate<'a>>,
}

impl Looked<'_> {
    /// Tokens of the passages retrieved, as the embedding model counts them.
    pub fn passage_tokens(&self) -> usize {
        self.candidates.iter().map(|candidate| candidate.passage.tokens).sum()
    }
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

impl Library {
    /// Reads, embeds and indexes what has changed, and opens the result.
    pub fn build(pipeline: Pipeline) -> Result<(Self, Built), BatchError> {
        let models = Models::of(&pipeline)?;
        let embedder = Mutex::new(None);
        let (ingested, built) = ingest(&pipeline, &models, &embedder)?;
        let library = Self::of(pipeline, models, embedder, ingested)?;
        Ok((library.with_decisions()?, built))
    }

    /// Opens what an earlier run has built; reads no source and computes nothing.
    pub fn open(pipeline: Pipeline) -> Result<Self, BatchError> {
        let models = Models::of(&pipeline)?;
        let ingested = open_ingested(&pipeline, &models)?;
        Self::of(pipeline, models, Mutex::new(None), ingested)
    }

    /// The same, to answer from: decisions that were taken before are known, and new ones kept.
    pub fn open_to_answer(pipeline: Pipeline) -> Result<Self, BatchError> {
        Self::open(pipeline)?.with_decisions()
    }

    fn with_decisions(self) -> Result<Self, BatchError> {
        let folder = self.pipeline.paths.work.join("decisions");
        let kept = |model| Ok::<_, BatchError>(Mutex::new(Decisions::open(&folder, model)?));
        let models = &self.models;
        let decisions = (kept(&identity(&models.language))?, kept(&identity(&models.degraded))?);
        Ok(Library { decisions: Some(decisions), ..self })
    }

    fn of(
        pipeline: Pipeline,
        models: Models,
        embedder: Mutex<Option<Arc<Embedder>>>,
        ingested: Ingested,
    ) -> Result<Self, BatchError> {
        let prompts = prompts(&pipeline)?;
        let calibrated = |model: &LanguageModel, identity: String| {
            calibrated(&pipeline.synthesis, model, &identity, prompts.hash())
        };
        let settings = (
            calibrated(&pipeline.language_model, identity(&models.language))?,
            calibrated(degraded(&pipeline), identity(&models.degraded))?,
        );
        Ok(Library {
            decisions: None,
            store: Store::new(&pipeline.paths.work),
            prompts,
            settings,
            archive: ingested.archive,
            reports: ingested.reports,
            index: ingested.index,
            models,
            vectors: Mutex::new(ingested.vectors),
            embedder,
            engine: Mutex::new(None),
            degraded: Mutex::new(None),
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

    /// The largest share of the question's words, weighed by their rarity, that stand in one of the
    /// passages found, or above it.
    pub fn covered(&self, question: &str, found: &[Found<'_>]) -> Result<f32, BatchError> {
        let texts: Vec<String> = found
            .iter()
            .map(|found| {
                let text = self.archive.text(found.passage).unwrap_or_default();
                format!("{} {text}", found.passage.headings.join(" "))
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let shares = self.index.coverage(question, &texts)?;
        Ok(shares.into_iter().fold(0.0, f32::max))
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
        let prepared = self.look(question, language, collections)?;
        let configured = configured_mode(&self.pipeline);
        if let Some(answered) = self.stored(&prepared, configured)? {
            return Ok(answered);
        }
        // A primary engine that is away leaves the degraded mode, in which there may be an answer.
        let mode = match configured {
            Mode::Degraded => Mode::Degraded,
            Mode::Full => self.opened()?.1,
        };
        match if mode == configured { None } else { self.stored(&prepared, mode)? } {
            Some(answered) => Ok(answered),
            None => self.answer(&prepared, mode, &|_| {}),
        }
    }

    /// Answers a question in this mode, with the engine of this mode and no other. `watch` hears the
    /// name of every stage that asks it.
    pub fn ask_in(
        &self,
        mode: Mode,
        question: &str,
        language: &str,
        collections: &[String],
        watch: &dyn Fn(&'static str),
    ) -> Result<Answered, BatchError> {
        let prepared = self.look(question, language, collections)?;
        match self.stored(&prepared, mode)? {
            Some(answered) => Ok(answered),
            None => self.answer(&prepared, mode, watch),
        }
    }

    /// The answer to a question that was asked before of the archive as it is now; the model is not
    /// asked.
    pub fn answered_before(
        &self,
        question: &str,
        language: &str,
        collections: &[String],
    ) -> Result<Option<Answered>, BatchError> {
        let prepared = self.look(question, language, collections)?;
        let configured = configured_mode(&self.pipeline);
        match self.stored(&prepared, configured)? {
            None if configured == Mode::Full => self.stored(&prepared, Mode::Degraded),
            stored => Ok(stored),
        }
    }

    /// The mode that the pipeline is meant to work in.
    pub fn configured_mode(&self) -> Mode {
        configured_mode(&self.pipeline)
    }

    /// Takes, together and passage by passage, the decisions that these questions (text, language,
    /// collections) need and that have not been taken, until `stop` says so. Questions that are answered
    /// already need none.
    pub fn decide_ahead(
        &self,
        questions: &[(&str, &str, &[String])],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), BatchError> {
        let configured = configured_mode(&self.pipeline);
        // What a model says depends a little on what stands beside it in a batch.
        if self.decisions.is_none() || self.model_settings(configured).reproducible {
            return Ok(());
        }
        let mut open: Vec<Looked<'_>> = Vec::new();
        for (question, language, collections) in questions {
            // What cannot be prepared says why when it is asked.
            let Ok(prepared) = self.look(question, language, collections) else { continue };
            if self.stored(&prepared, configured)?.is_none() {
                open.push(prepared);
            }
        }
        if open.len() < 2 {
            return Ok(());
        }
        let (engine, mode) = self.opened()?;
        let Some(decisions) = self.decisions_of(mode) else { return Ok(()) };
        let attempt = |at: usize, engine: &dyn Engine| {
            if let Some(prepared) = open.get(at) {
                let _ = self.synthesis(prepared, engine, mode, &|_| {});
            }
        };
        let bar = progress::bar(0, "deciding", "decisions");
        let done = |count: usize| bar.inc(count as u64);
        let counted = progress::Counted { engine: engine.as_ref(), done: &done, stop };
        let progress = |more: usize| bar.inc_length(more as u64);
        decide_ahead(&counted, decisions, open.len(), self.allowed(mode), &attempt, &progress);
        bar.finish_and_clear();
        self.save_decisions()
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
        let vector = self.question_vector(&question)?;
        let searched = Question { vector: &vector, text: &question };
        let found = self.search_near(searched, &filter, self.pipeline.synthesis.passages)?;
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
        let mut looked = Looked {
            key: String::new(),
            inputs: InputsRecord::default(),
            question,
            language: language.to_owned(),
            vector,
            candidates,
        };
        looked.inputs = self.inputs(&looked, configured_mode(&self.pipeline));
        looked.key = looked.inputs.key();
        Ok(looked)
    }

    /// What the answer to a question depends on in a mode.
    fn inputs(&self, looked: &Looked<'_>, mode: Mode) -> InputsRecord {
        Inputs {
            question: &looked.question,
            language: &looked.language,
            candidates: &looked.candidates,
            embedding: &self.embedding_identity(),
            model: &self.identity_in(mode),
            prompts: self.prompts.hash(),
            mode,
            settings: self.settings_in(mode),
        }
        .record()
    }

    fn stored(&self, prepared: &Looked<'_>, mode: Mode) -> Result<Option<Answered>, BatchError> {
        let Some(stored) = self.store.get(&self.inputs(prepared, mode).key())? else {
            return Ok(None);
        };
        let answer = render(&stored.synthesis, &self.archive)?;
        Ok(Some(Answered { stored, answer, fresh: false }))
    }

    /// Asks the engine of a mode, and keeps what comes of it.
    fn answer(
        &self,
        prepared: &Looked<'_>,
        mode: Mode,
        watch: &dyn Fn(&'static str),
    ) -> Result<Answered, BatchError> {
        let identity = self.identity_in(mode);
        let open = || match self.engine_in(mode) {
            Ok(engine) => Ok(engine),
            Err(BatchError::Llm(error)) => Err(error),
            Err(BatchError::NoModel { path, .. }) => {
                Err(LlmError::Missing(path.display().to_string()))
            }
            Err(error) => {
                Err(LlmError::Model { model: identity.clone(), problem: error.to_string() })
            }
        };
        let (remembering, direct);
        let engine: &dyn Engine = match self.decisions_of(mode) {
            Some(decisions) => {
                let engine = Lazy::Closed(&open);
                let reproducible = self.model_settings(mode).reproducible;
                let begun = OnceLock::new();
                remembering =
                    Remembering { identity: &identity, engine, decisions, reproducible, begun };
                &remembering
            }
            None => {
                direct = open()?;
                direct.as_ref()
            }
        };
        let synthesis = self.synthesis(prepared, engine, mode, watch);
        self.save_decisions()?;
        let synthesis = synthesis?;
        let answer = render(&synthesis, &self.archive)?;
        let inputs = self.inputs(prepared, mode);
        let stored = Stored { key: inputs.key(), computed_on: today(), synthesis, inputs };
        self.store.put(&stored)?;
        Ok(Answered { stored, answer, fresh: true })
    }

    fn synthesis(
        &self,
        prepared: &Looked<'_>,
        engine: &dyn Engine,
        mode: Mode,
        watch: &dyn Fn(&'static str),
    ) -> Result<Synthesis, StageFailed> {
        let compare = |texts: &[&str], above: &str| {
            self.compare(&prepared.question, &prepared.vector, texts, above)
                .map_err(|e| e.to_string())
        };
        let means = Means {
            engine,
            mode,
            prompts: &self.prompts,
            compare: &compare,
            settings: self.settings_in(mode),
            deadline: Deadline::after(self.allowed(mode)),
            watch,
        };
        let asked = Asked { text: &prepared.question, language: &prepared.language };
        synthesize(asked, &prepared.candidates, self.corpus(), &means)
    }

    /// Identity of the language model of a mode.
    fn identity_in(&self, mode: Mode) -> String {
        identity(match mode {
            Mode::Full => &self.models.language,
            Mode::Degraded => &self.models.degraded,
        })
    }

    fn settings_in(&self, mode: Mode) -> &Settings {
        match mode {
            Mode::Full => &self.settings.0,
            Mode::Degraded => &self.settings.1,
        }
    }

    fn decisions_of(&self, mode: Mode) -> Option<&Mutex<Decisions>> {
        let (full, degraded) = self.decisions.as_ref()?;
        // One model, one set of decisions, whatever the mode.
        let same = self.models.language.sha256 == self.models.degraded.sha256;
        Some(if mode == Mode::Full || same { full } else { degraded })
    }

    fn allowed(&self, mode: Mode) -> Duration {
        Duration::from_secs(self.model_settings(mode).deadline_seconds)
    }

    fn model_settings(&self, mode: Mode) -> &LanguageModel {
        match mode {
            Mode::Full => &self.pipeline.language_model,
            Mode::Degraded => degraded(&self.pipeline),
        }
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
        for mode in [Mode::Full, Mode::Degraded] {
            if let Some(decisions) = self.decisions_of(mode) {
                decisions.lock().unwrap_or_else(PoisonError::into_inner).save()?;
            }
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
        for mode in [Mode::Full, Mode::Degraded] {
            if let Some(decisions) = self.decisions_of(mode) {
                decisions.lock().unwrap_or_else(PoisonError::into_inner).fold()?;
            }
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

    /// The engine that answers as a rule, opened at first use.
    pub fn engine(&self) -> Result<Arc<dyn Engine>, BatchError> {
        Ok(self.opened()?.0)
    }

    fn opened(&self) -> Result<Opened, BatchError> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = engine.as_ref() {
            return Ok(opened.clone());
        }
        let opened = open_engine(&self.pipeline, &self.models)?;
        *engine = Some(opened.clone());
        Ok(opened)
    }

    /// The engine of a mode, opened at first use.
    fn engine_in(&self, mode: Mode) -> Result<Arc<dyn Engine>, BatchError> {
        let known = self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((engine, _)) = known.filter(|(_, known)| *known == mode) {
            return Ok(engine);
        }
        if mode == configured_mode(&self.pipeline) {
            let engine = open_primary(&self.pipeline, &self.models)?;
            *self.engine.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((engine.clone(), mode));
            return Ok(engine);
        }
        let mut degraded = self.degraded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = degraded.as_ref() {
            return Ok(engine.clone());
        }
        let engine = open_degraded(&self.pipeline, &self.models)?;
        *degraded = Some(engine.clone());
        Ok(engine)
    }
}

/// The prompts of a pipeline.
pub fn prompts(pipeline: &Pipeline) -> Result<Prompts, PromptError> {
    match &pipeline.paths.prompts {
        Some(folder) => Prompts::with_folder(folder),
        None => Prompts::built_in(),
    }
}

/// The settings with the calibration of a model, if it has one. One that was made for another model
/// or other prompts is refused: its thresholds would mean something else.
pub fn calibrated(
    settings: &Settings,
    model: &LanguageModel,
    identity: &str,
    prompts: &str,
) -> Result<Settings, BatchError> {
    let Some(path) = &model.calibration else { return Ok(settings.clone()) };
    let fault = |problem: String| BatchError::Calibration { path: path.clone(), problem };
    let bytes = florilegium_files::read(path).map_err(|error| fault(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| fault(error.to_string()))?;
    let calibration: Calibration =
        toml::from_str(&text).map_err(|error| fault(error.to_string()))?;
    match calibration.mismatch(identity, prompts) {
        Some(problem) => Err(fault(problem)),
        None => Ok(calibration.apply(settings)),
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
