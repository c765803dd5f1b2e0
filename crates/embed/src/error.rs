//! What can go wrong, said so that an operator or a caller can act on it.

use std::path::PathBuf;

use florilegium_files::FileError;

/// Why texts could not be turned into vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A weights, configuration or tokenizer file does not hold what it should.
    #[error("{}: {problem}; fetch the model again", path.display())]
    Format {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Weights and tokenizer do not belong together.
    #[error(
        "{} has {tokens} tokens, but {} has embeddings for {rows} only; use the tokenizer of this model",
        tokenizer.display(),
        weights.display()
    )]
    Mismatch {
        /// The tokenizer file.
        tokenizer: PathBuf,
        /// The number of tokens it can produce.
        tokens: usize,
        /// The weights file.
        weights: PathBuf,
        /// The number of rows of the embedding table.
        rows: usize,
    },
    /// A setting makes no sense.
    #[error("embedding setting `{field}`: {problem}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A text has no content.
    #[error("{what} is empty; give it at least one word")]
    Empty {
        /// Which text: "the question", "passage 3".
        what: String,
    },
    /// A text has more tokens than the model reads. Nothing is ever cut silently.
    #[error(
        "{what} has {tokens} tokens, the limit is {limit}; shorten or split it (it begins {beginning:?})"
    )]
    TooLong {
        /// Which text: "the question", "passage 3".
        what: String,
        /// How many tokens it has, prefix and special tokens included.
        tokens: usize,
        /// How many are allowed.
        limit: usize,
        /// Its first characters.
        beginning: String,
    },
    /// The tokenizer gave up on a text.
    #[error("{what} cannot be tokenized: {problem}")]
    Tokenize {
        /// Which text: "the question", "passage 3".
        what: String,
        /// What the tokenizer said.
        problem: String,
    },
    /// The vector of a text is no direction: it holds NaN or infinity, or has no length.
    #[error(
        "the vector of {what} is not a finite direction; the weights are damaged, fetch the model again"
    )]
    NotFinite {
        /// Which text: "the question", "passage 3".
        what: String,
    },
    /// The engine itself failed.
    #[error("embedding engine: {0}")]
    Engine(#[from] candle_core::Error),
    /// The worker threads could not be started.
    #[error("cannot start the embedding threads: {0}")]
    Threads(String),
}
