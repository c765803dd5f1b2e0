//! The three kinds of file a list may be, each as rows of text.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use polars::prelude::{
    CsvParseOptions, CsvReadOptions, DataFrame, DataType, ParquetReader, PlSmallStr, PolarsResult,
    Schema, SerReader,
};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::decode::decode;
use crate::fault::Faults;
use crate::list::{COLUMNS, REQUIRED, join, shown};
use crate::rows::{self, Layout, Row};

/// A list as rows of text.
#[derive(Debug)]
pub(crate) struct Table {
    names: Vec<String>,
    /// The number of each row, as its file counts, and its cells.
    pub rows: Vec<(usize, Vec<String>)>,
}

impl Table {
    /// The cell of a row in the column `name`, trimmed and in NFC; none where there is no such column.
    pub fn cell(&self, row: usize, name: &str) -> Option<String> {
        let column = self.names.iter().position(|column| column == name)?;
        let (_, cells) = self.rows.get(row)?;
        Some(cells.get(column).map(String::as_str).unwrap_or_default().trim().nfc().collect())
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Csv,
    Parquet,
    JsonLines,
}

impl Kind {
    /// Told by the name of the file; a Parquet file also by how it begins.
    pub fn of(path: &Path, bytes: &[u8]) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.unwrap_or_default().to_lowercase().as_str() {
            "jsonl" | "ndjson" => Kind::JsonLines,
            "parquet" => Kind::Parquet,
            _ if bytes.starts_with(b"PAR1") => Kind::Parquet,
            _ => Kind::Csv,
        }
    }

    /// Reads the rows, or records why that cannot be done.
    pub fn read(self, bytes: &[u8], faults: &mut Faults) -> Option<Table> {
        match self {
            Kind::Csv => csv(bytes, faults),
            Kind::Parquet => parquet(bytes, faults),
            Kind::JsonLines => json_lines(bytes, faults),
        }
    }
}

fn csv(bytes: &[u8], faults: &mut Faults) -> Option<Table> {
    let text = decode(bytes, faults)?;
    if text.trim().is_empty() {
        let remedy = format!("begin it with a header row: {}", COLUMNS.join(","));
        faults.file("the file is empty", remedy);
        return None;
    }
    let separator = rows::separator(&text, &COLUMNS);
    let (names, rest) = rows::header(&text, separator, faults)?;
    check_names(&names, faults);
    let layout = Layout { separator, names: &names };
    let rows = rows::rows(rest, &layout, faults);
    if rows.is_empty() {
        return Some(Table { names, rows: Vec::new() });
    }
    let read = match csv_frame(&rows, &layout) {
        // Every row found must be a row read.
        Ok(frame) if frame.height() == rows.len() => texts(&frame),
        Ok(frame) => Err(format!("{} rows were read as {}", rows.len(), frame.height())),
        Err(error) => Err(format!("the rows cannot be read: {error}")),
    };
    match read {
        Ok(cells) => {
            let numbers = rows.iter().map(|row| row.number);
            Some(Table { rows: numbers.zip(cells).collect(), names })
        }
        Err(problem) => {
            faults.file(problem, "save the list again from a spreadsheet");
            None
        }
    }
}

