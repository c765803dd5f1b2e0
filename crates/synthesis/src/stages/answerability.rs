//! Rule 2, asked of all relevant passages together. A model favours what stands first or last: it is
//! asked with the passages in two orders, and both answers count.

use florilegium_llm::{Judgement, YES_NO};

use super::{Run, StageFailed};
use crate::prompts::PromptError;

const NAME: &str = "answerability";

/// Asks whether these candidates, together, state the answer, and notes the probabilities.
pub(crate) fn joint(
    run: &mut Run<'_>,
    relevant: &[usize],
    ids: &[String],
) -> Result<(), StageFailed> {
    if relevant.is_empty() {
        return Ok(());
    }
    let judgements = run.with_fewer_passages(NAME, relevant.to_vec(), |run, passages| {
        let mut orders = vec![passages.to_vec()];
        if passages.len() > 1 {
            orders.push(passages.iter().rev().copied().collect());
        }
        let users = orders
            .iter()
            .map(|order| {
                let user =
                    run.means.prompts.answerability(&run.listed(order, ids), run.asked.text)?;
                Ok((user, YES_NO))
            })
            .collect::<Result<Vec<_>, PromptError>>()?;
        run.decide(NAME, users)
    })?;
    run.trace.joint = judgements.iter().map(Judgement::first).collect();
    Ok(())
}
