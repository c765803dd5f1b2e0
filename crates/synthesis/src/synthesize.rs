//! From a question and its passages to a synthesis: the stages in their order.
//!
//! *Full*, with the primary engine: relevance of each passage, answerability of all together,
//! extraction, verification, ordering. *Degraded*, on this machine: one consolidated pass, then the
//! same verification. What the model proposes becomes a place in a document here, or nothing.

use std::ops::Range;

use florilegium_files::sha256_hex;
use florilegium_llm::{Deadline, Engine};

use crate::answer::Counts;
use crate::calibration::answer_features;
use crate::candidate::{Asked, Candidate, Compare};
use crate::prompts::Prompts;
use crate::settings::{Answerability, Extraction, Ordering, Partial, Settings};
use crate::stages::extraction::whole_sentences;
use crate::stages::{Run, StageFailed, answerability, extraction, ordering, relevance};
use crate::synthesis::{Mode, Synthesis, Trace, Verified};
use crate::verify::{Outcome, verify};

/// A quotation that was verified, with the score it was chosen by and the candidate it stands in.
struct Accepted {
    score: f64,
    candidate: usize,
    verified: Verified,
}

/// What a synthesis is made with.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// The model.
    pub engine: &'a dyn Engine,
    /// Which stages there are.
    pub mode: Mode,
    /// The prompts.
    pub prompts: &'a Prompts,
    /// Compares sentences with the question.
    pub compare: Compare<'a>,
    /// The settings.
    pub settings: &'a Settings,
    /// When it must be over.
    pub deadline: Deadline,
    /// Hears the name of every stage that asks the engine, when it does.
    pub watch: &'a dyn Fn(&'static str),
}

