//! One server: requests, and what can become of them.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::StatusCode;

use crate::{Deadline, LlmError, shortened};

/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 64 << 20;

/// Something that is never printed: an API key.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value of an environment variable.
    pub fn from_env(name: &str) -> Result<Self, LlmError> {
        let fault = |problem: &str| LlmError::Setting {
            field: "key_env".into(),
            problem: format!("the environment variable {name} {problem}"),
        };
        let value = std::env::var(name).map_err(|_| fault("is not set; set it to the API key"))?;
        Self::of(&value).ok_or_else(|| fault("is empty or has a line break; set it to the API key"))
    }

    /// The content of a file, without the white space round it.
    pub fn from_file(path: &Path) -> Result<Self, LlmError> {
        let fault = |problem: String| LlmError::Setting { field: "key_file".into(), problem };
        let value = std::fs::read_to_string(path).map_err(|e| {
            fault(format!("cannot read {}: {e}; write the API key into it", path.display()))
        })?;
        Self::of(&value).ok_or_else(|| {
            fault(format!("{} must hold the API key and nothing else", path.display()))
        })
    }

    fn of(value: &str) -> Option<Self> {
        let value = value.trim();
        let sound = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        sound.then(|| Secret(value.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How long a server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// To accept a connection.
    pub connect: Duration,
    /// Until the first byte of the answer to a decision: its one token.
    pub first: Duration,
    /// Until the last byte of any answer.
    pub whole: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(5),
            first: Duration::from_secs(120),
            whole: Duration::from_secs(300),
        }
    }
}

/// What became of a request that was not answered as it should be.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server could not be reached.
    Away(String),
    /// The server is there and takes no request now: it loads its model, or its queue is full.
    Loading(String),
    /// The request was sent; the answer never came, or the server failed.
    Lost(String),
    /// An answer came, and is not what was asked for.
    Garbled(String),
    /// The output was cut off at the allowance.
    Truncated(usize),
    /// Asking again is useless.
    Fatal(LlmError),
}

/// Waits for the first byte as long as the kind of request allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A decision, or a question about the server itself.
    First,
    /// An answer that is sent when it is complete.
    Whole,
}

/// A connection to one server.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    /// Address without a slash at its end.
    pub url: String,
    key: Option<Secret>,
    limits: Limits,
}

impl Client {
    /// Nothing is sent yet.
    pub fn new(url: &str, key: Option<Secret>, limits: Limits) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // Prompts go to the server named and to nobody else.
            .proxy(None)
            // llama.cpp closes a connection after five idle seconds.
            .max_idle_age(Duration::from_secs(3))
            .timeout_connect(Some(limits.connect))
            .build();
        Client { agent: config.into(), url: url.trim_end_matches('/').to_owned(), key, limits }
    }

    /// Asks about the server itself.
    pub fn get(&self, path: &str, deadline: Deadline) -> Result<Value, Fault> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let request = request.config().timeout_global(Some(self.limits.first.min(deadline.left())));
        let request = self.with_key(request.build());
        self.answer(request.call())
    }

    /// Sends a request.
    pub fn post(
        &self,
        path: &str,
        body: &Value,
        wait: Wait,
        deadline: Deadline,
    ) -> Result<Value, Fault> {
        let whole = self.limits.whole.min(deadline.left());
        let first = if wait == Wait::First { self.limits.first.min(whole) } else { whole };
        let request = self.agent.post(format!("{}{path}", self.url));
        let request = request
            .config()
            .timeout_recv_response(Some(first))
            .timeout_global(Some(whole))
            .build()
            .header("content-type", "application/json");
        self.answer(self.with_key(request).send(body.to_string()))
    }

    fn with_key<T>(&self, request: ureq::RequestBuilder<T>) -> ureq::RequestBuilder<T> {
        match &self.key {
            Some(Secret(key)) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        }
    }

    fn answer(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, Fault> {
        let mut answer = answer.map_err(|error| not_answered(&error))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec();
        let body = body.map_err(|e| Fault::Lost(format!("the answer broke off: {e}")))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|e| {
                let beginning = shortened(&String::from_utf8_lossy(&body));
                Fault::Garbled(format!("the body is not JSON ({e}): {beginning:?}"))
            });
        }
        let message = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        let error = &message["error"];
        let text = error["message"].as_str().or(error.as_str()).or(message["message"].as_str());
        let text = text.map_or_else(|| String::from_utf8_lossy(&body).into_owned(), str::to_owned);
        Err(self.refusal(status, error, &text))
    }

    /// What a status other than success means.
    fn refusal(&self, status: StatusCode, error: &Value, text: &str) -> Fault {
        let message = shortened(text);
        match status.as_u16() {
            429 | 503 => Fault::Loading(format!("status {status}: {message}")),
            500..=599 | 408 => Fault::Lost(format!("status {status}: {message}")),
            401 | 403 => Fault::Fatal(LlmError::Unauthorized { address: self.url.clone() }),
            400 | 413 if exceeds(error, text) => {
                let number = |name: &str| {
                    error[name].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
                };
                let (tokens, limit) = (number("n_prompt_tokens"), number("n_ctx"));
                Fault::Fatal(LlmError::PromptTooLong { tokens, limit })
            }
            status => {
                Fault::Fatal(LlmError::Refused { address: self.url.clone(), status, message })
            }
        }
    }
}

/// Whether a refusal is about the length of the prompt; vLLM and SGLang say it in words only.
fn exceeds(error: &Value, text: &str) -> bool {
    error["type"] == "exceed_context_size_error"
        || text.contains("maximum context length")
        || text.contains("longer than the model's context length")
}

fn not_answered(error: &ureq::Error) -> Fault {
    use ureq::{Error, Timeout};
    match error {
        Error::HostNotFound
        | Error::ConnectionFailed
        | Error::Timeout(Timeout::Connect | Timeout::Resolve) => Fault::Away(error.to_string()),
        Error::Io(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
            Fault::Away(e.to_string())
        }
        Error::BadUri(_) | Error::Http(_) => Fault::Fatal(LlmError::Setting {
            field: "language_model.server.url".into(),
            problem: format!("{error}; give an address such as http://127.0.0.1:8080"),
        }),
        _ => Fault::Lost(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_a_file_and_never_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let refused = Secret::from_file(&path).unwrap_err().to_string();
        assert!(refused.contains("key_file"), "{refused}");
        std::fs::write(&path, "sk-hush\n").unwrap();
        let secret = Secret::from_file(&path).unwrap();
        assert_eq!(secret.0, "sk-hush");
        let client = Client::new("http://localhost", Some(secret), Limits::default());
        assert!(!format!("{client:?}").contains("hush"));
        std::fs::write(&path, "two\nlines").unwrap();
        let refused = Secret::from_file(&path).unwrap_err().to_string();
        assert!(!refused.contains("two"), "{refused}");
        let missing = Secret::from_env("FLORILEGIUM_NO_SUCH_KEY").unwrap_err().to_string();
        assert!(missing.contains("FLORILEGIUM_NO_SUCH_KEY"), "{missing}");
    }
}
