//! What the server says, as JSON, and with which status.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use florilegium_batch::BatchError;
use florilegium_synthesis::answer::{Answer, Excerpt};
use serde::Serialize;

/// Reply to `/api/search`.
#[derive(Debug, Serialize)]
pub(crate) struct SearchReply {
    /// The question as it was understood.
    pub question: String,
    /// Its language, given or detected.
    pub language: String,
    /// The nearest passages, the best first, with their score.
    pub passages: Vec<Scored>,
}

/// A passage and how well it matches.
#[derive(Debug, Serialize)]
pub(crate) struct Scored {
    /// Score of meaning and words together; only good for comparing these passages.
    pub score: f32,
    /// The passage.
    #[serde(flatten)]
    pub excerpt: Excerpt,
}

/// Reply to `/api/ask`.
#[derive(Debug, Serialize)]
pub(crate) struct AskReply {
    /// "answered", "insufficient", "busy" or "failed".
    pub status: &'static str,
    /// Address of the page, when the question is a curated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The answer, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The nearest passages, when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Scored>,
}

/// Something the asker or the server did wrong.
#[derive(Debug, Serialize)]
struct Fault {
    error: String,
}

/// A request that cannot be served as it is.
pub(crate) fn bad_request(problem: impl std::fmt::Display) -> Response {
    (StatusCode::BAD_REQUEST, Json(Fault { error: problem.to_string() })).into_response()
}

/// A failure of ours: the reason goes to the log, not to the reader.
pub(crate) fn internal(error: &dyn std::fmt::Display) -> Response {
    tracing::error!("{error}");
    let error = "the server could not do this; its log has the reason".to_owned();
    (StatusCode::INTERNAL_SERVER_ERROR, Json(Fault { error })).into_response()
}

/// The reply to a failed search or answer.
pub(crate) fn failed(error: BatchError) -> Response {
    match error {
        BatchError::Question(problem) => bad_request(problem),
        BatchError::NothingFeeds { .. } => bad_request(error),
        error => internal(&error),
    }
}

/// Too many questions wait: the passages, and when to come back.
pub(crate) fn busy(reply: AskReply) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "30")], Json(reply)).into_response()
}
