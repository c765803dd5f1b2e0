//! What can go wrong, said so that an operator can act on it.

use std::path::PathBuf;

use florilegium_files::FileError;

/// Why the model list could not be read or a model could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The list is not valid TOML, or holds an unknown or missing key.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// The list file.
        path: PathBuf,
        /// What the TOML reader said: line, key and what it expected.
        message: String,
    },
    /// A field of the list holds a value that makes no sense.
    #[error("{}: model {model:?}, field `{field}`: {problem}", path.display())]
    Field {
        /// The list file.
        path: PathBuf,
        /// The `id` of the model, or its position when the id itself is at fault.
        model: String,
        /// The field concerned.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The list has no model of this id.
    #[error("{}: no model {id:?}; the list has: {}", path.display(), known.join(", "))]
    Unknown {
        /// The list file.
        path: PathBuf,
        /// The id that was asked for.
        id: String,
        /// The ids that the list has.
        known: Vec<String>,
    },
    /// A file or folder of the cache could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another process is fetching the same model.
    #[error("model {id:?} is being fetched already: {reason}")]
    Busy {
        /// The model's id.
        id: String,
        /// Who holds the lock, and the remedy.
        reason: String,
    },
    /// No source yielded the file.
    #[error(
        "model {id:?} could not be fetched:{}\nRemedy: {remedy}",
        reasons.iter().map(|reason| format!("\n  - {reason}")).collect::<String>()
    )]
    NoSource {
        /// The model's id.
        id: String,
        /// For every source tried, which it was and why it failed.
        reasons: Vec<String>,
        /// What an operator can do.
        remedy: String,
    },
}
