//! The questions of a run as a Parquet table.

use polars::prelude::{Column, DataFrame, ParquetCompression, ParquetWriter, PolarsResult};
use serde::Serialize;

use crate::error::BatchError;
use crate::history::{QuestionRecord, RunRecord};

/// The table, a row a question, in the order in which they were taken.
pub(super) fn parquet(run: &RunRecord) -> Result<Vec<u8>, BatchError> {
    write(run).map_err(|error| BatchError::Report(error.to_string()))
}

fn write(run: &RunRecord) -> PolarsResult<Vec<u8>> {
    let rows = &run.questions;
    let text = |name: &str, of: fn(&QuestionRecord) -> String| {
        Column::new(name.into(), rows.iter().map(of).collect::<Vec<_>>())
    };
    let count = |name: &str, of: fn(&QuestionRecord) -> u64| {
        Column::new(name.into(), rows.iter().map(of).collect::<Vec<_>>())
    };
    let flag = |name: &str, of: fn(&QuestionRecord) -> bool| {
        Column::new(name.into(), rows.iter().map(of).collect::<Vec<_>>())
    };
    let reasons = |row: &QuestionRecord| {
        let reasons: Vec<&str> = row.rejected.iter().map(|r| r.reason.as_str()).collect();
        reasons.join(" ")
    };
    let seconds: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
    let mut frame = DataFrame::new(
        rows.len(),
        vec![
            Column::new("run".into(), vec![run.number; rows.len()]),
            text("id", |row| row.id.clone()),
            text("lang", |row| row.lang.clone()),
            text("question", |row| row.question.clone()),
            text("outcome", |row| name(&row.outcome)),
            text("change", |row| name(&row.change)),
            text("reasons", |row| row.reasons.join("; ")),
            flag("fresh", |row| row.fresh),
            flag("stale", |row| row.stale),
            text("computed_on", |row| row.computed_on.clone()),
            count("quotations", |row| row.quotations),
            count("rejected", |row| row.rejected.len() as u64),
            text("rejected_reasons", reasons),
            count("decisions", |row| row.cost.decisions),
            count("prompt_tokens", |row| row.cost.prompt_tokens),
            count("computed_tokens", |row| row.cost.computed_tokens),
            Column::new("seconds".into(), seconds),
            text("model", |row| row.model.clone()),
            text("error", |row| row.error.clone().unwrap_or_default()),
        ],
    )?;
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Snappy)
        .finish(&mut frame)?;
    Ok(bytes)
}

/// The name of a state, as it stands in the JSON report.
pub(super) fn name(state: &impl Serialize) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
