//! The models of a pipeline: their identities, and their files once they are fetched.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use florilegium_embed::{EmbedConfig, Embedder};
use florilegium_models::{Model, ModelList, Status};

use crate::error::BatchError;
use crate::pipeline::{LanguageModel, Pipeline};

/// Identities and files of the models, from the model list.
pub(crate) struct Models {
    weights: Model,
    tokenizer: Model,
    pub(crate) language: Model,
    /// The model of the degraded mode; the language model when there is no other.
    pub(crate) degraded: Model,
    folder: PathBuf,
}

impl Models {
    pub(crate) fn of(pipeline: &Pipeline) -> Result<Self, BatchError> {
        let list = ModelList::load(&pipeline.paths.model_list)?;
        Ok(Models {
            weights: list.get(&pipeline.embedding.model)?.clone(),
            tokenizer: list.get(&pipeline.embedding.tokenizer)?.clone(),
            language: list.get(&pipeline.language_model.model)?.clone(),
            degraded: list.get(&degraded(pipeline).model)?.clone(),
            folder: pipeline.paths.models.clone(),
        })
    }

    /// Weights, tokenizer and prefixes: what a vector depends on.
    pub(crate) fn embedding_identity(&self) -> String {
        format!("{} {} query:/passage:", identity(&self.weights), identity(&self.tokenizer))
    }

    /// The file of a model that has been fetched.
    pub(crate) fn file(&self, model: &Model) -> Result<PathBuf, BatchError> {
        match model.status(&self.folder) {
            Status::Present => Ok(model.path(&self.folder)),
            _ => Err(BatchError::NoModel { id: model.id.clone(), path: model.path(&self.folder) }),
        }
    }
}

/// The model of the degraded mode.
pub(crate) fn degraded(pipeline: &Pipeline) -> &LanguageModel {
    pipeline.degraded_model.as_ref().unwrap_or(&pipeline.language_model)
}

/// What a model is, whatever file it lies in.
pub(crate) fn identity(model: &Model) -> String {
    format!("{}@{}", model.id, model.sha256.get(..16).unwrap_or(&model.sha256))
}

/// The embedding engine of a pipeline.
pub fn embedder(pipeline: &Pipeline) -> Result<Arc<Embedder>, BatchError> {
    open_embedder(&Mutex::new(None), &Models::of(pipeline)?, pipeline)
}

/// The embedding engine in `slot`, opened at first use.
pub(crate) fn open_embedder(
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
    config.compute = pipeline.embedding.compute;
    let opened = Arc::new(Embedder::open(&config)?);
    *slot = Some(opened.clone());
    Ok(opened)
}
