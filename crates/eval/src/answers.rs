//! How well questions were answered, for the terminal and as a page.

use minijinja::Environment;
use serde::{Deserialize, Serialize};

use crate::error::EvalError;
use crate::fit::auroc;
use crate::measure::Estimate;
use crate::synthesis::Measured;

const PAGE: &str = include_str!("../../../templates/eval/synthesis.html");
/// Bars of a distribution, and points of a calibration curve.
const BINS: usize = 10;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Identity of the language model.
    pub model: String,
    /// Hash of the prompts.
    pub prompts: String,
    /// "full" or "degraded".
    pub mode: String,
    /// The threshold.
    pub answer_at: f64,
    /// A row a set.
    pub rows: Vec<Summary>,
    /// Every question.
    pub questions: Vec<Measured>,
}

/// One set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The set.
    pub set: String,
    /// BCP 47 tag.
    pub language: String,
    /// Questions.
    pub questions: usize,
    /// Questions without a result.
    pub failed: usize,
    /// Share of answerable questions answered.
    pub answered: Option<Estimate>,
    /// Share of unanswerable ones refused.
    pub refused: Option<Estimate>,
    /// Mean of both.
    pub mean: Option<Estimate>,
    /// Area under the curve of the ROC.
    pub auroc: Option<Estimate>,
    /// Of the answerable questions answered: share with a shown quotation that contains the answer.
    pub contains_gold: Option<Estimate>,
    /// And with one from the paragraph that the answer was taken from.
    pub from_gold: Option<Estimate>,
    /// Share of proposed quotations that stand byte for byte in the passage named.
    pub verbatim: Option<Estimate>,
    /// Share of questions that the passages in the opposite order decide otherwise.
    pub changed_by_order: Option<Estimate>,
    /// Seconds of the model a question, of those it was asked for now.
    pub seconds: Option<f64>,
    /// Tokens computed a question, of those it was asked for now.
    pub tokens: Option<f64>,
}

impl Answers {
    /// Sums up, a row for each set in the order in which they come.
    pub fn of(
        model: &str,
        prompts: &str,
        mode: &str,
        answer_at: f64,
        questions: Vec<Measured>,
    ) -> Self {
        let rows = questions.chunk_by(|a, b| a.set == b.set).map(summary).collect();
        Answers {
            model: model.to_owned(),
            prompts: prompts.to_owned(),
            mode: mode.to_owned(),
            answer_at,
            rows,
            questions,
        }
    }
}

fn summary(of: &[Measured]) -> Summary {
    let sound: Vec<&Measured> = of.iter().filter(|m| m.failed.is_none()).collect();
    let rate = |wanted: bool| -> Vec<bool> {
        let of = sound.iter().filter(|m| m.answerable == wanted);
        of.map(|m| m.answered == wanted).collect()
    };
    let both = !rate(true).is_empty() && !rate(false).is_empty();
    let mean = |chosen: &[usize]| {
        let share = |wanted: bool| {
            let of: Vec<bool> = chosen
                .iter()
                .map(|&at| sound[at])
                .filter(|m| m.answerable == wanted)
                .map(|m| m.answered == wanted)
                .collect();
            of.iter().filter(|&&right| right).count() as f64 / of.len() as f64
        };
        (share(true) + share(false)) / 2.0
    };
    let curve = |chosen: &[usize]| {
        auroc(&chosen.iter().map(|&at| (sound[at].score, sound[at].answerable)).collect::<Vec<_>>())
    };
    let some = |value: fn(&Measured) -> Option<bool>| {
        Estimate::share(&sound.iter().filter_map(|m| value(m)).collect::<Vec<_>>())
    };
    let verbatim: Vec<bool> =
        sound.iter().flat_map(|m| &m.proposals).filter_map(|p| p.verbatim).collect();
    let asked: Vec<&&Measured> = sound.iter().filter(|m| m.cost.computed_tokens > 0).collect();
    let per_question = |total: f64| (!asked.is_empty()).then(|| total / asked.len() as f64);
    let first = &of[0];
    Summary {
        set: first.set.clone(),
        language: first.language.clone(),
        questions: of.len(),
        failed: of.len() - sound.len(),
        answered: Estimate::share(&rate(true)),
        refused: Estimate::share(&rate(false)),
        mean: both.then(|| Estimate::of(sound.len(), mean)),
        auroc: both.then(|| Estimate::of(sound.len(), curve)),
        contains_gold: some(|m| m.contains_gold),
        from_gold: some(|m| m.from_gold),
        verbatim: Estimate::share(&verbatim),
        changed_by_order: some(|m| Some(m.changed_by_order)),
        seconds: per_question(
            asked.iter().map(|m| m.cost.milliseconds as f64 / 1000.0).sum::<f64>(),
        ),
        tokens: per_question(asked.iter().map(|m| m.cost.computed_tokens as f64).sum::<f64>()),
    }
}

type Measure = fn(&Summary) -> Option<Estimate>;

const MEASURES: [(&str, Measure); 8] = [
    ("answered", |s| s.answered),
    ("refused", |s| s.refused),
    ("mean", |s| s.mean),
    ("AUROC", |s| s.auroc),
    ("holds the answer", |s| s.contains_gold),
    ("right paragraph", |s| s.from_gold),
    ("verbatim", |s| s.verbatim),
    ("order changes", |s| s.changed_by_order),
];

