//! What can go wrong with an index.

use std::path::PathBuf;

use florilegium_files::FileError;

/// Why an index cannot be made, opened or searched.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The index was made from something else than what is at hand.
    #[error("the index in {} was made for another {what} ({found}, expected {expected}); run the pipeline again to make it anew", path.display())]
    Mismatch {
        /// Folder of the index.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// What the manifest says.
        found: String,
        /// What is at hand.
        expected: String,
    },
    /// A file of the index is not the one the manifest names.
    #[error("{}: {problem}; run the pipeline again to make the index anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A vector is not one of this index.
    #[error("vector of passage {row}: {problem}; embed it again")]
    Vector {
        /// Number of the passage.
        row: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The vector of a question is not one of this index.
    #[error("vector of the question: {0}")]
    Question(String),
    /// FAISS refused.
    #[error("FAISS: {0}")]
    Faiss(#[from] faiss::error::Error),
    /// FAISS refused a call that the binding does not wrap.
    #[error("FAISS refused, with the status {0}")]
    FaissStatus(i32),
    /// tantivy refused.
    #[error("the index of words: {0}")]
    Words(#[from] tantivy::TantivyError),
}
