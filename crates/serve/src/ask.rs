//! Search and ask, as JSON and as pages.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State as Shared};
use axum::http::header;
use axum::response::{Html, IntoResponse, Redirect, Response};
use florilegium_batch::{BatchError, normalise};
use florilegium_corpus::language;
use florilegium_index::Filter;
use florilegium_publish::{AskPage, Notice, ask_page};
use florilegium_questions::{Status, check_question};
use serde::Deserialize;

use crate::State;
use crate::jobs::Standing;
use crate::reply::{AskReply, Scored, SearchReply, bad_request, busy, failed, internal};

/// Passages listed when no answer is there.
const PASSAGES: usize = 8;
/// The most passages that a search may ask for.
const MOST_PASSAGES: usize = 50;
/// Seconds after which a page that waits for its answer looks again.
const REFRESH_SECONDS: &str = "4";

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    /// The question.
    #[serde(default)]
    q: String,
    /// Its language; detected when not given.
    lang: Option<String>,
    /// Search: only this collection.
    collection: Option<String>,
    /// Search: how many passages.
    k: Option<usize>,
}

impl Asked {
    /// The language of the question: given, or detected among those of the pages.
    fn language(&self, state: &State) -> String {
        let known = &state.library.pipeline.languages;
        match &self.lang {
            Some(lang) if known.contains(lang) => lang.clone(),
            _ => language::detect(&self.q, known),
        }
    }
}

/// `/api/search`.
pub(crate) async fn api_search(
    Shared(state): Shared<Arc<State>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let asked = match asked {
        Ok(Query(asked)) => asked,
        Err(rejection) => return bad_request(rejection.body_text()),
    };
    if let Some(collection) = &asked.collection
        && state.library.archive.collection(collection).is_none()
    {
        return bad_request(format!("there is no collection {collection:?}"));
    }
    let k = asked.k.unwrap_or(PASSAGES);
    if !(1..=MOST_PASSAGES).contains(&k) {
        return bad_request(format!("k is {k}; it can be 1 to {MOST_PASSAGES}"));
    }
    // A search crosses languages unless one is asked for.
    let filter = Filter {
        collections: asked.collection.iter().cloned().collect(),
        languages: asked.lang.iter().cloned().collect(),
    };
    let language = asked.language(&state);
    match search(&state, &asked.q, filter, k).await {
        Ok(passages) => {
            Json(SearchReply { question: normalise(&asked.q), language, passages }).into_response()
        }
        Err(response) => response,
    }
}

/// `GET /api/ask`.
pub(crate) async fn api_ask(
    Shared(state): Shared<Arc<State>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    match asked {
        Ok(Query(asked)) => answer(&state, &asked).await,
        Err(rejection) => bad_request(rejection.body_text()),
    }
}

