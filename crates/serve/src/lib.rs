//! The live server: the static site, and the same library behind HTTP.
//!
//! | address | |
//! |---|---|
//! | `/` | the published site |
//! | `/ask?q=…&lang=…` | a page: the curated answer, or the passages at once and the answer when it is there |
//! | `/api/search?q=…&lang=…&collection=…&k=…` | the nearest passages, as JSON |
//! | `/api/ask?q=…&lang=…` | the answer, as JSON; waits for it |
//!
//! A question that is being answered is never started twice, and only some wait at a time: then the
//! reply is "busy", with the passages.

mod ask;
mod jobs;
pub mod preview;
mod reply;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;
use florilegium_batch::Library;
use florilegium_publish::{Chrome, content_security_policy, is_immutable};
use florilegium_questions::QuestionList;
use tower_http::services::{ServeDir, ServeFile};
use tower_http::set_header::SetResponseHeaderLayer;

use jobs::Jobs;

/// No request carries more bytes than this in its body: a question has a thousand characters.
const BODY_LIMIT: usize = 16 * 1024;

/// Everything the server needs.
pub struct App {
    /// The library that is searched and asked.
    pub library: Arc<Library>,
    /// The curated questions.
    pub questions: QuestionList,
    /// What is around the text of every page.
    pub chrome: Chrome,
    /// Folder of the published site.
    pub site: PathBuf,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use.
    #[error(
        "{0} is already in use; stop the program that uses it, or choose another address with --listen or FLORILEGIUM_LISTEN"
    )]
    AddressInUse(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The site has not been published.
    #[error("there is no published site in {}; run `florilegium run` with its pipeline file first", .0.display())]
    NoSite(PathBuf),
    /// The runtime failed.
    #[error("the server failed: {0}")]
    Io(#[from] std::io::Error),
}

/// State shared by all requests.
pub(crate) struct State {
    pub library: Arc<Library>,
    pub questions: QuestionList,
    pub chrome: Chrome,
    pub jobs: Jobs,
}

/// Serves until the process is told to stop. `ready` is called with the address once it listens.
pub fn serve(
    app: App,
    address: SocketAddr,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    if !app.site.join("index.html").is_file() {
        return Err(ServeError::NoSite(app.site));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let listener =
            tokio::net::TcpListener::bind(address).await.map_err(|source| match source.kind() {
                std::io::ErrorKind::AddrInUse => ServeError::AddressInUse(address),
                _ => ServeError::Listen { address, source },
            })?;
        let router = router(app);
        ready(listener.local_addr()?);
        axum::serve(listener, router).with_graceful_shutdown(stopped()).await?;
        Ok(())
    });
    // An answer in the making is abandoned: it is computed again when it is asked for.
    runtime.shutdown_background();
    result
}

fn router(app: App) -> Router {
    let not_found = ServeFile::new(app.site.join("404.html"));
    // The packed forms lie beside the files; each request follows the link to the current release anew.
    let site = ServeDir::new(&app.site)
        .precompressed_br()
        .precompressed_zstd()
        .precompressed_gzip()
        .not_found_service(not_found);
    let state = Arc::new(State {
        library: app.library,
        questions: app.questions,
        chrome: app.chrome,
        jobs: Jobs::default(),
    });
    let header = |name: HeaderName, value: &str| {
        let value = HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static(""));
        SetResponseHeaderLayer::if_not_present(name, value)
    };
    Router::new()
        .route("/ask", get(ask::page))
        .route("/api/search", get(ask::api_search))
        .route("/api/ask", get(ask::api_ask).post(ask::api_ask_post))
        .fallback_service(site)
        .with_state(state)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(header(header::CONTENT_SECURITY_POLICY, &content_security_policy(None)))
        .layer(header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(header(header::REFERRER_POLICY, "no-referrer"))
        .layer(header(header::CACHE_CONTROL, "no-cache"))
        .layer(axum::middleware::from_fn(caching))
}

/// What carries a hash of its content in its address may be kept for ever.
async fn caching(request: Request, next: Next) -> Response {
    let immutable = is_immutable(request.uri().path());
    let mut response = next.run(request).await;
    if immutable && response.status().is_success() {
        let value = HeaderValue::from_static("public, max-age=31536000, immutable");
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
    response
}

/// Resolves when the process is interrupted or told to end.
async fn stopped() {
    let interrupt = tokio::signal::ctrl_c();
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => {
            let _ = interrupt.await;
        }
    }
}
