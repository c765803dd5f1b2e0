//! Search and ask, as JSON and as pages.
//!
//! A question is answered in this order: a curated question opens its page; an answer that is kept comes
//! at once; else the curated questions and passages that are near come at once, and a job makes a
//! synthesis.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{ConnectInfo, Path, Query, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Redirect, Response};
use florilegium_batch::{Answered, BatchError, normalise};
use florilegium_corpus::language;
use florilegium_index::Filter;
use florilegium_publish::{AskPage, Notice, ask_page};
use florilegium_questions::check_question;
use futures_util::stream::{self, Stream};
use serde::Deserialize;

use crate::State;
use crate::jobs::{Job, Standing};
use crate::limits::Client;
use crate::loaded::Loaded;
use crate::reply::{
    AskReply, Scored, SearchReply, Suggested, bad_request, failed, internal, no_job, page_of,
};

/// Passages listed when no answer is there.
const PASSAGES: usize = 8;
/// The most passages that a search may ask for.
const MOST_PASSAGES: usize = 50;
/// The longest that a request may wait for its answer.
const LONGEST_WAIT: u64 = 60;
/// Seconds after which a page that waits for its answer looks again.
const REFRESH_SECONDS: &str = "4";
/// How often a stream of events says where a job stands in the queue.
const TELL_EVERY: Duration = Duration::from_secs(2);

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
    /// Ask: seconds to wait for the answer.
    wait: Option<u64>,
    /// The page: the job that it waits for.
    job: Option<String>,
}

impl Asked {
    /// The language of the question: given, or detected among those of the pages.
    fn language(&self, loaded: &Loaded) -> String {
        let known = &loaded.library.pipeline.languages;
        match &self.lang {
            Some(lang) if known.contains(lang) => lang.clone(),
            _ => language::detect(&self.q, known),
        }
    }
}

type Peer = Option<axum::Extension<ConnectInfo<SocketAddr>>>;

/// `/api/search`.
pub(crate) async fn api_search(
    Shared(state): Shared<Arc<State>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let asked = match asked {
        Ok(Query(asked)) => asked,
        Err(rejection) => return bad_request(rejection.body_text()),
    };
    let loaded = state.current.get();
    if let Some(collection) = &asked.collection
        && loaded.library.archive.collection(collection).is_none()
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
    let language = asked.language(&loaded);
    let question = normalise(&asked.q);
    match search(&loaded, &question, &language, filter, k).await {
        Ok(Near { questions, passages }) => {
            Json(SearchReply { question, language, questions, passages }).into_response()
        }
        Err(response) => response,
    }
}

/// `GET /api/ask`.
pub(crate) async fn api_ask(
    shared: Shared<Arc<State>>,
    peer: Peer,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    match asked {
        Ok(Query(asked)) => answer(&shared.0, &headers, &peer, &asked).await,
        Err(rejection) => bad_request(rejection.body_text()),
    }
}

