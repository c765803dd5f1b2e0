//! The structure of a CSV file: where each row begins and ends, and whether it is sound.
//!
//! The reader of the values stops at the first broken row and does not say where it stands. Here
//! every broken row is found and named; only sound rows go on to the reader.

use crate::fault::Faults;

/// A quoted field longer than this is taken for one whose closing quotation mark is missing.
const LONGEST_FIELD: usize = 20_000;

/// One sound row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// As a spreadsheet counts: the header is row 1.
    pub(crate) number: usize,
    /// The row as it stands in the file, without its line end.
    pub(crate) text: &'a str,
}

/// What the header says about the rows below it.
pub(crate) struct Layout<'a> {
    /// The character between fields.
    pub(crate) separator: char,
    /// The names of the columns.
    pub(crate) names: &'a [String],
}

impl Layout<'_> {
    fn name(&self, field: usize) -> &str {
        self.names.get(field - 1).map(String::as_str).unwrap_or("past the last column")
    }
}

/// Finds the separator: the one that parts the first line into the most known columns.
pub(crate) fn separator(text: &str, known: &[&str]) -> char {
    let header = text.lines().next().unwrap_or_default();
    let score = |separator: char| {
        let names =
            header.split(separator).map(|name| name.trim().trim_matches('"').to_lowercase());
        (
            names.filter(|name| known.contains(&name.as_str())).count(),
            header.matches(separator).count(),
        )
    };
    let mut best = ',';
    for candidate in [';', '\t'] {
        if score(candidate) > score(best) {
            best = candidate;
        }
    }
    best
}

/// The names in the header row, and what follows it. None, and a fault, if its quotation is broken.
pub(crate) fn header<'a>(
    text: &'a str,
    separator: char,
    faults: &mut Faults,
) -> Option<(Vec<String>, &'a str)> {
    let extent = match row(text, separator) {
        Ok(Extent { broken_field: None, length, .. }) => length,
        Ok(_) => {
            faults.row(1, "a column name holds a line break", "write each column name on one line");
            return None;
        }
        Err(Broken { problem, .. }) => {
            faults.row(1, problem, "write the column names without quotation marks");
            return None;
        }
    };
    let (line, rest) = text.split_at(extent);
    // A quoted name that holds the separator is unknown whichever way it is cut.
    let name = |name: &str| name.trim().trim_matches('"').trim().to_lowercase();
    Some((line.split(separator).map(name).collect(), rest.get(1..).unwrap_or_default()))
}

/// Parts what follows the header into rows. Broken rows are recorded as faults and left out; after
/// one, reading goes on at the next line, so that the rows it swallowed are checked too. Rows whose
/// fields are all empty are left out silently.
pub(crate) fn rows<'a>(text: &'a str, layout: &Layout<'_>, faults: &mut Faults) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut rest = text;
    let mut number = 1;
    while !rest.is_empty() {
        number += 1;
        let line = rest.lines().next().unwrap_or_default();
        let length = match row(rest, layout.separator) {
            Ok(extent) if is_blank(&rest[..extent.length], layout.separator) => extent.length,
            Ok(extent) => {
                let text = &rest[..extent.length];
                if let Some(field) = swallowed(text, &extent, layout) {
                    faults.cell(
                        number,
                        layout.name(field),
                        "the field holds a line break: its quotation mark may have swallowed the rows after it",
                        "close the quotation mark in this row; if the line break is meant, replace it by a space (only the column note may hold line breaks)",
                    );
                    line.len()
                } else if extent.fields != layout.names.len() {
                    faults.row(
                        number,
                        format!(
                            "the row has {} fields, the header has {}",
                            extent.fields,
                            layout.names.len()
                        ),
                        "add or remove separators; put a field that holds the separator in quotation marks",
                    );
                    line.len()
                } else {
                    rows.push(Row { number, text });
                    extent.length
                }
            }
            Err(Broken { field, problem }) => {
                faults.cell(
                    number,
                    layout.name(field),
                    problem,
                    "put the whole field in quotation marks and double those inside it, or remove them",
                );
                line.len()
            }
        };
        rest = rest.get(length + 1..).unwrap_or_default();
    }
    rows
}

/// The field that seems to have swallowed rows. Notes may have paragraphs, so a line break in one is
/// no fault by itself; it is when a line in it would make a row of its own.
fn swallowed(text: &str, extent: &Extent, layout: &Layout<'_>) -> Option<usize> {
    let field = extent.broken_field?;
    let widest = text.lines().skip(1).map(|line| line.matches(layout.separator).count() + 1).max();
    (layout.name(field) != "note" || widest >= Some(layout.names.len())).then_some(field)
}

fn is_blank(text: &str, separator: char) -> bool {
    text.chars().all(|c| c == separator || c == '"' || c.is_whitespace())
}

struct Extent {
    length: usize,
    fields: usize,
    broken_field: Option<usize>,
}

/// Broken quotation, and the number, from 1, of the field in which it is found.
struct Broken {
    field: usize,
    problem: &'static str,
}

/// Reads one row from the start of `text`.
fn row(text: &str, separator: char) -> Result<Extent, Broken> {
    let broken = |field, problem| Err(Broken { field, problem });
    let mut fields = 1;
    let mut broken_field = None;
    let mut characters = text.char_indices().peekable();
    let mut at_start = true;
    while let Some((at, c)) = characters.next() {
        match c {
            '\n' => return Ok(Extent { length: at, fields, broken_field }),
            c if c == separator => {
                fields += 1;
                at_start = true;
            }
            '"' if at_start => {
                at_start = false;
                loop {
                    match characters.next() {
                        Some((_, '"')) => {
                            if characters.next_if(|&(_, c)| c == '"').is_none() {
                                break;
                            }
                        }
                        Some((_, '\n')) => {
                            broken_field.get_or_insert(fields);
                        }
                        Some((here, _)) if here - at <= LONGEST_FIELD => {}
                        _ => {
                            return broken(
                                fields,
                                "the quotation mark that opens the field is never closed and swallows the rows after it",
                            );
                        }
                    }
                }
                let after = characters.peek().map(|&(_, c)| c);
                if after.is_some_and(|c| c != '\n' && c != separator) {
                    return broken(
                        fields,
                        if broken_field == Some(fields) {
                            "the field goes on after its closing quotation mark, and has swallowed the start of a row below"
                        } else {
                            "the field goes on after its closing quotation mark"
                        },
                    );
                }
            }
            '"' => {
                return broken(fields, "a quotation mark stands inside a field that is not quoted");
            }
            _ => at_start = false,
        }
    }
    Ok(Extent { length: text.len(), fields, broken_field })
}
