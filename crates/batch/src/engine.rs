//! The language-model engines that a pipeline file names: servers, and llama.cpp in this process.

use std::sync::Arc;
use std::time::Duration;

use florilegium_llm::local::{Local, LocalConfig};
use florilegium_llm::server::{AddressConfig, Limits, Secret, Server, ServerConfig};
use florilegium_llm::{Engine, LlmError};

use crate::error::BatchError;
use crate::models::{Models, identity};
use crate::pipeline::{ModelServer, Pipeline};

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

/// Opens the engine of a pipeline: its servers if one can be reached, else the model in this
/// process, if its file is here.
pub(crate) fn open_engine(
    pipeline: &Pipeline,
    models: &Models,
) -> Result<Arc<dyn Engine>, BatchError> {
    let servers: Vec<&ModelServer> = pipeline.language_model.servers.iter().collect();
    if servers.is_empty() {
        return open_local(pipeline, models);
    }
    match open_servers(pipeline, models, &servers) {
        Err(BatchError::Llm(error @ LlmError::Unavailable { .. }))
            if models.file(&models.language).is_ok() =>
        {
            tracing::warn!("{error}; going on with the model in this process");
            open_local(pipeline, models)
        }
        opened => opened,
    }
}

fn open_local(pipeline: &Pipeline, models: &Models) -> Result<Arc<dyn Engine>, BatchError> {
    let settings = &pipeline.language_model;
    let path = models.file(&models.language)?;
    Ok(Arc::new(Local::open(LocalConfig {
        threads: settings.threads,
        context: settings.context,
        batch: settings.batch,
        memory: settings.memory,
        shelf: settings.shelf_megabytes << 20,
        states: settings.keep_states.then(|| pipeline.paths.work.join("states")),
        gpu_layers: settings.gpu_layers,
        ..LocalConfig::new(path, &identity(&models.language))
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
