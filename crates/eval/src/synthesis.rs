//! Answers, measured: the pipeline of the product on questions whose answers are known.

use std::sync::Mutex;
use std::time::Duration;

use florilegium_batch::{Decisions, Remembering, decide_ahead};
use florilegium_embed::Embedder;
use florilegium_fold::fold;
use florilegium_index::{Index, dot};
use florilegium_llm::{Cost, Deadline, Engine};
use florilegium_synthesis::calibration::{ANSWER_SIGNALS, answer_features};
use florilegium_synthesis::verify::Outcome;
use florilegium_synthesis::{
    Asked, Candidate, Likeness, Means, Mode, Prompts, SentenceSignals, Settings, StageFailed,
    Synthesis, synthesize,
};
use serde::{Deserialize, Serialize};

use crate::cases::Case;

/// What became of one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Id of the case.
    pub id: String,
    /// The set.
    pub set: String,
    /// BCP 47 tag.
    pub language: String,
    /// Whether it can be answered.
    pub answerable: bool,
    /// Whether it was.
    pub answered: bool,
    /// The probability against which the threshold was held.
    pub score: f64,
    /// The signals that score is made of.
    pub signals: [f64; ANSWER_SIGNALS],
    /// Whether a shown quotation contains an answer of the set; nothing when the set gives none.
    pub contains_gold: Option<bool>,
    /// Whether a shown quotation stands in the paragraph that the answer was taken from.
    pub from_gold: Option<bool>,
    /// The proposals: signals, score, whether one contains an answer, whether it stands verbatim.
    pub proposals: Vec<Judged>,
    /// Whether the passages in the opposite order lead to another decision.
    pub changed_by_order: bool,
    /// What the model cost; nothing for what was decided before.
    pub cost: Cost,
    /// Why there is no result.
    pub failed: Option<String>,
}

/// A proposal, for fitting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Its signals, where it was judged.
    pub signals: Option<[f64; 4]>,
    /// Whether it contains an answer of the set.
    pub gold: Option<bool>,
    /// Whether it stands, byte for byte, in the passage named; nothing when it was not looked at.
    pub verbatim: Option<bool>,
}

/// What the questions are asked with.
pub struct Asking<'a> {
    /// The model.
    pub engine: &'a dyn Engine,
    /// What it decided before.
    pub decisions: &'a Mutex<Decisions>,
    /// Full or degraded.
    pub mode: Mode,
    /// The prompts.
    pub prompts: &'a Prompts,
    /// The settings.
    pub settings: &'a Settings,
    /// Embeds sentences.
    pub embedder: &'a Embedder,
    /// For one call.
    pub allowed: Duration,
}

/// Answers every case; decisions are taken ahead, passage by passage. `progress` hears how many are
/// to be taken, and of each that was.
pub fn answer(
    cases: &[Case],
    index: &Index,
    asking: &Asking<'_>,
    progress: &dyn Fn(usize),
) -> Vec<Measured> {
    let attempt = |at: usize, engine: &dyn Engine| {
        if let Some(case) = cases.get(at) {
            let _ = one(case, index, asking, engine, false);
        }
    };
    let Asking { engine, decisions, allowed, .. } = *asking;
    decide_ahead(engine, decisions, cases.len(), allowed, &attempt, progress);
    cases
        .iter()
        .map(|case| {
            let remembering = Remembering::open(engine, decisions);
            let forth = one(case, index, asking, &remembering, false);
            let back = one(case, index, asking, &remembering, true);
            result(case, asking, forth, back)
        })
        .collect()
}

