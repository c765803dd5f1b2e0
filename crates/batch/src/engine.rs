//! The language-model engines that a pipeline file names: servers, and llama.cpp in this process.

use std::sync::Arc;
use std::time::Duration;

use florilegium_llm::local::{Local, LocalConfig};
use florilegium_llm::server::{AddressConfig, Limits, Secret, Server, ServerConfig};
use florilegium_llm::{Engine, LlmError};
use florilegium_models::Model;
use florilegium_synthesis::Mode;

use crate::error::BatchError;
use crate::models::{Models, degraded, identity};
use crate::pipeline::{LanguageModel, ModelServer, Pipeline};

/// An engine that can be opened.
pub struct ConfiguredEngine<'a> {
    /// Where it is: an address, or "in-process".
    pub place: String,
    pipeline: &'a Pipeline,
    models: Models,
    server: Option<&'a ModelServer>,
}

impl ConfiguredEngine<'_> {
    /// Opens this engine alone.
    pub fn open(&self) -> Result<Arc<dyn Engine>, BatchError> {
        match self.server {
            Some(server) => open_servers(self.pipeline, &self.models, &[server]),
            None => open_local(self.pipeline, &self.models),
        }
    }
}

/// All engines of a pipeline: its servers, then the one in this process.
pub fn configured_engines(pipeline: &Pipeline) -> Result<Vec<ConfiguredEngine<'_>>, BatchError> {
    let servers = pipeline.language_model.servers.iter().map(Some);
    let engine = |server: Option<&'_ ModelServer>| server.map(|server| server.url.clone());
    servers
        .chain([None])
        .map(|server| {
            let place = engine(server).unwrap_or_else(|| "in-process".to_owned());
            Ok(ConfiguredEngine { place, pipeline, models: Models::of(pipeline)?, server })
        })
        .collect()
}

/// The mode that a pipeline is meant to work in: full when it has servers, or a graphics card.
pub(crate) fn configured_mode(pipeline: &Pipeline) -> Mode {
    let settings = &pipeline.language_model;
    if settings.servers.is_empty() && settings.gpu_layers == 0 {
        Mode::Degraded
    } else {
        Mode::Full
    }
}

/// Opens the primary engine of a pipeline: its servers, or the model in this process.
pub(crate) fn open_primary(
    pipeline: &Pipeline,
    models: &Models,
) -> Result<Arc<dyn Engine>, BatchError> {
    let servers: Vec<&ModelServer> = pipeline.language_model.servers.iter().collect();
    if servers.is_empty() {
        return open_local(pipeline, models);
    }
    open_servers(pipeline, models, &servers)
}

/// Opens the engine of the degraded mode: a model in this process.
pub(crate) fn open_degraded(
    pipeline: &Pipeline,
    models: &Models,
) -> Result<Arc<dyn Engine>, BatchError> {
    open_in_process(pipeline, models, degraded(pipeline), &models.degraded)
}

/// Opens the engine of a pipeline: the primary one if it can be reached, else that of the degraded
/// mode, if its file is here.
pub(crate) fn open_engine(
    pipeline: &Pipeline,
    models: &Models,
) -> Result<(Arc<dyn Engine>, Mode), BatchError> {
    match open_primary(pipeline, models) {
        Err(BatchError::Llm(error @ LlmError::Unavailable { .. }))
            if models.file(&models.degraded).is_ok() =>
        {
            tracing::warn!("{error}; going on with the model in this process");
            Ok((open_degraded(pipeline, models)?, Mode::Degraded))
        }
        opened => Ok((opened?, configured_mode(pipeline))),
    }
}

fn open_local(pipeline: &Pipeline, models: &Models) -> Result<Arc<dyn Engine>, BatchError> {
    open_in_process(pipeline, models, &pipeline.language_model, &models.language)
}

fn open_in_process(
    pipeline: &Pipeline,
    models: &Models,
    settings: &LanguageModel,
    model: &Model,
) -> Result<Arc<dyn Engine>, BatchError> {
    let path = models.file(model)?;
    Ok(Arc::new(Local::open(LocalConfig {
        threads: settings.threads,
        context: settings.context,
        batch: settings.batch,
        memory: settings.memory,
        shelf: settings.shelf_megabytes << 20,
        states: settings.keep_states.then(|| pipeline.paths.work.join("states")),
        gpu_layers: settings.gpu_layers,
        ..LocalConfig::new(path, &identity(model))
    })?))
}

fn open_servers(
    pipeline: &Pipeline,
    models: &Models,
    servers: &[&ModelServer],
) -> Result<Arc<dyn Engine>, BatchError> {
    let address = |server: &&ModelServer| -> Result<AddressConfig, LlmError> {
        let key = match (&server.key_env, &server.key_file) {
            (Some(name), _) => Some(Secret::from_env(name)?),
            (None, Some(path)) => Some(Secret::from_file(path)?),
            (None, None) => None,
        };
        let seconds = |given: Option<u64>, usual| given.map_or(usual, Duration::from_secs);
        let usual = Limits::default();
        let file = models.language.path(std::path::Path::new(""));
        Ok(AddressConfig {
            url: server.url.clone(),
            kind: server.kind,
            model: server.model.clone().unwrap_or_else(|| file.display().to_string()),
            slots: server.slots,
            key,
            limits: Limits {
                connect: seconds(server.connect_seconds, usual.connect),
                first: seconds(server.first_token_seconds, usual.first),
                whole: seconds(server.whole_seconds, usual.whole),
            },
        })
    };
    Ok(Arc::new(Server::open(ServerConfig {
        identity: identity(&models.language),
        servers: servers.iter().map(address).collect::<Result<_, _>>()?,
        patience: Duration::from_secs(pipeline.language_model.patience_seconds),
    })?))
}
