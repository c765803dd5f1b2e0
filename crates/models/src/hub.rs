//! The model hub, through `hf-hub`.
//!
//! `hf-hub` has no time limits of its own, and a network that swallows packets would hang it for
//! ever. So it runs in a thread that reports bytes as they come, and is given up when none come.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use florilegium_files::create_dir;
use hf_hub::api::Progress;
use hf_hub::api::sync::ApiBuilder;
use hf_hub::{Cache, Repo, RepoType};
use indicatif::ProgressBar;

/// How long the hub may be silent, when connecting and between two pieces of the file.
const PATIENCE: Duration = Duration::from_secs(60);

/// The environment variable that names another hub, as the hub's own tools have it.
const ENDPOINT: &str = "HF_ENDPOINT";

enum Report {
    Bytes(u64),
    Done(Result<PathBuf, String>),
}

/// Passes the bytes on to the waiting side.
struct Reporter(mpsc::Sender<Report>);

impl Progress for Reporter {
    fn init(&mut self, _size: usize, _filename: &str) {}

    fn update(&mut self, size: usize) {
        // The other side may have given up; then nobody counts.
        let _ = self.0.send(Report::Bytes(size as u64));
    }

    fn finish(&mut self) {}
}

/// Downloads one file of a repository into `folder` and returns where it lies. A part already
/// there is continued.
pub(crate) fn download(
    repo: &str,
    file: &str,
    revision: &str,
    folder: &Path,
    bar: &ProgressBar,
) -> Result<PathBuf, String> {
    create_dir(folder).map_err(|error| error.to_string())?;
    let mut builder =
        ApiBuilder::from_cache(Cache::new(folder.join("hub"))).with_progress(false).with_retries(3);
    if let Ok(endpoint) = std::env::var(ENDPOINT)
        && !endpoint.trim().is_empty()
    {
        builder = builder.with_endpoint(endpoint.trim().trim_end_matches('/').to_owned());
    }
    let api = builder.build().map_err(|error| error.to_string())?;
    let wanted = Repo::with_revision(repo.to_owned(), RepoType::Model, revision.to_owned());
    let (sender, receiver) = mpsc::channel();
    let name = file.to_owned();
    thread::spawn(move || {
        let result = api
            .repo(wanted)
            .download_with_progress(&name, Reporter(sender.clone()))
            .map_err(|error| error.to_string());
        let _ = sender.send(Report::Done(result));
    });
    bar.set_message("from the hub");
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(Report::Bytes(count)) => bar.inc(count),
            Ok(Report::Done(result)) => {
                // The snapshot entry is a link to the file proper.
                return result.and_then(|link| {
                    link.canonicalize().map_err(|e| format!("{}: {e}", link.display()))
                });
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("no answer for {} seconds", PATIENCE.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err("the download broke off".into()),
        }
    }
}
