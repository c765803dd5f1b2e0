//! `florilegium preview PIPELINE`: the site as it would be, rebuilt whenever something is changed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use florilegium_batch::{Library, Pipeline, questions};
use florilegium_publish::{Site, Theme, render};
use florilegium_serve::preview::{Fingerprint, Preview, preview};

use super::{print, site};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Address and port.
    #[arg(long, env = "FLORILEGIUM_LISTEN", default_value = "127.0.0.1:8081")]
    listen: SocketAddr,
    /// Folder with pages/, messages/ and site/; the pipeline's own when not given.
    #[arg(long)]
    theme: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut pipeline = Pipeline::load(&arguments.pipeline)?;
    if let Some(theme) = &arguments.theme {
        pipeline.publish.theme = Some(theme.clone());
    }
    let list = pipeline.questions.file.clone();
    let folder = pipeline.publish.theme.clone();
    let mut watched = vec![arguments.pipeline.clone(), list.clone()];
    watched.extend(folder.clone());
    let mut workshop = Workshop {
        library: Library::open(pipeline)?,
        listed: Fingerprint::default(),
        kept: None,
        pipeline: arguments.pipeline.clone(),
        list,
        folder,
        address: arguments.listen,
    };
    let build = move || workshop.build().map_err(|error| format!("{error:#}"));
    preview(Preview { watched, build: Box::new(build) }, arguments.listen, |address| {
        let _ = print(&format!("previewing on http://{address}/ (Ctrl-C ends it)\n"));
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Rebuilds what has changed: the entries when the list or the pipeline file has, else the pages only.
struct Workshop {
    library: Library,
    listed: Fingerprint,
    kept: Option<Site>,
    pipeline: PathBuf,
    list: PathBuf,
    folder: Option<PathBuf>,
    address: SocketAddr,
}

impl Workshop {
    fn build(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        let theme: Arc<Theme> = match &self.folder {
            Some(folder) => Theme::load(folder)?,
            None => Theme::built_in()?,
        };
        let listed = Fingerprint::of(&[self.pipeline.clone(), self.list.clone()]);
        let site = match self.kept.take().filter(|_| listed == self.listed) {
            Some(site) => Site { theme, ..site },
            None => {
                let changed = Pipeline::load(&self.pipeline)?;
                // What an open library rests on is fixed; what the pages say of it is not.
                self.library.pipeline.title = changed.title;
                self.library.pipeline.publish = changed.publish;
                let list = questions(&self.library.pipeline)?;
                let site = site::kept_site(&self.library, &list, theme)?;
                // A port that is not known yet makes no address.
                let known = self.address.port() != 0;
                let base_url = known.then(|| format!("http://{}/", self.address));
                Site { base_url, base_path: "/".to_owned(), ..site }
            }
        };
        let files = render(&site);
        self.kept = Some(site);
        self.listed = listed;
        Ok(files?)
    }
}