/// Reads sound rows, every value as a string: nothing is guessed from what the first rows look like.
fn csv_frame(rows: &[Row<'_>], layout: &Layout<'_>) -> PolarsResult<DataFrame> {
    let mut text = String::with_capacity(rows.iter().map(|row| row.text.len() + 1).sum());
    for row in rows {
        text.push_str(row.text);
        text.push('\n');
    }
    // By number, for the names in the file may be wrong.
    let columns = (0..layout.names.len())
        .map(|at| (PlSmallStr::from_string(format!("column {at}")), DataType::String));
    let separator = u8::try_from(layout.separator).unwrap_or(b',');
    CsvReadOptions::default()
        .with_has_header(false)
        .with_schema(Some(Arc::new(Schema::from_iter(columns))))
        .with_parse_options(CsvParseOptions::default().with_separator(separator))
        .into_reader_with_file_handle(Cursor::new(text.into_bytes()))
        .finish()
}

/// The cells of a frame, row by row.
fn texts(frame: &DataFrame) -> Result<Vec<Vec<String>>, String> {
    let columns = frame
        .columns()
        .iter()
        .map(|column| column.str().map_err(|error| error.to_string()))
        .collect::<Result<Vec<_>, String>>()?;
    let row = |row: usize| {
        columns.iter().map(|column| column.get(row).unwrap_or_default().to_owned()).collect()
    };
    Ok((0..frame.height()).map(row).collect())
}

/// Numbers rows from 1.
fn parquet(bytes: &[u8], faults: &mut Faults) -> Option<Table> {
    const REMEDY: &str = "write the Parquet file again, with columns of text";
    // The reader was not made for damaged files: it may panic on one.
    let read = catch_unwind(AssertUnwindSafe(|| {
        let mut reader = ParquetReader::new(Cursor::new(bytes.to_vec()));
        let rows = reader.num_rows()?;
        Ok::<_, polars::prelude::PolarsError>((rows, reader.finish()?))
    }));
    let (rows, frame) = match read {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => {
            faults.file(format!("this is no sound Parquet file: {error}"), REMEDY);
            return None;
        }
        Err(_) => {
            faults.file("this is no sound Parquet file", REMEDY);
            return None;
        }
    };
    if frame.height() != rows {
        let problem = format!("{rows} rows were read as {}", frame.height());
        faults.file(problem, REMEDY);
        return None;
    }
    let names: Vec<String> =
        frame.columns().iter().map(|column| column.name().trim().to_lowercase()).collect();
    check_names(&names, faults);
    let mut columns = Vec::new();
    for (name, column) in names.iter().zip(frame.columns()) {
        let kind = column.dtype().clone();
        let plain = kind == DataType::String
            || kind == DataType::Null
            || kind.is_integer()
            || kind.is_bool();
        match column.cast(&DataType::String) {
            Ok(text) if plain => columns.push(text),
            _ => {
                faults.column(
                    &shown(name),
                    format!("this column holds values of the kind {kind}"),
                    "write it as text; items go into one text, separated by |",
                );
                return None;
            }
        }
    }
    let cells = DataFrame::new(frame.height(), columns)
        .map_err(|error| error.to_string())
        .and_then(|frame| texts(&frame));
    match cells {
        Ok(cells) => {
            // As in a spreadsheet, rows of nothing are passed over.
            let rows = (1..).zip(cells).filter(|(_, row)| row.iter().any(|c| !c.trim().is_empty()));
            Some(Table { names, rows: rows.collect() })
        }
        Err(problem) => {
            faults.file(problem, REMEDY);
            None
        }
    }
}

/// Numbers rows by their lines.
fn json_lines(bytes: &[u8], faults: &mut Faults) -> Option<Table> {
    let text = decode(bytes, faults)?;
    if text.trim().is_empty() {
        faults.file(
            "the file is empty",
            format!("write a JSON object a line, with {}", COLUMNS.join(", ")),
        );
        return None;
    }
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(text.split('\n')).filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(fields)) => {
                for name in fields.keys().filter(|name| !COLUMNS.contains(&name.as_str())) {
                    let remedy = format!("remove or rename it; the keys are {}", join(&COLUMNS));
                    faults.cell(number, &shown(name), "this key is not known", remedy);
                }
                for name in REQUIRED.iter().filter(|name| !fields.contains_key(**name)) {
                    faults.cell(number, name, "this key is missing", "add it");
                }
                let cells = COLUMNS.iter().map(|name| {
                    fields.get(*name).map(|value| json_cell(value, number, name, faults))
                });
                rows.push((number, cells.map(Option::unwrap_or_default).collect()));
            }
            Ok(_) => faults.row(number, "the line is no JSON object", "write it as {\"id\": …}"),
            Err(error) => {
                let problem = format!("the line is not JSON: {error}");
                faults.row(number, problem, "write one whole JSON object a line");
            }
        }
    }
    Some(Table { names: COLUMNS.map(str::to_owned).to_vec(), rows })
}

fn json_cell(value: &Value, row: usize, name: &str, faults: &mut Faults) -> String {
    let several = ["variants", "tags", "collections"].contains(&name);
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if name == "priority" => number.to_string(),
        Value::Array(items) if several && items.iter().all(Value::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            if items.iter().any(|item| item.contains('|')) {
                faults.cell(row, name, "an item holds the separator |", "write it without");
            }
            items.join("|")
        }
        _ => {
            let wanted = if several { "a text or a list of texts" } else { "a text" };
            faults.cell(row, name, format!("this is not {wanted}"), format!("write {wanted}"));
            String::new()
        }
    }
}

fn check_names(names: &[String], faults: &mut Faults) {
    for required in REQUIRED {
        if !names.iter().any(|name| name == required) {
            faults.cell(1, required, "this column is missing", "add it to the header row");
        }
    }
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() {
            faults.row(
                1,
                format!("column {} has no name", at + 1),
                "name it or remove it, with the separator before it",
            );
        } else if !COLUMNS.contains(&name.as_str()) {
            let remedy = format!("remove or rename it; the columns are {}", COLUMNS.join(", "));
            faults.cell(1, &shown(name), "this column is not known", remedy);
        } else if names.iter().take(at).any(|earlier| earlier == name) {
            faults.cell(1, name, "this column is there twice", "remove one of them");
        }
    }
}
