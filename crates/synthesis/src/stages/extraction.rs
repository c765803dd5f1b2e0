//! Which words of the passages state the answer (rule 4): sentences that are judged one by one, or
//! propositions that a model writes, each with its quotation.

use std::ops::Range;

use florilegium_llm::schema::Quotable;
use florilegium_llm::{Schema, YES_NO};
use serde_json::Value;

use super::{Run, StageFailed};
use crate::calibration::SentenceSignals;
use crate::candidate::Candidate;
use crate::prompts::{PassagePrompt, PromptError};
use crate::settings::Settings;
use crate::synthesis::Proposal;

const NAME: &str = "extraction";
/// Letters a written proposition may have.
const LONGEST_PROPOSITION: usize = 200;
/// Neighbouring sentences that one written quotation may have.
const LONGEST_RUN: usize = 3;
/// Output tokens allowed for each proposition: its quotation may be long, in a costly script.
const ALLOWANCE: usize = 400;

/// A proposal, and the candidate it names; none when it names what was not there.
pub(crate) type Proposed = (Option<usize>, Proposal);

/// A sentence on its way.
struct Sentence<'a> {
    candidate: usize,
    range: Range<usize>,
    text: &'a str,
    similarity: f64,
    coverage: f64,
}

/// Judges the sentences of the relevant candidates that are near the question.
pub(crate) fn sentences(
    run: &mut Run<'_>,
    relevant: &[usize],
) -> Result<Vec<Proposed>, StageFailed> {
    let mut sentences: Vec<Sentence<'_>> = Vec::new();
    for &at in relevant {
        sentences.extend(near_sentences(run, at)?);
    }
    let asked = sentences
        .iter()
        .map(|sentence| {
            let candidate = &run.candidates[sentence.candidate];
            let prompt = PassagePrompt {
                title: candidate.title,
                headings: &candidate.passage.headings,
                passage: candidate.text,
                question: run.asked.text,
            };
            Ok((run.means.prompts.sentence(prompt, sentence.text)?, YES_NO))
        })
        .collect::<Result<Vec<_>, PromptError>>()?;
    let judgements = run.decide_each(NAME, asked, |at| sentences[at].candidate)?;
    let judged = sentences.iter().zip(&judgements);
    let proposed = judged.filter_map(|(sentence, judgement)| {
        let judgement = judgement.as_ref()?;
        let signals = SentenceSignals {
            sentence: judgement.first(),
            passage: run.trace.passages[sentence.candidate].relevance,
            similarity: sentence.similarity,
            coverage: sentence.coverage,
        };
        let proposal = Proposal {
            passage: run.candidates[sentence.candidate].passage.id.clone(),
            proposition: None,
            quotation: sentence.text.to_owned(),
            probability: Some(signals.sentence),
            similarity: signals.similarity,
            coverage: signals.coverage,
            score: run.means.settings.weights.score(&signals),
            outcome: None,
        };
        Some((Some(sentence.candidate), proposal))
    });
    Ok(proposed.collect())
}

/// Has propositions written. With `consolidated`, the model first says whether the passages answer:
/// when they do not, there are none.
pub(crate) fn propositions(
    run: &mut Run<'_>,
    passages: &[usize],
    ids: &[String],
    consolidated: bool,
) -> Result<Vec<Proposed>, StageFailed> {
    if passages.is_empty() {
        return Ok(Vec::new());
    }
    let most = run.means.settings.quotations.max(1);
    let value = run.with_fewer_passages(NAME, passages.to_vec(), |run, passages| {
        let listed = run.listed(passages, ids);
        let user = run.means.prompts.extraction(&listed, run.asked.text, most, consolidated)?;
        drop(listed);
        let schema = schema(run.candidates, passages, ids, run.means.settings, most, consolidated);
        run.write(NAME, user, schema, ALLOWANCE * most)
    })?;
    if consolidated && value.get("answerable").and_then(Value::as_str) != Some("yes") {
        return Ok(Vec::new());
    }
    let written = value.get("propositions").and_then(Value::as_array).cloned().unwrap_or_default();
    // More than was asked for is no reason to look at all of it.
    written.iter().take(most).map(|item| proposition(run, item, ids)).collect()
}

