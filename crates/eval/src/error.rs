//! Why something could not be measured.

use std::path::PathBuf;

use florilegium_batch::BatchError;
use florilegium_embed::EmbedError;
use florilegium_files::FileError;
use florilegium_index::IndexError;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum EvalError {
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A file is not an evaluation set.
    #[error("{}{}: {problem}; a set is SQuAD-shaped JSON, or JSON Lines with `query` and `target` (and, for the texts, `id` and `question`), or with `id`, `lang`, `question`, `answerable` and `passages`", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Set { path: PathBuf, line: Option<usize>, problem: String },
    /// The page of a report could not be made.
    #[error("the page of the report: {0}")]
    Page(#[from] minijinja::Error),
}
