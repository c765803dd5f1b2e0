//! Why an engine did not do what it was asked.

use std::time::Duration;

/// Why an engine did not decide or write. The stage that asked has failed; nothing is guessed.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum LlmError {
    /// The model file is not there.
    #[error("model file {0} is missing; run `florilegium models fetch`")]
    Missing(String),
    /// The model could not be loaded or used.
    #[error("model {model}: {problem}")]
    Model {
        /// Identity of the model.
        model: String,
        /// What is wrong.
        problem: String,
    },
    /// A prompt does not fit the context. A caller with passages drops the lowest-ranked and asks
    /// again.
    #[error(
        "a prompt has {tokens} tokens, the context holds {limit}; raise `context` or retrieve fewer passages"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens that fit.
        limit: usize,
    },
    /// The time allowed is over.
    #[error("the time limit of {} s is over", .0.as_secs())]
    Deadline(Duration),
    /// The decision is to be taken later, together with those of other questions.
    #[error("the decision has not been taken yet")]
    Deferred,
    /// Somebody asked to stop.
    #[error("stopped before the language model had answered")]
    Cancelled,
    /// The engine has stopped.
    #[error("the language model has stopped; the reason is in the log")]
    Stopped,
    /// No server could be reached for longer than the patience allows.
    #[error(
        "no language-model server can be reached (tried for {} s): {problem}; start one, or correct language_model.server",
        .waited.as_secs()
    )]
    Unavailable {
        /// How long.
        waited: Duration,
        /// What the last attempt met.
        problem: String,
    },
    /// A server took a request several times and never answered it.
    #[error("{address} lost the same request {times} times; the last time: {problem}")]
    Lost {
        /// The server.
        address: String,
        /// How often.
        times: u32,
        /// What happened the last time.
        problem: String,
    },
    /// A server has loaded another model than the one configured.
    #[error(
        "{address} serves the model {found}, not {expected}; start it with the right file, or correct `model` of this language_model.server"
    )]
    WrongModel {
        /// The server.
        address: String,
        /// The model configured.
        expected: String,
        /// The model it names.
        found: String,
    },
    /// A server wants an API key, or another one.
    #[error(
        "{address} refuses the API key; set key_env or key_file of this language_model.server to the right one"
    )]
    Unauthorized {
        /// The server.
        address: String,
    },
    /// A server understood the request and will not serve it.
    #[error("{address} refuses the request with status {status}: {message}")]
    Refused {
        /// The server.
        address: String,
        /// HTTP status.
        status: u16,
        /// Its words, shortened.
        message: String,
    },
    /// Twice the output was not what had been asked for.
    #[error("{engine} answered twice with something else than what was asked for: {problem}")]
    Malformed {
        /// The engine or server.
        engine: String,
        /// What was wrong with the second answer.
        problem: String,
    },
    /// Twice the output was cut off, the second time with the larger allowance.
    #[error("{engine} had not finished after {tokens} tokens; ask for less")]
    Truncated {
        /// The engine or server.
        engine: String,
        /// The larger allowance.
        tokens: usize,
    },
    /// The engine cannot do this at all.
    #[error("{engine} cannot {what}")]
    Unsupported {
        /// The engine or server.
        engine: String,
        /// What it was asked to do.
        what: &'static str,
    },
    /// A setting makes no sense.
    #[error("{field}: {problem}")]
    Setting {
        /// The setting.
        field: String,
        /// What is wrong and what would be right.
        problem: String,
    },
}
