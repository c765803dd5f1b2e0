//! What was measured, for the terminal and as a page.

use minijinja::Environment;

use crate::error::EvalError;
use crate::measure::{Estimate, Measures};
use crate::retrieval::{Report, Row};

const PAGE: &str = include_str!("../../../templates/eval/retrieval.html");

type Measure = fn(&Measures) -> Estimate;

const MEASURES: [(&str, Measure); 5] = [
    ("R@1", |m| m.r1),
    ("R@5", |m| m.r5),
    ("R@10", |m| m.r10),
    ("MRR", |m| m.mrr),
    ("nDCG@10", |m| m.ndcg10),
];

/// A table for the terminal; with the change against `earlier`, where that has the same row.
pub fn table(report: &Report, earlier: Option<&Report>) -> String {
    let width = report.rows.iter().map(|row| row.set.chars().count()).max().unwrap_or(3).max(3);
    let mut table = format!("{:width$}  {:12}  {:>9}", "set", "fusion", "questions");
    for (name, _) in MEASURES {
        table += &format!("  {name:<20}");
    }
    for row in &report.rows {
        table = table.trim_end().to_owned();
        table += &format!("\n{:width$}  {:12}  {:>9}", row.set, name(row), row.questions);
        let before = earlier.and_then(|report| same(report, row));
        for (_, measure) in MEASURES {
            let Estimate { mean, low, high } = measure(&row.measures);
            let change = before.map(|before| mean - measure(&before.measures).mean);
            let change = change.map_or_else(String::new, |change| format!(" {change:+.3}"));
            table += &format!("  {:<20}", format!("{mean:.3} ({low:.3}-{high:.3}){change}"));
        }
    }
    table.trim_end().to_owned() + "\n"
}

/// The same as a page, with a plot of every measure.
pub fn html(report: &Report, earlier: Option<&Report>) -> Result<String, EvalError> {
    let rows: Vec<serde_json::Value> = report
        .rows
        .iter()
        .map(|row| {
            let before = earlier.and_then(|report| same(report, row));
            let measures: Vec<serde_json::Value> = MEASURES
                .iter()
                .map(|(name, measure)| {
                    let Estimate { mean, low, high } = measure(&row.measures);
                    let before = before.map(|before| measure(&before.measures).mean);
                    serde_json::json!({
                        "name": name, "mean": mean, "low": low, "high": high, "before": before,
                    })
                })
                .collect();
            serde_json::json!({
                "set": row.set, "fusion": name(row), "texts": row.texts,
                "questions": row.questions, "measures": measures,
            })
        })
        .collect();
    let mut environment = Environment::new();
    environment.add_template("retrieval.html", PAGE)?;
    let page = environment.get_template("retrieval.html")?;
    Ok(page.render(minijinja::context! {
        model => &report.model,
        lexical_weight => report.lexical_weight,
        names => MEASURES.map(|(name, _)| name),
        rows => minijinja::Value::from(minijinja::value::Serde(rows)),
    })?)
}

fn name(row: &Row) -> String {
    format!("{:?}", row.fusion).to_lowercase()
}

fn same<'a>(report: &'a Report, row: &Row) -> Option<&'a Row> {
    report.rows.iter().find(|other| other.set == row.set && other.fusion == row.fusion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use florilegium_index::Fusion;

    fn report(ranks: &[Option<usize>]) -> Report {
        let row = Row {
            set: "a <set>".into(),
            fusion: Fusion::Dense,
            texts: 3,
            questions: ranks.len(),
            measures: Measures::of(ranks),
        };
        Report { model: "m".into(), lexical_weight: 0.4, rows: vec![row] }
    }

    #[test]
    fn a_table_shows_the_change_against_an_earlier_run() {
        let (now, before) = (report(&[Some(1), Some(1)]), report(&[Some(1), None]));
        let table = table(&now, Some(&before));
        assert!(table.contains("1.000 (1.000-1.000) +0.500"), "{table}");
        assert!(table.contains("dense"), "{table}");
    }

    #[test]
    fn the_page_escapes_and_has_a_bar_for_every_measure() {
        let now = report(&[Some(1), Some(2)]);
        let page = html(&now, None).unwrap();
        assert!(page.contains("a &lt;set&gt;") && !page.contains("a <set>"), "{page}");
        assert_eq!(page.matches("<rect").count(), 5);
    }
}
