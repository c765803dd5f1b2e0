//! The report of a run: a page, JSON, a table for further work, and a summary for an e-mail.

mod html;
mod table;

use std::path::{Path, PathBuf};

use florilegium_files::{point, write_atomic};

use crate::error::BatchError;
use crate::history::{Change, History, Outcome, RunRecord, Status};
use crate::pipeline::Pipeline;

/// Runs that the plots of a report go back.
const SHOWN: usize = 30;

/// Writes the report of a run beside its record and gives its folder. `runs/latest` leads to it.
pub fn write_report(pipeline: &Pipeline, run: &RunRecord) -> Result<PathBuf, BatchError> {
    let history = History::new(&pipeline.paths.work);
    let folder = history.folder(run.number);
    let mut runs = history.last(SHOWN)?;
    if runs.last().is_none_or(|last| last.number != run.number) {
        runs.push(run.clone());
    }
    let language = pipeline.languages.first().map_or("en", String::as_str);
    let json = serde_json::to_string_pretty(run).map_err(|e| BatchError::Report(e.to_string()))?;
    for (name, bytes) in [
        ("report.html", html::page(run, &runs, language)?.into_bytes()),
        ("report.json", (json + "\n").into_bytes()),
        ("questions.parquet", table::parquet(run)?),
        ("summary.txt", summary(run).into_bytes()),
    ] {
        write_atomic(&folder.join(name), &bytes)?;
    }
    let name = folder.file_name().unwrap_or_default();
    point(&folder.with_file_name("latest"), Path::new(name))?;
    Ok(folder)
}

/// A run in a few lines, fit for an e-mail; the first can serve as its subject.
pub fn summary(run: &RunRecord) -> String {
    let mut text = format!(
        "{} run {}: {}\n\n",
        run.archive,
        run.number,
        match run.status {
            Status::Published => "published, all well",
            Status::Incomplete => "published, but not everything is as it should be",
            Status::KeptBack => "NOT published; the last release stays",
        }
    );
    text += &format!(
        "{} on {}, {:.0} s ({:.0} s for answers)\n",
        run.started, run.host, run.seconds, run.synthesis_seconds
    );
    text += &format!(
        "{} documents, {} passages; {} embedded, {} gone\n",
        run.documents, run.passages, run.built.embedded_passages, run.removed_passages
    );
    let count = |outcome| run.count(outcome);
    text += &format!(
        "{} questions: {} answered, {} insufficient, {} failed, {} waiting, {} paused, {} left\n",
        run.questions.len(),
        count(Outcome::Answered),
        count(Outcome::Insufficient),
        count(Outcome::Failed),
        count(Outcome::Waiting),
        count(Outcome::Paused),
        count(Outcome::Left),
    );
    let changes = |change| run.changes(change);
    text += &format!(
        "since last night: {} new, {} changed, {} now answered, {} no longer answered, {} retired\n",
        changes(Change::New),
        changes(Change::Changed),
        changes(Change::Gained),
        changes(Change::Lost),
        run.retired.len(),
    );
    text += &format!(
        "the model was asked {} questions: {} tokens computed",
        run.fresh(),
        run.cost.computed_tokens
    );
    text += &match run.expected_seconds {
        Some(seconds) if run.fresh() > 0 && seconds > 0.0 => {
            format!(" (expected: {seconds:.0} s)\n")
        }
        _ => "\n".to_owned(),
    };
    text += &format!(
        "{} quotations checked against the original files, {} not found there\n",
        run.audited,
        run.audit_failures.len()
    );
    for note in run.notes.iter().chain(&run.audit_failures) {
        text += &format!("\n* {note}");
    }
    let failed = run.questions.iter().filter(|question| question.error.is_some());
    for question in failed.clone().take(10) {
        text += &format!("\n* {}: {}", question.id, question.error.as_deref().unwrap_or_default());
    }
    let more = failed.count().saturating_sub(10);
    if more > 0 {
        text += &format!("\n* and {more} more");
    }
    let mut text = text.trim_end().to_owned() + "\n";
    if let Some(release) = &run.release {
        text += &format!("\n{release}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use florilegium_llm::Cost;
    use polars::prelude::{ParquetReader, SerReader};

    use super::*;
    use crate::history::{QuestionRecord, Rejected};

    pub(super) fn run() -> RunRecord {
        let question = |id: &str, outcome| QuestionRecord {
            id: id.into(),
            lang: "el".into(),
            question: "Τι είναι <αυτό> & \"εκείνο\";".into(),
            outcome,
            cost: Cost { computed_tokens: 1200, ..Cost::default() },
            seconds: 3.5,
            ..QuestionRecord::default()
        };
        RunRecord {
            number: 7,
            archive: "demo".into(),
            started: "2026-11-30T02:00:00Z".into(),
            host: "night".into(),
            status: Status::Incomplete,
            notes: vec!["a note".into()],
            questions: vec![
                QuestionRecord {
                    fresh: true,
                    change: Change::New,
                    reasons: vec!["new question".into()],
                    rejected: vec![Rejected {
                        passage: "a/b#1".into(),
                        quotation: "<script>".into(),
                        reason: "absent".into(),
                    }],
                    ..question("one", Outcome::Answered)
                },
                QuestionRecord {
                    error: Some("the time limit of 300 s is over".into()),
                    stale: true,
                    computed_on: "2026-11-01".into(),
                    ..question("two", Outcome::Failed)
                },
            ],
            cost: Cost { computed_tokens: 2400, ..Cost::default() },
            expected_seconds: Some(8.0),
            seconds: 12.0,
            ..RunRecord::default()
        }
    }

    #[test]
    fn a_summary_begins_with_what_matters_and_names_each_failure() {
        insta::assert_snapshot!(summary(&run()), @r"
        demo run 7: published, but not everything is as it should be

        2026-11-30T02:00:00Z on night, 12 s (0 s for answers)
        0 documents, 0 passages; 0 embedded, 0 gone
        2 questions: 1 answered, 0 insufficient, 1 failed, 0 waiting, 0 paused, 0 left
        since last night: 1 new, 0 changed, 0 now answered, 0 no longer answered, 0 retired
        the model was asked 1 questions: 2400 tokens computed (expected: 8 s)
        0 quotations checked against the original files, 0 not found there

        * a note
        * two: the time limit of 300 s is over
        ");
    }

    #[test]
    fn the_table_has_a_row_a_question_and_can_be_read_back() {
        let bytes = table::parquet(&run()).unwrap();
        let frame = ParquetReader::new(std::io::Cursor::new(bytes)).finish().unwrap();
        assert_eq!(frame.height(), 2);
        let ids = frame.column("id").unwrap().str().unwrap();
        assert_eq!((ids.get(0), ids.get(1)), (Some("one"), Some("two")));
        let tokens = frame.column("computed_tokens").unwrap().u64().unwrap();
        assert_eq!(tokens.get(0), Some(1200));
        let outcomes = frame.column("outcome").unwrap().str().unwrap();
        assert_eq!(outcomes.get(1), Some("failed"));
    }
}
