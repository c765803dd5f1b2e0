//! Rule 3: every retrieved passage is judged on its own, in two ways: whether it states the answer, and
//! whether the model would copy words out of it as the answer. A small model errs differently in each.

use florilegium_llm::{Judgement, SOME_OR_NONE, YES_NO};

use super::{Run, StageFailed};
use crate::calibration::{log_odds, logistic};
use crate::prompts::{PassagePrompt, PromptError};
use crate::synthesis::Judged;

const NAME: &str = "relevance";

/// The candidates that go on, the most relevant first.
pub(crate) fn relevance(run: &mut Run<'_>) -> Result<Vec<usize>, StageFailed> {
    let prompts = run.means.prompts;
    let asked = run
        .candidates
        .iter()
        .flat_map(|candidate| {
            let prompt = PassagePrompt {
                title: candidate.title,
                headings: &candidate.passage.headings,
                passage: candidate.text,
                question: run.asked.text,
            };
            [
                prompts.relevance(prompt).map(|user| (user, YES_NO)),
                prompts.words(prompt).map(|user| (user, SOME_OR_NONE)),
            ]
        })
        .collect::<Result<Vec<_>, PromptError>>()?;
    let judgements = run.decide_each(NAME, asked, |at| at / 2)?;
    let of = |judgement: Option<&Option<Judgement>>| {
        judgement.and_then(Option::as_ref).map_or((0.0, 0.0), |j| (j.first(), j.mass))
    };
    let settings = run.means.settings;
    for (at, candidate) in run.candidates.iter().enumerate() {
        let (states, mass) = of(judgements.get(2 * at));
        let (words, _) = of(judgements.get(2 * at + 1));
        run.trace.passages.push(Judged {
            passage: candidate.passage.id.clone(),
            similarity: f64::from(candidate.similarity),
            states,
            words,
            relevance: logistic((log_odds(states) + log_odds(words)) / 2.0),
            mass,
            relevant: false,
        });
    }
    let relevance = |at: usize| run.trace.passages[at].relevance;
    let mut order: Vec<usize> =
        (0..run.candidates.len()).filter(|&at| relevance(at) >= settings.relevant_at).collect();
    order.sort_by(|&a, &b| relevance(b).total_cmp(&relevance(a)).then(a.cmp(&b)));
    order.truncate(settings.relevant_passages);
    for &at in &order {
        run.trace.passages[at].relevant = true;
    }
    Ok(order)
}
