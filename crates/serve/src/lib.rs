//! The live server: the static site, and the same library behind HTTP.
//!
//! | address | |
//! |---|---|
//! | `/` | the published site |
//! | `/ask?q=…&lang=…` | a page: the curated answer, or the passages at once and the answer when it is there |
//! | `/api/search?q=…&lang=…&collection=…&k=…` | what is near: curated questions and passages |
//! | `/api/ask?q=…&lang=…&wait=…` | the answer, or what is near and the job that makes the answer |
//! | `/api/jobs/{id}`, `/api/jobs/{id}/events` | how a job stands; the same as server-sent events |
//! | `/api/openapi.json` | all of this for programs |
//! | `/healthz`, `/readyz` | whether the process lives; whether it can answer |
//!
//! `/metrics` is on an address of its own. A question that is being answered is never started twice, and
//! only some wait at a time: then the reply is "busy", with the passages.

mod ask;
mod connections;
mod jobs;
mod limits;
mod loaded;
mod log;
mod metrics;
pub mod preview;
mod reply;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State as Shared};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use florilegium_batch::LiveServer;
use florilegium_publish::{content_security_policy, is_immutable};
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::services::{ServeDir, ServeFile};
use tower_http::set_header::SetResponseHeaderLayer;

use jobs::Jobs;
use limits::Limits;
use loaded::Current;
use log::QuestionLog;
use metrics::Metrics;

pub use loaded::{Loaded, Open};

/// No request carries more bytes than this in its body: a question has a thousand characters.
const BODY_LIMIT: usize = 16 * 1024;
/// What the server speaks, for programs.
const OPENAPI: &str = include_str!("../openapi.json");

/// Everything the server needs.
pub struct App {
    /// What requests are answered from.
    pub loaded: Loaded,
    /// Opens it anew once `files` have changed.
    pub open: Open,
    /// Files that change when a batch run has built something new.
    pub files: Vec<PathBuf>,
    /// Folder of the published site.
    pub site: PathBuf,
    /// Where accepted questions are kept.
    pub work: PathBuf,
    /// How it behaves.
    pub settings: LiveServer,
    /// Address for `/metrics`, if it is wanted.
    pub metrics: Option<SocketAddr>,
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
    /// The jobs cannot be kept.
    #[error(transparent)]
    File(#[from] florilegium_files::FileError),
    /// The runtime failed.
    #[error("the server failed: {0}")]
    Io(#[from] std::io::Error),
}

/// State shared by all requests.
pub(crate) struct State {
    pub current: Arc<Current>,
    pub jobs: Arc<Jobs>,
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
    pub log: QuestionLog,
    pub settings: LiveServer,
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
    let settings = app.settings.clone();
    let metrics = Arc::new(Metrics::new());
    let log = || QuestionLog::new(settings.question_log.clone());
    let corpus = app.loaded.library.corpus().to_owned();
    let folder = app.work.join("jobs");
    let jobs = Arc::new(Jobs::open(&folder, &corpus, &settings, metrics.clone(), log())?);
    let current = Arc::new(Current::new(app.loaded));
    let state = Arc::new(State {
        current: current.clone(),
        jobs: jobs.clone(),
        limits: Limits::new(&settings),
        metrics: metrics.clone(),
        log: log(),
        settings: settings.clone(),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let listener = listen(address).await?;
        if let Some(address) = app.metrics {
            let listener = listen(address).await?;
            let text = move || {
                let text = metrics.text();
                async move { text }
            };
            let router = Router::new().route("/metrics", get(text));
            tokio::spawn(async move { axum::serve(listener, router).await });
        }
        let expiring = jobs.clone();
        let follow = current.clone().follow(app.files, app.open, move |loaded| {
            expiring.expire(loaded.library.corpus());
        });
        tokio::spawn(follow);
        jobs.work(&current);
        let router = router(state, &app.site);
        ready(listener.local_addr()?);
        connections::serve(listener, router, &settings, stopped()).await;
        Ok(())
    });
    // A synthesis in the making is abandoned; its question is on disk, and is taken up again.
    jobs.stop();
    runtime.shutdown_background();
    result
}

async fn listen(address: SocketAddr) -> Result<tokio::net::TcpListener, ServeError> {
    tokio::net::TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => ServeError::AddressInUse(address),
        _ => ServeError::Listen { address, source },
    })
}

fn router(state: Arc<State>, site: &std::path::Path) -> Router {
    let not_found = ServeFile::new(site.join("404.html"));
    // The packed forms lie beside the files; each request follows the link to the current release anew.
    let files = ServeDir::new(site)
        .precompressed_br()
        .precompressed_zstd()
        .precompressed_gzip()
        .not_found_service(not_found);
    let header = |name: HeaderName, value: &str| {
        let value = HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static(""));
        SetResponseHeaderLayer::if_not_present(name, value)
    };
    let origins: Vec<HeaderValue> =
        state.settings.origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::CONTENT_TYPE]);
    let asking = Router::new()
        .route("/ask", get(ask::page))
        .route("/api/search", get(ask::api_search))
        .route("/api/ask", get(ask::api_ask).post(ask::api_ask_post))
        .route("/api/jobs/{id}", get(ask::api_job))
        .route("/api/jobs/{id}/events", get(ask::api_events))
        .layer(from_fn_with_state(state.clone(), limits::limit));
    Router::new()
        .merge(asking)
        .route(
            "/api/openapi.json",
            get(|| async { ([(header::CONTENT_TYPE, "application/json")], OPENAPI) }),
        )
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(is_ready))
        .layer(cors)
        .fallback_service(files)
        .with_state(state.clone())
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(header(header::CONTENT_SECURITY_POLICY, &content_security_policy(None)))
        .layer(header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(header(header::REFERRER_POLICY, "no-referrer"))
        .layer(header(header::CACHE_CONTROL, "no-cache"))
        .layer(from_fn_with_state(state, count))
}

/// Whether a question could be embedded and searched now.
async fn is_ready(Shared(state): Shared<Arc<State>>) -> (StatusCode, &'static str) {
    match state.current.get().library.embedder() {
        Ok(_) => (StatusCode::OK, "ready\n"),
        Err(error) => {
            tracing::error!("{error}");
            (StatusCode::SERVICE_UNAVAILABLE, "not ready; the log of the server has the reason\n")
        }
    }
}

async fn count(Shared(state): Shared<Arc<State>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let start = Instant::now();
    let mut response = next.run(request).await;
    // What carries a hash of its content in its address may be kept for ever.
    if is_immutable(&path) && response.status().is_success() {
        let value = HeaderValue::from_static("public, max-age=31536000, immutable");
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
    let seconds = start.elapsed().as_secs_f64();
    state.metrics.request(&path, response.status().as_u16(), seconds);
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
