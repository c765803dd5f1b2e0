//! `florilegium serve PIPELINE`

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use florilegium_batch::{Library, Pipeline, Wordings, questions};
use florilegium_serve::{App, Loaded, serve};

use super::{print, site};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Address and port.
    #[arg(long, env = "FLORILEGIUM_LISTEN", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Address and port of /metrics, for Prometheus; not served when not given.
    #[arg(long, env = "FLORILEGIUM_METRICS")]
    metrics: Option<SocketAddr>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let path = arguments.pipeline.clone();
    let loaded = open(&path)?;
    let pipeline = &loaded.library.pipeline;
    let app = App {
        site: pipeline.paths.public.join(&pipeline.id),
        work: pipeline.paths.work.clone(),
        settings: pipeline.server.clone(),
        metrics: arguments.metrics,
        files: vec![pipeline.paths.work.join("index/manifest"), pipeline.questions.file.clone()],
        open: Box::new(move || open(&path).map_err(|error| format!("{error:#}"))),
        loaded,
    };
    serve(app, arguments.listen, |address| {
        let _ = print(&format!("serving http://{address}/ (Ctrl-C ends it)\n"));
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Opens what the last run has built.
fn open(path: &Path) -> Result<Loaded> {
    let mut pipeline = Pipeline::load(path)?;
    // A reader waits: an engine that is away is given up sooner than at night.
    let patience = &mut pipeline.language_model.patience_seconds;
    *patience = pipeline.server.patience_seconds.min(*patience);
    let questions = questions(&pipeline)?;
    let library = Library::open(pipeline)?;
    let chrome = site::chrome(&library)?;
    let wordings = Wordings::open(&library, &questions)?;
    Ok(Loaded { library, questions, chrome, wordings })
}