/// `POST /api/ask`, with the same fields as JSON.
pub(crate) async fn api_ask_post(
    Shared(state): Shared<Arc<State>>,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Response {
    match asked {
        Ok(Json(asked)) => answer(&state, &asked).await,
        Err(rejection) => bad_request(rejection.body_text()),
    }
}

async fn answer(state: &Arc<State>, asked: &Asked) -> Response {
    if let Err(problem) = check_question(&asked.q) {
        return bad_request(problem);
    }
    let question = normalise(&asked.q);
    let language = asked.language(state);
    let page = curated(state, &question, &language);
    let Some(mut standing) = state.jobs.start(&state.library, &question, &language) else {
        return match search(state, &question, Filter::default(), PASSAGES).await {
            Ok(passages) => busy(AskReply { status: "busy", page, answer: None, passages }),
            Err(response) => response,
        };
    };
    let ended = standing.wait_for(|standing| !matches!(standing, Standing::Running)).await;
    let ended = ended.map(|standing| standing.clone()).unwrap_or(Standing::Failed);
    if let Standing::Done(answered) = ended {
        let answer = answered.answer.clone();
        let status = if answer.answered { "answered" } else { "insufficient" };
        return Json(AskReply { status, page, answer: Some(answer), passages: Vec::new() })
            .into_response();
    }
    state.jobs.take_failure(&question, &language);
    match search(state, &question, Filter::default(), PASSAGES).await {
        Ok(passages) => {
            Json(AskReply { status: "failed", page, answer: None, passages }).into_response()
        }
        Err(response) => response,
    }
}

/// `/ask`: a page that works without scripts. The passages come at once; while the answer is being
/// made the page looks again every few seconds.
pub(crate) async fn page(
    Shared(state): Shared<Arc<State>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let asked = match asked {
        Ok(Query(asked)) => asked,
        Err(rejection) => return bad_request(rejection.body_text()),
    };
    let language = asked.language(&state);
    let show = |page: &AskPage<'_>| match ask_page(&state.chrome, page) {
        Ok(html) => Html(html).into_response(),
        Err(error) => internal(&error),
    };
    let empty = AskPage {
        language: &language,
        question: &asked.q,
        problem: None,
        answer: None,
        excerpts: &[],
        notice: None,
        computed_on: "",
    };
    if let Err(problem) = check_question(&asked.q) {
        return show(&AskPage { problem: Some(&problem), ..empty });
    }
    let question = normalise(&asked.q);
    if let Some(address) = curated(&state, &question, &language) {
        return Redirect::to(&address).into_response();
    }
    let mut notice = Notice::Preparing;
    if state.jobs.take_failure(&question, &language) {
        notice = Notice::Failed;
    } else if let Some(mut standing) = state.jobs.start(&state.library, &question, &language) {
        // An answer that is kept already is there in an instant.
        let soon = std::time::Duration::from_millis(400);
        let ended = standing.wait_for(|standing| !matches!(standing, Standing::Running));
        if let Ok(Ok(ended)) = tokio::time::timeout(soon, ended).await {
            match ended.clone() {
                Standing::Done(answered) => {
                    let page = AskPage {
                        answer: Some(&answered.answer),
                        computed_on: &answered.stored.computed_on,
                        ..empty
                    };
                    return show(&page);
                }
                _ => notice = Notice::Failed,
            }
        }
    } else {
        notice = Notice::Busy;
    }
    let found = match search(&state, &question, Filter::default(), PASSAGES).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let excerpts: Vec<_> = found.into_iter().map(|scored| scored.excerpt).collect();
    let mut response = show(&AskPage { excerpts: &excerpts, notice: Some(notice), ..empty });
    if matches!(notice, Notice::Preparing) {
        let refresh = header::HeaderName::from_static("refresh");
        response.headers_mut().insert(refresh, header::HeaderValue::from_static(REFRESH_SECONDS));
    }
    response
}

/// The address of the page of a curated question that is the same after folding.
fn curated(state: &State, question: &str, language: &str) -> Option<String> {
    let found = state.questions.find(language, question)?;
    (found.status == Status::Published).then(|| format!("/{}/q/{}/", found.lang, found.id))
}

/// Searches outside the threads that serve requests: embedding a question takes some milliseconds.
async fn search(
    state: &Arc<State>,
    question: &str,
    filter: Filter,
    k: usize,
) -> Result<Vec<Scored>, Response> {
    let library = state.library.clone();
    let question = question.to_owned();
    let found = tokio::task::spawn_blocking(move || {
        check_question(&question)?;
        let found = library.search(&normalise(&question), &filter, k)?;
        let excerpts = library.excerpts(&found)?;
        let scores = found.iter().map(|found| found.hit.fused);
        Ok::<_, BatchError>(
            scores.zip(excerpts).map(|(score, excerpt)| Scored { score, excerpt }).collect(),
        )
    });
    match found.await {
        Ok(found) => found.map_err(failed),
        Err(error) => Err(internal(&error)),
    }
}
