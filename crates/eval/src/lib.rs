//! How well passages are found: sets of questions with the place of their answer, the usual measures
//! with their intervals, and reports that can be compared.

mod error;
mod measure;
mod report;
mod retrieval;
mod sets;

pub use error::EvalError;
pub use measure::{Estimate, Measures};
pub use report::{html, table};
pub use retrieval::{Report, Row, retrieval};
pub use sets::{Asked, Set};
