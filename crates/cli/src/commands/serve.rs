//! `florilegium serve PIPELINE`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use florilegium_batch::{Library, Pipeline, questions};
use florilegium_serve::{App, serve};

use super::{print, site};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Address and port.
    #[arg(long, env = "FLORILEGIUM_LISTEN", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pipeline = Pipeline::load(&arguments.pipeline)?;
    let questions = questions(&pipeline)?;
    let library = Library::open(pipeline)?;
    let app = App {
        questions,
        chrome: site::chrome(&library)?,
        site: library.pipeline.paths.public.join(&library.pipeline.id),
        library: Arc::new(library),
    };
    serve(app, arguments.listen, |address| {
        let _ = print(&format!("serving http://{address}/ (Ctrl-C ends it)\n"));
    })?;
    Ok(ExitCode::SUCCESS)
}
