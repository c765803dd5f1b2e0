//! The pages of the live server, made from the templates of the published ones.
//!
//! They stand at the root of the site (`/ask`, `/search`), for their links are relative to it.

use florilegium_questions::{LIMIT, QuestionProblem};
use florilegium_synthesis::answer::{Answer, Excerpt};
use serde::Serialize;

use crate::error::PublishError;
use crate::frame::Frame;
use crate::pages::not_found;
use crate::site::Chrome;
use crate::text::{direction, plain};
use crate::view::{AnswerView, ExcerptView, Known, Places, excerpts};

/// Why there is no synthesis on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Notice {
    /// There is no language model to make one.
    Unavailable,
    /// Too many questions wait already.
    Busy,
    /// One is being made.
    Preparing,
    /// It was tried and failed.
    Failed,
}

/// What the server has to say to a question.
#[derive(Debug, Clone, Copy)]
pub struct AskPage<'a> {
    /// Language of the page; where the site does not speak it, its default is taken.
    pub language: &'a str,
    /// The question as it was typed; empty to show the form only.
    pub question: &'a str,
    /// Why it is not taken as a question.
    pub problem: Option<&'a QuestionProblem>,
    /// The answer, where there is one.
    pub answer: Option<&'a Answer>,
    /// The passages nearest in meaning. Shown where there is no answer that lists its own.
    pub excerpts: &'a [Excerpt],
    /// Why there is no answer.
    pub notice: Option<Notice>,
    /// When the answer was computed: an ISO date.
    pub computed_on: &'a str,
}

#[derive(Debug, Serialize)]
struct LivePage {
    frame: Frame,
    question: String,
    dir: &'static str,
    answer: Option<AnswerView>,
    excerpts: Vec<ExcerptView>,
    notice: Option<Notice>,
    /// Key of the message, and what fills it.
    problem: Option<Problem>,
    computed_on: String,
    /// Whether questions are noted.
    logged: bool,
}

#[derive(Debug, Serialize)]
struct Problem {
    key: &'static str,
    limit: usize,
    characters: usize,
}

impl Problem {
    fn new(problem: &QuestionProblem) -> Self {
        let (key, characters) = match problem {
            QuestionProblem::Empty => ("empty", 0),
            QuestionProblem::TooLong { characters } => ("too_long", *characters),
            QuestionProblem::Control { .. } => ("control", 0),
        };
        Problem { key, limit: LIMIT, characters }
    }
}

/// The page that answers a question which nobody has curated.
pub fn ask_page(chrome: &Chrome, page: &AskPage<'_>) -> Result<String, PublishError> {
    let language = chrome.speak(page.language)?;
    let known = Known { documents: &chrome.documents, places: &Places::new() };
    let answer = page.answer.map(|answer| AnswerView::new(answer, known)).transpose()?;
    let context = LivePage {
        frame: Frame::at(chrome, language, "ask")?.unlisted(),
        question: shortened(page.question),
        dir: direction(language),
        excerpts: excerpts(page.excerpts),
        notice: page.notice,
        problem: page.problem.map(Problem::new),
        computed_on: plain(page.computed_on),
        logged: chrome.logged,
        answer,
    };
    chrome.theme.render("ask.html", context)
}

/// The page that lists the passages nearest to a question, without an answer.
pub fn search_page(
    chrome: &Chrome,
    language: &str,
    question: &str,
    found: &[Excerpt],
) -> Result<String, PublishError> {
    let language = chrome.speak(language)?;
    let context = LivePage {
        frame: Frame::at(chrome, language, "ask")?.unlisted(),
        question: shortened(question),
        dir: direction(language),
        answer: None,
        excerpts: excerpts(found),
        notice: None,
        problem: None,
        computed_on: String::new(),
        logged: chrome.logged,
    };
    chrome.theme.render("search.html", context)
}

/// The page for a wrong address.
pub fn not_found_page(chrome: &Chrome, language: &str) -> Result<String, PublishError> {
    not_found(chrome, chrome.speak(language)?)
}

/// A question as a page repeats it; one over the limit would fill the screen.
fn shortened(question: &str) -> String {
    let mut shown: String = plain(question.trim()).chars().take(LIMIT).collect();
    if question.trim().chars().count() > LIMIT {
        shown.push('…');
    }
    shown
}