fn one(
    case: &Case,
    index: &Index,
    asking: &Asking<'_>,
    engine: &dyn Engine,
    reversed: bool,
) -> Result<Synthesis, StageFailed> {
    let mut candidates: Vec<Candidate<'_>> = case
        .texts
        .iter()
        .map(|text| Candidate {
            passage: &text.passage,
            title: &text.title,
            text: &text.text,
            similarity: text.similarity,
        })
        .collect();
    if reversed {
        candidates.reverse();
    }
    let compare = |texts: &[&str], above: &str| -> Result<Vec<Likeness>, String> {
        let mut likenesses = Vec::with_capacity(texts.len());
        let under: Vec<String> = texts.iter().map(|text| format!("{above} {text}")).collect();
        let under: Vec<&str> = under.iter().map(String::as_str).collect();
        let coverages = index.coverage(&case.question, &under).map_err(|e| e.to_string())?;
        // A sentence of a cut text may be longer than the model reads.
        let pieces: Vec<Vec<String>> =
            texts.iter().map(|text| crate::cases::pieces(text, asking.embedder)).collect();
        let flat: Vec<&str> = pieces.iter().flatten().map(String::as_str).collect();
        let vectors = asking.embedder.passages(&flat, &mut |_, _| {}).map_err(|e| e.to_string())?;
        let mut vectors = vectors.iter();
        for (pieces, coverage) in pieces.iter().zip(coverages) {
            let of = |vector: &Vec<f32>| dot(vector, &case.vector);
            let similarity = vectors.by_ref().take(pieces.len()).map(of).fold(0.0, f32::max);
            likenesses.push(Likeness { similarity, coverage });
        }
        Ok(likenesses)
    };
    let means = Means {
        engine,
        mode: asking.mode,
        prompts: asking.prompts,
        compare: &compare,
        settings: asking.settings,
        deadline: Deadline::after(asking.allowed),
        watch: &|_| {},
    };
    synthesize(Asked { text: &case.question, language: &case.language }, &candidates, "", &means)
}

fn result(
    case: &Case,
    asking: &Asking<'_>,
    forth: Result<Synthesis, StageFailed>,
    back: Result<Synthesis, StageFailed>,
) -> Measured {
    let mut result = Measured {
        id: case.id.clone(),
        set: case.set.clone(),
        language: case.language.clone(),
        answerable: case.answerable,
        answered: false,
        score: 0.0,
        signals: [0.0; ANSWER_SIGNALS],
        contains_gold: None,
        from_gold: None,
        proposals: Vec::new(),
        changed_by_order: false,
        cost: Cost::default(),
        failed: None,
    };
    let synthesis = match forth {
        Ok(synthesis) => synthesis,
        Err(error) => {
            result.failed = Some(error.to_string());
            return result;
        }
    };
    result.answered = !synthesis.quotations.is_empty();
    result.changed_by_order = back.is_ok_and(|back| back.quotations.is_empty() == result.answered);
    result.score = synthesis.trace.answerability;
    result.signals = answer_features(&synthesis.trace, &asking.settings.weights);
    result.cost = synthesis.trace.cost;
    let shown: Vec<(&str, bool)> = synthesis
        .quotations
        .iter()
        .filter_map(|quotation| {
            let text = case.texts.iter().find(|text| text.passage.id == quotation.passage)?;
            Some((text.text.get(quotation.range.clone())?, text.gold))
        })
        .collect();
    if case.answerable && !case.answers.is_empty() && result.answered {
        let holds = |(text, _): &(&str, bool)| contains_answer(text, &case.answers);
        result.contains_gold = Some(shown.iter().any(holds));
        result.from_gold = Some(shown.iter().any(|(_, gold)| *gold));
    }
    result.proposals = synthesis
        .trace
        .proposals
        .iter()
        .map(|proposal| {
            let from_gold =
                || case.texts.iter().any(|text| text.gold && text.passage.id == proposal.passage);
            let gold = || from_gold() && contains_answer(&proposal.quotation, &case.answers);
            Judged {
                signals: proposal.signals(&synthesis.trace).map(|s: SentenceSignals| s.features()),
                gold: (!case.answers.is_empty()).then(|| case.answerable && gold()),
                verbatim: proposal
                    .outcome
                    .as_ref()
                    .map(|outcome| matches!(outcome, Outcome::Exact(_))),
            }
        })
        .collect();
    result
}

/// Whether a text contains one of the answers, letter case and accents aside.
fn contains_answer(text: &str, answers: &[String]) -> bool {
    let text = fold(text);
    answers
        .iter()
        .map(|answer| fold(answer))
        .any(|answer| !answer.is_empty() && text.contains(&answer))
}