/// For the terminal: a block for each set.
pub fn answers_table(answers: &Answers) -> String {
    let mut table = format!("{} ({})\n", answers.model, answers.mode);
    for row in &answers.rows {
        table += &format!("\n{}  {} questions", row.set, row.questions);
        if row.failed > 0 {
            table += &format!(", {} failed", row.failed);
        }
        if let (Some(seconds), Some(tokens)) = (row.seconds, row.tokens) {
            table += &format!(", {seconds:.1} s and {tokens:.0} tokens a question");
        }
        table.push('\n');
        for (name, measure) in MEASURES {
            if let Some(Estimate { mean, low, high }) = measure(row) {
                table += &format!("  {name:18} {mean:.3} ({low:.3}-{high:.3})\n");
            }
        }
    }
    table
}

/// The same as a page: shares with intervals, the distribution of scores, the calibration curve.
pub fn answers_html(answers: &Answers) -> Result<String, EvalError> {
    let rows: Vec<serde_json::Value> = answers
        .rows
        .iter()
        .map(|row| {
            let measures: Vec<serde_json::Value> = MEASURES
                .iter()
                .filter_map(|(name, measure)| {
                    let Estimate { mean, low, high } = measure(row)?;
                    Some(
                        serde_json::json!({ "name": name, "mean": mean, "low": low, "high": high }),
                    )
                })
                .collect();
            let of: Vec<&Measured> = answers
                .questions
                .iter()
                .filter(|m| m.set == row.set && m.failed.is_none())
                .collect();
            serde_json::json!({
                "set": row.set, "questions": row.questions, "failed": row.failed,
                "seconds": row.seconds, "tokens": row.tokens,
                "measures": measures, "bins": bins(&of),
            })
        })
        .collect();
    let mut environment = Environment::new();
    environment.add_template("synthesis.html", PAGE)?;
    let page = environment.get_template("synthesis.html")?;
    Ok(page.render(minijinja::context! {
        model => &answers.model,
        mode => &answers.mode,
        answer_at => answers.answer_at,
        rows => minijinja::Value::from(minijinja::value::Serde(rows)),
    })?)
}

/// By tenth of the score: how many can be answered, how many cannot, and the share of the first.
fn bins(of: &[&Measured]) -> Vec<serde_json::Value> {
    let bin = |m: &Measured| ((m.score * BINS as f64) as usize).min(BINS - 1);
    let most = (0..BINS)
        .flat_map(|at| [true, false].map(|label| count(of, label, |m| bin(m) == at)))
        .max()
        .unwrap_or(0)
        .max(1);
    (0..BINS)
        .map(|at| {
            let yes = count(of, true, |m| bin(m) == at);
            let no = count(of, false, |m| bin(m) == at);
            let share = (yes + no > 0).then(|| yes as f64 / (yes + no) as f64);
            serde_json::json!({
                "at": at as f64 / BINS as f64, "yes": yes, "no": no, "share": share,
                "yes_height": yes as f64 / most as f64, "no_height": no as f64 / most as f64,
            })
        })
        .collect()
}

fn count(of: &[&Measured], answerable: bool, is: impl Fn(&Measured) -> bool) -> usize {
    of.iter().filter(|m| m.answerable == answerable && is(m)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use florilegium_llm::Cost;
    use florilegium_synthesis::calibration::ANSWER_SIGNALS;

    fn measured(set: &str, answerable: bool, answered: bool, score: f64) -> Measured {
        Measured {
            id: "1".into(),
            set: set.into(),
            language: "en".into(),
            answerable,
            answered,
            score,
            signals: [0.0; ANSWER_SIGNALS],
            contains_gold: (answerable && answered).then_some(true),
            from_gold: None,
            proposals: Vec::new(),
            changed_by_order: false,
            cost: Cost { computed_tokens: 10, milliseconds: 2000, ..Cost::default() },
            failed: None,
        }
    }

    #[test]
    fn rates_are_of_their_own_kind_and_the_page_escapes() {
        let mut questions = vec![
            measured("a <set>", true, true, 0.9),
            measured("a <set>", true, false, 0.3),
            measured("a <set>", false, false, 0.1),
            measured("other", true, true, 1.0),
        ];
        questions[1].failed = Some("time".into());
        let answers = Answers::of("m", "p", "degraded", 0.5, questions);
        let first = &answers.rows[0];
        assert_eq!((answers.rows.len(), first.failed), (2, 1));
        assert_eq!(first.answered.unwrap().mean, 1.0);
        assert_eq!(first.refused.unwrap().mean, 1.0);
        assert_eq!(first.auroc.unwrap().mean, 1.0);
        assert_eq!(answers.rows[1].refused, None);
        let table = answers_table(&answers);
        assert!(table.contains("1 failed") && table.contains("2.0 s and 10 tokens"), "{table}");
        let page = answers_html(&answers).unwrap();
        assert!(page.contains("a &lt;set&gt;") && !page.contains("a <set>"));
        let back: Answers =
            serde_json::from_str(&serde_json::to_string(&answers).unwrap()).unwrap();
        assert_eq!(back, answers);
    }
}
