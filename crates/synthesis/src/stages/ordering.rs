//! In which order verified quotations are read. The model is given opaque ids and the verified texts;
//! anything it returns that is no subset of the ids, each once, is refused.

use florilegium_llm::{LlmError, Schema};
use serde_json::Value;

use super::{Run, StageFailed};
use crate::prompts::Ordered;
use crate::synthesis::{Note, Verified};

const NAME: &str = "ordering";

/// The numbers of the quotations in the order the model gives, or nothing when what it gives is no
/// order of theirs. `texts` are the verified texts.
pub(crate) fn by_engine(
    run: &mut Run<'_>,
    quotations: &[Verified],
    texts: &[&str],
) -> Result<Option<Vec<usize>>, StageFailed> {
    if quotations.len() < 2 {
        return Ok(None);
    }
    // Ids that tell nothing of a rank.
    let ids: Vec<String> =
        quotations.iter().map(|q| q.text_hash.chars().take(8).collect()).collect();
    let listed: Vec<Ordered<'_>> =
        ids.iter().zip(texts).map(|(id, &text)| Ordered { id, text }).collect();
    let user = run.means.prompts.ordering(&listed, run.asked.text)?;
    let list = Schema::Array {
        items: Box::new(Schema::words(ids.iter().map(String::as_str))),
        least: 1,
        most: ids.len(),
    };
    let schema = Schema::Object(vec![("order".into(), list)]);
    let refused = |run: &mut Run<'_>, problem: String| {
        run.trace.notes.push(Note::OrderRefused { problem });
        None
    };
    let value = match run.write(NAME, user, schema, 16 + 16 * ids.len()) {
        Ok(value) => value,
        // The quotations stand without it.
        Err(StageFailed::Engine {
            source:
                error @ (LlmError::Model { .. }
                | LlmError::Malformed { .. }
                | LlmError::PromptTooLong { .. }),
            ..
        }) => return Ok(refused(run, error.to_string())),
        Err(error) => return Err(error),
    };
    Ok(match order(&value, &ids) {
        Ok(order) => Some(order),
        Err(problem) => refused(run, problem),
    })
}

/// Reads an order: ids that are known, none twice, at least one.
fn order(value: &Value, ids: &[String]) -> Result<Vec<usize>, String> {
    let given = value.get("order").and_then(Value::as_array).ok_or("there is no order")?;
    let mut order = Vec::new();
    for id in given.iter().take(ids.len() + 1) {
        let id = id.as_str().ok_or("an id is no text")?;
        let mut same = ids.iter().enumerate().filter(|(_, known)| *known == id);
        let (at, _) = same.next().ok_or("an id is unknown")?;
        if same.next().is_some() || order.contains(&at) {
            return Err("an id stands twice".into());
        }
        order.push(at);
    }
    if order.is_empty() { Err("it is empty".into()) } else { Ok(order) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_order_of_the_ids_is_one() {
        let ids = ["a1".to_owned(), "b2".to_owned(), "c3".to_owned()];
        assert_eq!(order(&json!({"order": ["c3", "a1"]}), &ids), Ok(vec![2, 0]));
        for wrong in [
            json!({"order": []}),
            json!({"order": ["a1", "a1"]}),
            json!({"order": ["a1", "d4"]}),
            json!({"order": ["a1", "and so, in conclusion", "b2"]}),
            json!({"order": [1, 2]}),
            json!({"order": "a1"}),
            json!([]),
        ] {
            assert!(order(&wrong, &ids).is_err(), "{wrong}");
        }
        let twins = ["a1".to_owned(), "a1".to_owned()];
        assert!(order(&json!({"order": ["a1"]}), &twins).is_err());
    }
}
