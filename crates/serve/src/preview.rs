//! A site that is shown from memory, rebuilt whenever a file that it is made from changes, and loaded
//! again by the browsers that show it. For editors and designers, on their own machine.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use florilegium_publish::content_security_policy;
use serde::Deserialize;
use tokio::sync::watch;

use crate::{ServeError, stopped};

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long a browser's request for a newer version is held.
const HELD: Duration = Duration::from_secs(20);
const SCRIPT: &str = include_str!("preview.js");

/// Files of a site, as pairs of path and content.
pub type Rendered = Vec<(String, Vec<u8>)>;

/// What is previewed.
pub struct Preview {
    /// Files and folders that the site is made from.
    pub watched: Vec<PathBuf>,
    /// Makes the site, or says what is wrong.
    pub build: Box<dyn FnMut() -> Result<Rendered, String> + Send>,
}

/// The state of some files and folders, by which a change is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(Vec<(PathBuf, Option<SystemTime>, u64)>);

impl Fingerprint {
    /// The state of these files and folders, with everything in them.
    pub fn of(paths: &[PathBuf]) -> Self {
        let mut found = Vec::new();
        let mut waiting: Vec<PathBuf> = paths.to_vec();
        while let Some(path) = waiting.pop() {
            let metadata = fs::metadata(&path).ok();
            if metadata.as_ref().is_some_and(fs::Metadata::is_dir) {
                let listed = fs::read_dir(&path).into_iter().flatten().flatten();
                waiting.extend(listed.map(|entry| entry.path()));
            }
            let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
            found.push((path, modified, metadata.map_or(0, |metadata| metadata.len())));
        }
        found.sort();
        Fingerprint(found)
    }
}

/// What is shown now.
#[derive(Default)]
struct Shown {
    files: HashMap<String, Vec<u8>>,
    problem: Option<String>,
}

struct Shelf {
    shown: RwLock<Shown>,
    version: watch::Sender<u64>,
}

impl Shelf {
    fn put(&self, built: Result<Rendered, String>) {
        let mut shown = self.shown.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        match built {
            Ok(files) => *shown = Shown { files: files.into_iter().collect(), problem: None },
            Err(problem) => {
                tracing::error!("{problem}");
                shown.problem = Some(problem);
            }
        }
        drop(shown);
        self.version.send_modify(|version| *version += 1);
    }
}

/// Shows a site until the process is told to stop. `ready` is called with the address once it listens.
pub fn preview(
    mut preview: Preview,
    address: SocketAddr,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let shelf = Arc::new(Shelf { shown: RwLock::default(), version: watch::Sender::new(0) });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut seen = Fingerprint::of(&preview.watched);
    shelf.put((preview.build)());
    let watching = shelf.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(INTERVAL);
            let now = Fingerprint::of(&preview.watched);
            if now != seen {
                seen = now;
                watching.put((preview.build)());
            }
        }
    });
    let result = runtime.block_on(async {
        let listener =
            tokio::net::TcpListener::bind(address).await.map_err(|source| match source.kind() {
                std::io::ErrorKind::AddrInUse => ServeError::AddressInUse(address),
                _ => ServeError::Listen { address, source },
            })?;
        let router = Router::new()
            .route("/preview/version", get(version))
            .route("/preview/reload.js", get(script))
            .fallback(get(file))
            .with_state(shelf);
        ready(listener.local_addr()?);
        // Requests for a newer version are held: they are not waited for.
        tokio::select! {
            served = axum::serve(listener, router) => served?,
            () = stopped() => {}
        }
        Ok(())
    });
    runtime.shutdown_background();
    result
}

#[derive(Deserialize)]
struct After {
    after: i64,
}

/// The version that is shown, once it is another than the browser's.
async fn version(State(shelf): State<Arc<Shelf>>, Query(query): Query<After>) -> Response {
    let mut versions = shelf.version.subscribe();
    let other = |version: &u64| i64::try_from(*version).unwrap_or(-1) != query.after;
    let _ = tokio::time::timeout(HELD, versions.wait_for(other)).await;
    let now = *shelf.version.borrow();
    ([(header::CACHE_CONTROL, "no-store")], now.to_string()).into_response()
}

async fn script() -> Response {
    reply(StatusCode::OK, "text/javascript", SCRIPT.into())
}

async fn file(State(shelf): State<Arc<Shelf>>, uri: Uri) -> Response {
    let shown = shelf.shown.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(problem) = &shown.problem {
        let text = problem.replace('&', "&amp;").replace('<', "&lt;");
        let page = format!(
            "<!DOCTYPE html><html lang=\"en\"><title>Preview</title><pre>{text}</pre></html>"
        );
        return reply(StatusCode::INTERNAL_SERVER_ERROR, "text/html", reloading(page.as_bytes()));
    }
    let mut path = uri.path().trim_start_matches('/').to_owned();
    if path.is_empty() || path.ends_with('/') {
        path.push_str("index.html");
    }
    let (status, path) = match shown.files.contains_key(&path) {
        true => (StatusCode::OK, path),
        false => (StatusCode::NOT_FOUND, "404.html".to_owned()),
    };
    let bytes = shown.files.get(&path).map(Vec::as_slice).unwrap_or_default();
    let kind = content_type(Path::new(&path));
    let bytes = if kind == "text/html" { reloading(bytes) } else { bytes.to_vec() };
    reply(status, kind, bytes)
}

/// A page with the script that loads it again.
fn reloading(page: &[u8]) -> Vec<u8> {
    let page = String::from_utf8_lossy(page);
    let script = "<script type=\"module\" src=\"/preview/reload.js\"></script>";
    let end = page.rfind("</body>").or_else(|| page.rfind("</html>")).unwrap_or(page.len());
    format!("{}{script}{}", &page[..end], &page[end..]).into_bytes()
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" => "text/html",
        "css" => "text/css",
        "js" => "text/javascript",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "xml" => "application/xml",
        "md" | "txt" | "bib" | "ris" => "text/plain",
        _ => "application/octet-stream",
    }
}

fn reply(status: StatusCode, kind: &str, bytes: Vec<u8>) -> Response {
    let kind =
        if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind.into() };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, content_security_policy(None)),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (status, headers, bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_goes_at_the_end_of_the_page() {
        let page = String::from_utf8(reloading(b"<html><body><p>a</p></body></html>")).unwrap();
        assert!(page.ends_with("reload.js\"></script></body></html>"), "{page}");
    }

    #[test]
    fn a_change_in_a_folder_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let watched = [folder.path().to_owned()];
        let empty = Fingerprint::of(&watched);
        fs::create_dir(folder.path().join("pages")).unwrap();
        fs::write(folder.path().join("pages/a.html"), "a").unwrap();
        let one = Fingerprint::of(&watched);
        assert_ne!(empty, one);
        fs::write(folder.path().join("pages/a.html"), "ab").unwrap();
        assert_ne!(one, Fingerprint::of(&watched));
    }
}
