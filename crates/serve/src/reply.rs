//! What the server says, as JSON, and with which status.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use florilegium_batch::{Answered, BatchError};
use florilegium_questions::Question;
use florilegium_synthesis::answer::{Answer, Excerpt};
use serde::Serialize;

use crate::jobs::{Job, Jobs, Standing};

/// Seconds after which one who was turned away may come back.
const RETRY_SECONDS: u64 = 30;

/// Reply to `/api/search`.
#[derive(Debug, Serialize)]
pub(crate) struct SearchReply {
    /// The question as it was understood.
    pub question: String,
    /// Its language, given or detected.
    pub language: String,
    /// Curated questions that are like it, the likest first.
    pub questions: Vec<Suggested>,
    /// The nearest passages, the best first, with their score.
    pub passages: Vec<Scored>,
}

/// A curated question that is like what was asked: suggested, never opened in the reader's stead.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Suggested {
    /// Its wording.
    pub question: String,
    /// Its language.
    pub language: String,
    /// Address of its page.
    pub page: String,
}

impl From<&Question> for Suggested {
    fn from(question: &Question) -> Self {
        Suggested {
            question: question.question.clone(),
            language: question.lang.clone(),
            page: page_of(question),
        }
    }
}

/// Address of the page of a curated question.
pub(crate) fn page_of(question: &Question) -> String {
    format!("/{}/q/{}/", question.lang, question.id)
}

/// A passage and how well it matches.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Scored {
    /// Score of meaning and words together; only good for comparing these passages.
    pub score: f32,
    /// The passage.
    #[serde(flatten)]
    pub excerpt: Excerpt,
}

/// Reply to `/api/ask` and `/api/jobs/{id}`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AskReply {
    /// "curated", "answered", "insufficient", "waiting", "running", "busy" or "failed".
    pub status: &'static str,
    /// Address of the page, when the question is a curated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The answer, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Day on which it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed_on: Option<String>,
    /// The answer in the making.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Progress>,
    /// Curated questions that are like it, while there is no answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Suggested>,
    /// The nearest passages, while there is no answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Scored>,
}

/// An answer in the making.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Progress {
    /// Id of the job.
    pub id: String,
    /// Address that tells how it stands.
    pub url: String,
    /// Address of its events.
    pub events: String,
    /// Jobs before it, itself included while it waits; 0 when it is being made.
    pub position: usize,
    /// The stage that asks the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<&'static str>,
    /// "full" or "degraded", once it is being made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'static str>,
    /// Seconds until it is done, from what others took.
    pub estimated_seconds: u64,
}

impl AskReply {
    /// An answer that is there.
    pub fn answered(answered: &Answered) -> Self {
        AskReply {
            status: if answered.answer.answered { "answered" } else { "insufficient" },
            answer: Some(answered.answer.clone()),
            computed_on: Some(answered.stored.computed_on.clone()),
            ..AskReply::default()
        }
    }

    /// How a job stands.
    pub fn of_job(job: &Job, jobs: &Jobs) -> Self {
        let standing = job.standing.borrow().clone();
        let (status, stage, mode) = match &standing {
            Standing::Done(answered) => return Self::answered(answered),
            Standing::Failed => ("failed", None, None),
            Standing::Waiting => ("waiting", None, None),
            Standing::Running { stage, mode } => ("running", Some(*stage), Some(mode.name())),
        };
        let position = jobs.position(&job.id);
        let progress = Progress {
            id: job.id.clone(),
            url: format!("/api/jobs/{}", job.id),
            events: format!("/api/jobs/{}/events", job.id),
            position,
            stage,
            mode,
            estimated_seconds: jobs.estimate(position),
        };
        AskReply { status, job: Some(progress), ..AskReply::default() }
    }

    /// With its status: 202 while it is being made.
    pub fn respond(self) -> Response {
        let status = match self.status {
            "waiting" | "running" => StatusCode::ACCEPTED,
            "busy" => return turned_away(StatusCode::SERVICE_UNAVAILABLE, self),
            _ => StatusCode::OK,
        };
        (status, Json(self)).into_response()
    }
}

/// Something the asker or the server did wrong.
#[derive(Debug, Serialize)]
struct Fault {
    error: String,
}

fn fault(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(Fault { error: error.into() })).into_response()
}

/// A request that cannot be served as it is.
pub(crate) fn bad_request(problem: impl std::fmt::Display) -> Response {
    fault(StatusCode::BAD_REQUEST, problem.to_string())
}

/// A failure of ours: the reason goes to the log, not to the reader.
pub(crate) fn internal(error: &dyn std::fmt::Display) -> Response {
    tracing::error!("{error}");
    let error = "the server could not do this; its log has the reason";
    fault(StatusCode::INTERNAL_SERVER_ERROR, error)
}

/// The reply to a failed search or answer.
pub(crate) fn failed(error: &BatchError) -> Response {
    match error {
        BatchError::Question(problem) => bad_request(problem),
        BatchError::NothingFeeds { .. } => bad_request(error),
        error => internal(error),
    }
}

/// There is no such job, or its results have expired with the corpus they were made from.
pub(crate) fn no_job() -> Response {
    let error = "there is no such job; the archive may have changed since: ask again";
    fault(StatusCode::NOT_FOUND, error)
}

/// A client that asks too much.
pub(crate) fn too_many() -> Response {
    let error = "too many requests from this address; come back in a moment".to_owned();
    turned_away(StatusCode::TOO_MANY_REQUESTS, Fault { error })
}

fn turned_away(status: StatusCode, body: impl Serialize) -> Response {
    let mut response = (status, Json(body)).into_response();
    let seconds = HeaderValue::from(RETRY_SECONDS);
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    response
}
