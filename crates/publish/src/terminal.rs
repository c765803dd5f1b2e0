//! An answer as plain text.

use florilegium_synthesis::answer::Answer;
use minijinja::Value;
use serde::Serialize;

use crate::error::PublishError;
use crate::messages::messages;
use crate::templates;
use crate::view::AnswerView;

#[derive(Debug, Serialize)]
struct Page {
    m: Value,
    answer: AnswerView,
}

/// An answer for a terminal, in the language of the question where the pages speak it, else in
/// English. Control characters are left out: a terminal would obey them.
pub fn answer_text(answer: &Answer) -> Result<String, PublishError> {
    let m = messages(&answer.language).or_else(|_| messages("en"))?;
    let text = templates::render("answer.txt", Page { m, answer: AnswerView::new(answer)? })?;
    Ok(text.chars().filter(|&c| c == '\n' || !c.is_control()).collect())
}
