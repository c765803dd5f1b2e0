//! Fitting the weights and thresholds on one half of the questions, and reporting on the other.

use florilegium_files::sha256_hex;
use florilegium_synthesis::calibration::ANSWER_SIGNALS;
use florilegium_synthesis::{AnswerWeights, Calibration, SentenceWeights, Settings};
use serde::{Deserialize, Serialize};

use crate::fit::{auroc, best_threshold, fit};
use crate::measure::Estimate;
use crate::synthesis::Measured;

/// A calibration, and how well it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// The weights and thresholds.
    pub calibration: Calibration,
    /// By set: on the half it was fitted on, and on the other.
    pub rows: Vec<Half>,
}

/// How well questions are told apart, on one half of one set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Half {
    /// The set.
    pub set: String,
    /// Whether it was fitted on these questions.
    pub fitted: bool,
    /// Questions.
    pub questions: usize,
    /// Area under the curve of the ROC, answerable against unanswerable.
    pub auroc: Estimate,
    /// Share of answerable questions answered.
    pub answered: Option<Estimate>,
    /// Share of unanswerable ones refused.
    pub refused: Option<Estimate>,
    /// Mean of both.
    pub mean: Estimate,
}

/// Fits on half of the questions, chosen by the hash of their ids. A set's threshold would fit that
/// set; the one that is kept fits all sets together, each of which counts the same.
pub fn calibrate(
    measured: &[Measured],
    model: &str,
    prompts: &str,
    settings: &Settings,
) -> Option<Fitted> {
    let sound: Vec<&Measured> = measured.iter().filter(|m| m.failed.is_none()).collect();
    let train: Vec<&Measured> = sound.iter().copied().filter(|m| is_for_fitting(&m.id)).collect();

    let sentences: Vec<([f64; 4], bool)> = train
        .iter()
        .filter(|m| m.answerable)
        .flat_map(|m| m.proposals.iter().filter_map(|p| Some((p.signals?, p.gold?))))
        .collect();
    // Without answers in the sets, what a sentence is worth stays as it was.
    let sentence = fit(&sentences)
        .map_or(settings.weights, |(bias, slopes)| SentenceWeights::of(bias, slopes));
    let signals = |m: &Measured| {
        let mut signals = m.signals;
        if let Some(best) = best_sentence(m, &sentence) {
            (signals[0], signals[5]) = best;
        }
        signals
    };
    let rows: Vec<([f64; ANSWER_SIGNALS], bool)> =
        train.iter().map(|m| (signals(m), m.answerable)).collect();
    let (bias, slopes) = fit(&rows)?;
    let answerability = AnswerWeights::of(bias, slopes);
    let scored = |of: &[&Measured]| -> Vec<(f64, bool)> {
        of.iter().map(|m| (answerability.score(&signals(m)), m.answerable)).collect()
    };
    let answer_at = best_threshold(&scored(&train));
    // A sentence beside the best one is shown when it is likelier right than wrong.
    let sentence_scores: Vec<(f64, bool)> =
        sentences.iter().map(|(x, gold)| (score(&sentence, x), *gold)).collect();
    let show_at = if sentence_scores.is_empty() {
        settings.show_at
    } else {
        best_threshold(&sentence_scores)
    };

    let mut names: Vec<String> = sound.iter().map(|m| m.set.clone()).collect();
    names.sort();
    names.dedup();
    let mut halves = Vec::new();
    for set in names {
        for fitted in [true, false] {
            let of: Vec<&Measured> = sound
                .iter()
                .copied()
                .filter(|m| m.set == set && is_for_fitting(&m.id) == fitted)
                .collect();
            if !of.is_empty() {
                halves.push(half(&set, fitted, &scored(&of), answer_at));
            }
        }
    }
    let fitted_on = halves
        .iter()
        .filter(|half| half.fitted)
        .map(|half| format!("{} ({} questions)", half.set, half.questions))
        .collect::<Vec<_>>()
        .join(", ");
    Some(Fitted {
        calibration: Calibration {
            model: model.to_owned(),
            prompts: prompts.to_owned(),
            fitted_on,
            relevant_at: settings.relevant_at,
            answer_at: rounded(answer_at),
            show_at: rounded(show_at),
            sentence,
            answerability,
        },
        rows: halves,
    })
}

