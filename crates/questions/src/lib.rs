//! The editors' question list, and what counts as the same question.
//!
//! The list is a spreadsheet saved as CSV, a Parquet file or JSON Lines. It is read whole or not at all: [`QuestionList::load`]
//! gives the questions in file order, or every fault in the file in one pass, each with its row,
//! its column and the remedy.
//!
//! | column | |
//! |---|---|
//! | `id` | required; lower-case letters a to z, digits and hyphens; unique; part of the page's address |
//! | `lang` | required; one of the archive's languages |
//! | `question` | required; at most [`LIMIT`] characters |
//! | `variants` | other wordings, separated by `\|` |
//! | `tags` | single words, separated by a space, `\|`, `,` or `;` |
//! | `status` | `draft`, `published` (also when empty) or `retired` |
//! | `priority` | a whole number, larger is sooner; 0 when empty |
//! | `note` | for the editors; the only column that may hold line breaks |
//! | `collections` | ids, separated likewise; empty means all that feed answers |
//!
//! Of a CSV file, the separator is a comma, a semicolon or a tab, found from the header row. The encoding is
//! UTF-8, with or without a byte order mark, or UTF-16 with one. Rows whose cells are all empty are
//! passed over: spreadsheets leave them at the end. A Parquet file (`.parquet`) has columns of text, and
//! its rows are counted from 1. A JSON Lines file (`.jsonl`, `.ndjson`) has an object a line, in which
//! `variants`, `tags` and `collections` may be lists.

mod alike;
mod check;
mod decode;
mod fault;
mod list;
mod rows;
mod table;

pub use check::{LIMIT, QuestionProblem, check_question};
pub use fault::{Fault, QuestionErrors};
pub use florilegium_fold::fold;
pub use list::{Known, Question, QuestionList, Status};
