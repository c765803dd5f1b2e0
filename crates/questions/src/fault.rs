//! What is wrong with a question list.

use std::fmt;
use std::path::{Path, PathBuf};

/// One fault in a question list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// The row as a spreadsheet counts: the header is row 1. None when the whole file is meant.
    pub row: Option<usize>,
    /// The column. None when the whole row or file is meant.
    pub column: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(row) = self.row {
            write!(f, "{row}:")?;
        }
        if let Some(column) = &self.column {
            write!(f, " {column}:")?;
        }
        write!(f, " {}; {}", self.problem, self.remedy)
    }
}

/// Every fault found in a question list, in the order of the rows. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct QuestionErrors {
    faults: Vec<Fault>,
}

impl QuestionErrors {
    /// The faults, in the order of the rows.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for QuestionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.faults.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

/// Collects the faults of one file.
pub(crate) struct Faults {
    path: PathBuf,
    faults: Vec<Fault>,
}

impl Faults {
    pub(crate) fn new(path: PathBuf) -> Self {
        Faults { path, faults: Vec::new() }
    }

    pub(crate) fn file(&mut self, problem: impl Into<String>, remedy: impl Into<String>) {
        self.push(None, None, problem.into(), remedy.into());
    }

    pub(crate) fn row(
        &mut self,
        row: usize,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Some(row), None, problem.into(), remedy.into());
    }

    pub(crate) fn cell(
        &mut self,
        row: usize,
        column: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Some(row), Some(column.to_owned()), problem.into(), remedy.into());
    }

    /// A whole column.
    pub(crate) fn column(
        &mut self,
        column: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(None, Some(column.to_owned()), problem.into(), remedy.into());
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn push(
        &mut self,
        row: Option<usize>,
        column: Option<String>,
        problem: String,
        remedy: String,
    ) {
        self.faults.push(Fault { path: self.path.clone(), row, column, problem, remedy });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    pub(crate) fn into_warnings(self) -> Vec<Fault> {
        self.faults
    }

    pub(crate) fn into_errors(mut self) -> QuestionErrors {
        self.faults.sort_by_key(|fault| fault.row);
        QuestionErrors { faults: self.faults }
    }
}