fn half(set: &str, fitted: bool, scored: &[(f64, bool)], answer_at: f64) -> Half {
    let rate = |chosen: &[usize], wanted: bool| {
        let of: Vec<bool> = chosen
            .iter()
            .map(|&at| scored[at])
            .filter(|(_, label)| *label == wanted)
            .map(|(score, _)| (score >= answer_at) == wanted)
            .collect();
        of.iter().filter(|&&right| right).count() as f64 / of.len() as f64
    };
    let right = |wanted: bool| {
        let of = scored.iter().filter(|(_, label)| *label == wanted);
        let right: Vec<bool> = of.map(|(score, _)| (*score >= answer_at) == wanted).collect();
        Estimate::share(&right)
    };
    let count = scored.len();
    Half {
        set: set.to_owned(),
        fitted,
        questions: count,
        auroc: Estimate::of(count, |chosen| {
            auroc(&chosen.iter().map(|&at| scored[at]).collect::<Vec<_>>())
        }),
        answered: right(true),
        refused: right(false),
        mean: Estimate::of(count, |chosen| (rate(chosen, true) + rate(chosen, false)) / 2.0),
    }
}

/// Log-odds and coverage of the proposal that scores best with these weights.
fn best_sentence(measured: &Measured, weights: &SentenceWeights) -> Option<(f64, f64)> {
    measured
        .proposals
        .iter()
        .filter_map(|proposal| proposal.signals)
        .map(|signals| (score(weights, &signals), signals[3]))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(score, coverage)| (florilegium_synthesis::calibration::log_odds(score), coverage))
}

fn score(weights: &SentenceWeights, features: &[f64; 4]) -> f64 {
    let sum: f64 = features.iter().zip(weights.slopes()).map(|(x, w)| x * w).sum();
    1.0 / (1.0 + (-(weights.bias + sum)).exp())
}

fn is_for_fitting(id: &str) -> bool {
    // The same question, its article held out or not, is on the same side.
    let id = id.trim_end_matches("-held-out");
    sha256_hex(format!("half {id}").as_bytes()).as_bytes().first().is_some_and(|byte| byte % 2 == 0)
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// What was fitted, for the terminal.
pub fn calibration_table(fitted: &Fitted) -> String {
    let width = fitted.rows.iter().map(|row| row.set.chars().count()).max().unwrap_or(3).max(3);
    let mut table = format!(
        "{:width$}  {:8}  {:>9}  {:<20}  {:<20}  {:<20}  {:<20}\n",
        "set", "half", "questions", "AUROC", "answered", "refused", "mean"
    );
    let shown = |estimate: &Estimate| {
        format!("{:.3} ({:.3}-{:.3})", estimate.mean, estimate.low, estimate.high)
    };
    for row in &fitted.rows {
        let half = if row.fitted { "fitted" } else { "other" };
        let optional = |estimate: &Option<Estimate>| estimate.as_ref().map_or("-".into(), shown);
        table += &format!(
            "{:width$}  {half:8}  {:>9}  {:<20}  {:<20}  {:<20}  {:<20}",
            row.set,
            row.questions,
            shown(&row.auroc),
            optional(&row.answered),
            optional(&row.refused),
            shown(&row.mean)
        );
        table.truncate(table.trim_end().len());
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthesis::Judged;
    use florilegium_llm::Cost;

    fn measured(number: usize, answerable: bool) -> Measured {
        let strength = if answerable { 2.0 } else { -2.0 } + (number % 7) as f64 / 4.0;
        let proposal = |gold: bool| Judged {
            signals: Some([if gold { strength + 1.0 } else { strength - 3.0 }, strength, 0.9, 0.5]),
            gold: Some(gold && answerable),
            verbatim: Some(true),
        };
        Measured {
            id: format!("s:{number}"),
            set: "s".into(),
            language: "en".into(),
            answerable,
            answered: answerable,
            score: 0.5,
            signals: [strength, strength, strength, strength - 1.0, 0.9, 0.5, 0.0],
            contains_gold: None,
            from_gold: None,
            proposals: vec![proposal(true), proposal(false)],
            changed_by_order: false,
            cost: Cost::default(),
            failed: None,
        }
    }

    #[test]
    fn what_can_be_told_apart_is_told_apart_on_the_other_half_too() {
        let all: Vec<Measured> = (0..200).map(|n| measured(n, n % 2 == 0)).collect();
        let fitted = calibrate(&all, "m", "p", &Settings::default()).unwrap();
        let other = fitted.rows.iter().find(|row| !row.fitted).unwrap();
        assert!(other.mean.mean > 0.9, "{other:?}");
        assert!((60..=140).contains(&other.questions));
        assert_eq!(
            (fitted.calibration.model.as_str(), fitted.calibration.prompts.as_str()),
            ("m", "p")
        );
        assert!(fitted.calibration.sentence.sentence > 0.0);
        let table = calibration_table(&fitted);
        assert!(table.contains("fitted") && table.contains("other"), "{table}");
        assert!(calibrate(&all[..1], "m", "p", &Settings::default()).is_none());
    }

    #[test]
    fn a_question_and_its_twin_without_the_article_are_on_the_same_side() {
        for number in 0..50 {
            let id = format!("s:{number}");
            assert_eq!(is_for_fitting(&id), is_for_fitting(&format!("{id}-held-out")));
        }
    }
}