/// One written proposition. Whatever is in it, it is only proposed.
fn proposition(run: &Run<'_>, item: &Value, ids: &[String]) -> Result<Proposed, StageFailed> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let named = text("passage");
    let at = ids.iter().position(|id| *id == named);
    let quotation = text("quotation");
    let candidate = at.and_then(|at| run.candidates.get(at));
    let likeness = match candidate {
        Some(candidate) if !quotation.trim().is_empty() => {
            let above = above(candidate);
            let likeness =
                (run.means.compare)(&[&quotation], &above).map_err(StageFailed::Likeness)?;
            likeness.first().copied()
        }
        _ => None,
    };
    Ok((
        at,
        Proposal {
            passage: candidate.map_or(named, |candidate| candidate.passage.id.clone()),
            proposition: Some(text("proposition")),
            quotation,
            probability: None,
            similarity: likeness.map_or(0.0, |likeness| f64::from(likeness.similarity)),
            coverage: likeness.map_or(0.0, |likeness| f64::from(likeness.coverage)),
            score: 1.0,
            outcome: None,
        },
    ))
}

/// What may be written: a quotation stands under the id of its own passage.
fn schema(
    candidates: &[Candidate<'_>],
    passages: &[usize],
    ids: &[String],
    settings: &Settings,
    most: usize,
    consolidated: bool,
) -> Schema {
    let of_passage = |&at: &usize| {
        let candidate = candidates.get(at)?;
        let sentences: Vec<Range<usize>> =
            whole_sentences(candidate).into_iter().map(|(inside, _)| inside).collect();
        let quotable = Quotable::new(candidate.text, &sentences, LONGEST_RUN).ok()?;
        Some(Schema::Object(vec![
            ("passage".into(), Schema::Constant(ids.get(at)?.as_str().into())),
            ("proposition".into(), Schema::Text { longest: LONGEST_PROPOSITION }),
            ("quotation".into(), Schema::quotation(settings.quotation, quotable)),
        ]))
    };
    let items: Vec<Schema> = passages.iter().filter_map(of_passage).collect();
    let most = if items.is_empty() { 0 } else { most };
    let list = Schema::Array { items: Box::new(Schema::Choice(items)), least: 0, most };
    let mut members = vec![("propositions".to_owned(), list)];
    if consolidated {
        members.insert(0, ("answerable".to_owned(), Schema::words(["yes", "no"])));
    }
    Schema::Object(members)
}

/// The sentences of a candidate: bytes of its text, and bytes of its document.
pub(crate) fn whole_sentences(candidate: &Candidate<'_>) -> Vec<(Range<usize>, Range<usize>)> {
    let start = candidate.passage.range.start;
    let inside = |range: &Range<usize>| {
        let inside = range.start.checked_sub(start)?..range.end.checked_sub(start)?;
        candidate.text.get(inside.clone())?;
        Some((inside, range.clone()))
    };
    candidate.passage.sentences.iter().filter_map(inside).collect()
}

fn above(candidate: &Candidate<'_>) -> String {
    format!("{} {}", candidate.title, candidate.passage.headings.join(" "))
}

/// The sentences of a candidate that are nearest to the question, in the order of the text.
fn near_sentences<'a>(run: &Run<'a>, at: usize) -> Result<Vec<Sentence<'a>>, StageFailed> {
    let candidate = &run.candidates[at];
    let settings = run.means.settings;
    let texts: Vec<(Range<usize>, &'a str)> = whole_sentences(candidate)
        .into_iter()
        .filter_map(|(inside, range)| Some((range, candidate.text.get(inside)?)))
        .filter(|(_, text)| {
            text.chars().filter(|c| c.is_alphanumeric()).count() >= settings.shortest
        })
        .filter(|(_, text)| !asks(text, &candidate.passage.language))
        .collect();
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let only: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
    let likenesses =
        (run.means.compare)(&only, &above(candidate)).map_err(StageFailed::Likeness)?;
    let mut sentences: Vec<Sentence<'a>> = texts
        .into_iter()
        .zip(likenesses)
        .map(|((range, text), likeness)| Sentence {
            candidate: at,
            range,
            text,
            similarity: f64::from(likeness.similarity),
            coverage: f64::from(likeness.coverage),
        })
        .collect();
    sentences.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    sentences.truncate(settings.sentences);
    sentences.sort_by_key(|sentence| sentence.range.start);
    Ok(sentences)
}

/// Whether a sentence asks instead of telling: a question answers none.
fn asks(sentence: &str, language: &str) -> bool {
    let end = sentence.trim_end_matches(|c: char| !c.is_alphanumeric());
    let marks = &sentence[end.len()..];
    marks.contains(['?', '؟', '？']) || (matches!(language, "el" | "grc") && marks.contains(';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_in_the_text_is_no_answer() {
        assert!(asks("Γιατί όχι;", "el"));
        assert!(asks("Pourquoi pas ?\u{a0}»", "fr"));
        assert!(!asks("Il le faut ;", "fr"));
        assert!(!asks("Η λυχνία άναψε· όλοι χάρηκαν.", "el"));
    }
}