/// `POST /api/ask`, with the same fields as JSON.
pub(crate) async fn api_ask_post(
    shared: Shared<Arc<State>>,
    peer: Peer,
    headers: HeaderMap,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Response {
    match asked {
        Ok(Json(asked)) => answer(&shared.0, &headers, &peer, &asked).await,
        Err(rejection) => bad_request(rejection.body_text()),
    }
}

async fn answer(state: &Arc<State>, headers: &HeaderMap, peer: &Peer, asked: &Asked) -> Response {
    if let Err(problem) = check_question(&asked.q) {
        return bad_request(problem);
    }
    let loaded = state.current.get();
    let question = normalise(&asked.q);
    let language = asked.language(&loaded);
    let found = match find(state, &loaded, &question, &language, client(state, headers, peer)).await
    {
        Ok(found) => found,
        Err(response) => return response,
    };
    let near = async |reply: AskReply| match search(
        &loaded,
        &question,
        &language,
        Filter::default(),
        PASSAGES,
    )
    .await
    {
        Ok(Near { questions, passages }) => AskReply { questions, passages, ..reply }.respond(),
        Err(response) => response,
    };
    match found {
        Found::Curated(page) => {
            AskReply { status: "curated", page: Some(page), ..AskReply::default() }.respond()
        }
        Found::Kept(answered) => AskReply::answered(&answered).respond(),
        Found::Refused => near(AskReply { status: "busy", ..AskReply::default() }).await,
        Found::Job(mut job) => {
            let wait = Duration::from_secs(asked.wait.unwrap_or(0).min(LONGEST_WAIT));
            let ended = job.standing.wait_for(Standing::has_ended);
            let _ = tokio::time::timeout(wait, ended).await;
            let reply = AskReply::of_job(&job, &state.jobs);
            if reply.answer.is_some() { reply.respond() } else { near(reply).await }
        }
    }
}

/// What there is for a question.
enum Found {
    /// It is a curated one: the address of its page.
    Curated(String),
    /// Its answer is kept.
    Kept(Box<Answered>),
    /// It is being made, or was.
    Job(Job),
    /// It cannot be taken now.
    Refused,
}

async fn find(
    state: &Arc<State>,
    loaded: &Arc<Loaded>,
    question: &str,
    language: &str,
    client: Option<Client>,
) -> Result<Found, Response> {
    if let Some(found) = loaded.questions.find(language, question) {
        state.log.note(language, question, "curated");
        return Ok(Found::Curated(page_of(found)));
    }
    if let Some(kept) = kept(loaded, question, language).await? {
        let outcome = if kept.answer.answered { "answered" } else { "insufficient" };
        state.log.note(language, question, outcome);
        return Ok(Found::Kept(Box::new(kept)));
    }
    let corpus = loaded.library.corpus();
    Ok(match state.jobs.start(question, language, corpus, client) {
        Ok(job) => Found::Job(job),
        Err(refused) => {
            tracing::debug!("a question was not taken: {refused:?}");
            state.log.note(language, question, "busy");
            Found::Refused
        }
    })
}

/// The answer to a question that was asked before of the archive as it is now.
async fn kept(
    loaded: &Arc<Loaded>,
    question: &str,
    language: &str,
) -> Result<Option<Answered>, Response> {
    let (loaded, question, language) = (loaded.clone(), question.to_owned(), language.to_owned());
    let look = move || loaded.library.answered_before(&question, &language, &[]);
    match tokio::task::spawn_blocking(look).await {
        Ok(found) => found.map_err(|error| failed(&error)),
        Err(error) => Err(internal(&error)),
    }
}

/// `/api/jobs/{id}`.
pub(crate) async fn api_job(Shared(state): Shared<Arc<State>>, Path(id): Path<String>) -> Response {
    match job(&state, &id).await {
        Ok(Ok(job)) => AskReply::of_job(&job, &state.jobs).respond(),
        Ok(Err(kept)) => AskReply::answered(&kept).respond(),
        Err(response) => response,
    }
}

/// A job, or, when it ended before the last restart, the answer it made.
async fn job(state: &Arc<State>, id: &str) -> Result<Result<Job, Box<Answered>>, Response> {
    let Some(job) = state.jobs.find(id) else { return Err(no_job()) };
    if matches!(job.record.ended, Some(crate::jobs::Ended::Made))
        && !matches!(*job.standing.borrow(), Standing::Done(_))
    {
        let loaded = state.current.get();
        return match kept(&loaded, &job.record.question, &job.record.language).await? {
            Some(answered) => Ok(Err(Box::new(answered))),
            None => Err(no_job()),
        };
    }
    Ok(Ok(job))
}

/// `/api/jobs/{id}/events`: server-sent events, each with what `/api/jobs/{id}` would say; the last is
/// named "end".
pub(crate) async fn api_events(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Response {
    match job(&state, &id).await {
        Ok(Ok(job)) => Sse::new(events(state, job))
            .keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
            .into_response(),
        Ok(Err(kept)) => {
            let reply = AskReply::answered(&kept);
            Sse::new(stream::once(async move { Ok::<_, Infallible>(event(&reply, true)) }))
                .into_response()
        }
        Err(response) => response,
    }
}

fn events(state: Arc<State>, job: Job) -> impl Stream<Item = Result<Event, Infallible>> {
    let told = None::<String>;
    stream::unfold(Some((state, job, told)), |step| async move {
        let (state, mut job, mut told) = step?;
        loop {
            let ended = job.standing.borrow().has_ended();
            let reply = AskReply::of_job(&job, &state.jobs);
            let now = serde_json::to_string(&reply).unwrap_or_default();
            if told.as_deref() != Some(now.as_str()) {
                told = Some(now);
                let event = event(&reply, ended);
                return Some((Ok(event), (!ended).then_some((state, job, told))));
            }
            // The place in the queue changes without a change of the job itself.
            let _ = tokio::time::timeout(TELL_EVERY, job.standing.changed()).await;
        }
    })
}

fn event(reply: &AskReply, is_last: bool) -> Event {
    let name = if is_last { "end" } else { "progress" };
    Event::default().event(name).json_data(reply).unwrap_or_else(|_| Event::default().event(name))
}

/// `/ask`: a page that works without scripts. The passages come at once; while the answer is being
/// made the page looks again every few seconds.
pub(crate) async fn page(
    Shared(state): Shared<Arc<State>>,
    peer: Peer,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let asked = match asked {
        Ok(Query(asked)) => asked,
        Err(rejection) => return bad_request(rejection.body_text()),
    };
    let loaded = state.current.get();
    let language = asked.language(&loaded);
    let show = |page: &AskPage<'_>| match ask_page(&loaded.chrome, page) {
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
    let answered = |answered: &Answered| {
        show(&AskPage {
            answer: Some(&answered.answer),
            computed_on: &answered.stored.computed_on,
            ..empty
        })
    };
    // A page that looks again asks for its job; it does not start a failed one anew.
    let waited_for = match &asked.job {
        Some(id) => match job(&state, id).await {
            Ok(Ok(job)) => Some(Found::Job(job)),
            Ok(Err(kept)) => Some(Found::Kept(kept)),
            Err(_) => None,
        },
        None => None,
    };
    let found = match waited_for {
        Some(found) => found,
        None => {
            let client = client(&state, &headers, &peer);
            match find(&state, &loaded, &question, &language, client).await {
                Ok(found) => found,
                Err(response) => return response,
            }
        }
    };
    let mut refresh = None;
    let notice = match &found {
        Found::Curated(address) => return Redirect::to(address).into_response(),
        Found::Kept(kept) => return answered(kept),
        Found::Refused => Notice::Busy,
        Found::Job(job) => match &*job.standing.borrow() {
            Standing::Done(done) => return answered(done),
            Standing::Failed => Notice::Failed,
            Standing::Waiting | Standing::Running { .. } => {
                refresh = Some(job.id.clone());
                Notice::Preparing
            }
        },
    };
    let near = match search(&loaded, &question, &language, Filter::default(), PASSAGES).await {
        Ok(near) => near,
        Err(response) => return response,
    };
    let excerpts: Vec<_> = near.passages.into_iter().map(|scored| scored.excerpt).collect();
    let mut response = show(&AskPage { excerpts: &excerpts, notice: Some(notice), ..empty });
    if let Some(id) = refresh {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("q", &question)
            .append_pair("lang", &language)
            .append_pair("job", &id)
            .finish();
        let refresh = format!("{REFRESH_SECONDS}; url=/ask?{query}");
        if let Ok(value) = HeaderValue::from_str(&refresh) {
            response.headers_mut().insert(header::HeaderName::from_static("refresh"), value);
        }
    }
    if notice == Notice::Busy {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("30"));
    }
    response
}

fn client(state: &State, headers: &HeaderMap, peer: &Peer) -> Option<Client> {
    let peer = peer.as_ref().map(|peer| peer.0.0);
    Client::of_request(headers, peer, &state.settings)
}

/// What is near a question.
struct Near {
    questions: Vec<Suggested>,
    passages: Vec<Scored>,
}

/// Searches outside the threads that serve requests: embedding a question takes some milliseconds.
async fn search(
    loaded: &Arc<Loaded>,
    question: &str,
    language: &str,
    filter: Filter,
    k: usize,
) -> Result<Near, Response> {
    let (loaded, question, language) = (loaded.clone(), question.to_owned(), language.to_owned());
    let found = tokio::task::spawn_blocking(move || {
        check_question(&question)?;
        let found = loaded.library.search(&question, &filter, k)?;
        let excerpts = loaded.library.excerpts(&found)?;
        let scores = found.iter().map(|found| found.hit.fused);
        let passages =
            scores.zip(excerpts).map(|(score, excerpt)| Scored { score, excerpt }).collect();
        let questions =
            loaded.near(&question, &language)?.into_iter().map(Suggested::from).collect();
        Ok::<_, BatchError>(Near { questions, passages })
    });
    match found.await {
        Ok(found) => found.map_err(|error| failed(&error)),
        Err(error) => Err(internal(&error)),
    }
}