/// Makes the synthesis of one question. `corpus` is the hash of the passages.
pub fn synthesize(
    asked: Asked<'_>,
    candidates: &[Candidate<'_>],
    corpus: &str,
    means: &Means<'_>,
) -> Result<Synthesis, StageFailed> {
    let Means { engine, mode, prompts, settings, .. } = *means;
    let trace = Trace { prompts: prompts.hash().to_owned(), ..Trace::default() };
    let mut run = Run { asked, candidates, means: *means, trace };
    let stages = match mode {
        Mode::Full => settings.full,
        Mode::Degraded => settings.degraded,
    };
    let ids: Vec<String> = (1..=candidates.len()).map(|number| format!("p{number}")).collect();

    // One constrained generation is the whole of a degraded pass that writes.
    let consolidated = mode == Mode::Degraded && stages.extraction == Extraction::Generate;
    let relevant = if consolidated {
        (0..candidates.len()).collect()
    } else {
        relevance::relevance(&mut run)?
    };
    if !consolidated && stages.answerability == Answerability::Joint {
        answerability::joint(&mut run, &relevant, &ids)?;
    }
    let judged = match stages.extraction {
        Extraction::Decide => Some(extraction::sentences(&mut run, &relevant)?),
        Extraction::Generate => None,
    };
    let mut proposed = judged.clone().unwrap_or_default();
    run.trace.proposals = proposed.iter().map(|(_, proposal)| proposal.clone()).collect();
    let sufficient = match stages.extraction {
        // The model says so itself, by writing anything.
        Extraction::Generate if consolidated => true,
        // Nothing is judged sentence by sentence: what was asked of all passages decides.
        Extraction::Generate => {
            run.trace.answerability = mean(&run.trace.joint).unwrap_or_else(|| {
                run.trace.passages.iter().map(|p| p.relevance).fold(0.0, f64::max)
            });
            run.trace.answerability >= settings.answer_at
        }
        Extraction::Decide => {
            let features = answer_features(&run.trace, &settings.weights);
            run.trace.answerability = settings.answerability.score(&features);
            !proposed.is_empty() && run.trace.answerability >= settings.answer_at
        }
    };
    if sufficient && judged.is_none() {
        proposed = extraction::propositions(&mut run, &relevant, &ids, consolidated)?;
        run.trace.proposals = proposed.iter().map(|(_, proposal)| proposal.clone()).collect();
        if consolidated {
            run.trace.answerability = if proposed.is_empty() { 0.0 } else { 1.0 };
        }
    }

    // The best is shown, and what is good enough beside it.
    let mut chosen: Vec<usize> =
        if sufficient { (0..proposed.len()).collect() } else { Vec::new() };
    chosen.sort_by(|&a, &b| proposed[b].1.score.total_cmp(&proposed[a].1.score).then(a.cmp(&b)));
    let best = chosen.first().map_or(0.0, |&at| proposed[at].1.score);
    chosen.retain(|&at| proposed[at].1.score >= settings.show_at.min(best));
    chosen.truncate(settings.quotations);

    // Verification, by code that knows no model.
    let mut accepted: Vec<Accepted> = Vec::new();
    let mut rejected = 0;
    for &at in &chosen {
        let (named, proposal) = &proposed[at];
        let others = candidates
            .iter()
            .enumerate()
            .filter(|(other, _)| Some(*other) != *named)
            .map(|(_, candidate)| candidate.text);
        let candidate = named.and_then(|named| candidates.get(named));
        let outcome =
            verify(&proposal.quotation, candidate.map(|c| c.text), others, settings.shortest);
        match place(&outcome, *named, candidates, settings) {
            Some((candidate, verified)) => {
                accepted.push(Accepted { score: proposal.score, candidate, verified });
            }
            None => rejected += 1,
        }
        if let Some(proposal) = run.trace.proposals.get_mut(at) {
            proposal.outcome = Some(outcome);
        }
    }
    let merged = merge(accepted, candidates);
    let quotations = in_order(&mut run, merged, stages.ordering)?;
    let counts = Counts {
        retrieved: candidates.len(),
        relevant: relevant.len(),
        proposed: chosen.len(),
        rejected,
        shown: quotations.len(),
    };
    Ok(Synthesis {
        question: asked.text.to_owned(),
        language: asked.language.to_owned(),
        mode,
        model: engine.identity().to_owned(),
        corpus: corpus.to_owned(),
        counts,
        quotations,
        retrieved: candidates.iter().map(|c| c.passage.id.clone()).collect(),
        trace: run.trace,
    })
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The place of an accepted quotation in its document, whole sentences if the setting wants them. Of
/// several occurrences the first; the trace has all.
fn place(
    outcome: &Outcome,
    named: Option<usize>,
    candidates: &[Candidate<'_>],
    settings: &Settings,
) -> Option<(usize, Verified)> {
    let at = named?;
    let candidate = candidates.get(at)?;
    let place = outcome.places(settings.equivalent).first()?.clone();
    let sentences: Vec<Range<usize>> =
        whole_sentences(candidate).into_iter().map(|(inside, _)| inside).collect();
    let touched = || sentences.iter().filter(|s| s.start < place.end && place.start < s.end);
    let cut_before = touched().any(|s| s.start < place.start && place.start < s.end);
    let cut_after = touched().any(|s| s.start < place.end && place.end < s.end);
    let mut range = place.clone();
    if settings.partial == Partial::Extend {
        range.start = touched().map(|s| s.start).fold(range.start, usize::min);
        range.end = touched().map(|s| s.end).fold(range.end, usize::max);
    }
    let extended = settings.partial == Partial::Extend;
    let verified = verified(candidate, range, cut_before && !extended, cut_after && !extended)?;
    Some((at, verified))
}

/// A place in a candidate's document, from bytes of the candidate's text.
fn verified(
    candidate: &Candidate<'_>,
    inside: Range<usize>,
    cut_before: bool,
    cut_after: bool,
) -> Option<Verified> {
    let text = candidate.text.get(inside.clone())?;
    let start = candidate.passage.range.start;
    Some(Verified {
        document: candidate.passage.document.clone(),
        passage: candidate.passage.id.clone(),
        range: start + inside.start..start + inside.end,
        text_hash: sha256_hex(text.as_bytes()),
        cut_before,
        cut_after,
    })
}

/// Overlapping and neighbouring quotations of one passage become one, by range.
fn merge(mut accepted: Vec<Accepted>, candidates: &[Candidate<'_>]) -> Vec<Accepted> {
    accepted.sort_by_key(|a| (a.candidate, a.verified.range.start, a.verified.range.end));
    let mut merged: Vec<Accepted> = Vec::new();
    for next in accepted {
        if let Some(last) = merged.last_mut().filter(|last| last.candidate == next.candidate) {
            let candidate = &candidates[next.candidate];
            let start = candidate.passage.range.start;
            let (first, second) = (&last.verified, &next.verified);
            let touching = second.range.start <= first.range.end
                || candidate.text.get(first.range.end - start..second.range.start - start)
                    == Some(" ");
            if touching {
                let end = first.range.end.max(second.range.end);
                let cut_after = if second.range.end >= first.range.end {
                    second.cut_after
                } else {
                    first.cut_after
                };
                let inside = first.range.start - start..end - start;
                if let Some(both) = verified(candidate, inside, first.cut_before, cut_after) {
                    last.verified = both;
                    last.score = last.score.max(next.score);
                    continue;
                }
            }
        }
        merged.push(next);
    }
    merged
}

/// Puts the quotations in the order in which they are shown.
fn in_order(
    run: &mut Run<'_>,
    mut accepted: Vec<Accepted>,
    ordering: Ordering,
) -> Result<Vec<Verified>, StageFailed> {
    // As they were retrieved, inside a passage as the text has them: `merge` leaves them so.
    if ordering == Ordering::Engine {
        let quotations: Vec<Verified> = accepted.iter().map(|a| a.verified.clone()).collect();
        let texts: Vec<&str> = accepted
            .iter()
            .map(|a| {
                let candidate = &run.candidates[a.candidate];
                let start = candidate.passage.range.start;
                let range = &a.verified.range;
                candidate.text.get(range.start - start..range.end - start).unwrap_or_default()
            })
            .collect();
        if let Some(order) = ordering::by_engine(run, &quotations, &texts)? {
            return Ok(order.into_iter().filter_map(|at| quotations.get(at).cloned()).collect());
        }
    }
    if ordering == Ordering::Score {
        let best = |candidate: usize| {
            accepted
                .iter()
                .filter(|a| a.candidate == candidate)
                .map(|a| a.score)
                .fold(0.0, f64::max)
        };
        let scores: Vec<f64> = (0..run.candidates.len()).map(best).collect();
        accepted.sort_by(|a, b| scores[b.candidate].total_cmp(&scores[a.candidate]));
    }
    Ok(accepted.into_iter().map(|a| a.verified).collect())
}
