//! An answer as plain text.

use florilegium_synthesis::answer::Answer;
use minijinja::Value;
use serde::Serialize;

use crate::error::PublishError;
use crate::sources::Documents;
use crate::theme::Theme;
use crate::view::{AnswerView, Known, Places};

#[derive(Debug, Serialize)]
struct Page {
    m: Value,
    answer: AnswerView,
}

/// An answer for a terminal, in the language of the question where the pages speak it, else in
/// English. Control characters are left out: a terminal would obey them.
pub fn answer_text(answer: &Answer) -> Result<String, PublishError> {
    let theme = Theme::built_in()?;
    let m = theme.messages(&answer.language).or_else(|_| theme.messages("en"))?;
    let known = Known { documents: &Documents::new(), places: &Places::new() };
    let page = Page { m, answer: AnswerView::new(answer, known)? };
    let text = theme.render("answer.txt", page)?;
    Ok(text.chars().filter(|&c| c == '\n' || !c.is_control()).collect())
}
