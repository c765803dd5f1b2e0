//! How well passages are found and questions answered: sets of questions with what is known of their
//! answers, the usual measures with their intervals, and reports that can be compared.

mod answers;
mod calibrate;
mod cases;
mod error;
mod fit;
mod measure;
mod report;
mod retrieval;
mod sets;
mod synthesis;

pub use answers::{Answers, Summary, answers_html, answers_table};
pub use calibrate::{Fitted, Half, calibrate, calibration_table};
pub use cases::{Case, Cases, Sampling, cases};
pub use error::EvalError;
pub use measure::{Estimate, Measures};
pub use report::{html, table};
pub use retrieval::{Report, Row, retrieval};
pub use sets::{Asked, Set};
pub use synthesis::{Asking, Measured, answer};
