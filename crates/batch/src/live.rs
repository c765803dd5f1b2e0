//! How the live server behaves: the section `[server]` of a pipeline file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How the live server behaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LiveServer {
    /// Questions that may wait for a synthesis; one more is told to come back.
    pub queue: usize,
    /// Questions of one client that may wait or be answered at a time.
    pub jobs_per_client: usize,
    /// Requests a client may make at once.
    pub burst: u32,
    /// Requests a second a client may make in the long run.
    pub requests_per_second: u32,
    /// Connections open at a time.
    pub connections: usize,
    /// Seconds within which the head of a request must be there.
    pub header_seconds: u64,
    /// Seconds after which the primary engine counts as away; a degraded synthesis is made instead.
    pub patience_seconds: u64,
    /// Seconds for which an engine that was away is not asked again.
    pub away_seconds: u64,
    /// Seconds given to open requests when the server is told to end.
    pub shutdown_seconds: u64,
    /// Header in which a trusted proxy names the client, as `x-forwarded-for`; without a proxy, none.
    pub client_header: Option<String>,
    /// Origins of static sites whose pages may ask, as `https://archive.example`.
    pub origins: Vec<String>,
    /// Folder in which questions are noted: day, language, folded question, outcome, nothing else. Not
    /// kept when not given.
    pub question_log: Option<PathBuf>,
}

impl Default for LiveServer {
    fn default() -> Self {
        LiveServer {
            queue: 16,
            jobs_per_client: 4,
            burst: 60,
            requests_per_second: 10,
            connections: 1024,
            header_seconds: 10,
            patience_seconds: 5,
            away_seconds: 30,
            shutdown_seconds: 10,
            client_header: None,
            origins: Vec::new(),
            question_log: None,
        }
    }
}

impl LiveServer {
    /// The field that makes no sense, and what would.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        for (field, value) in [
            ("queue", self.queue),
            ("jobs_per_client", self.jobs_per_client),
            ("connections", self.connections),
            ("burst", self.burst as usize),
            ("requests_per_second", self.requests_per_second as usize),
        ] {
            if value == 0 {
                return Err((format!("server.{field}"), "0: choose 1 or more".into()));
            }
        }
        for origin in &self.origins {
            let rest = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            if rest.is_none_or(|host| host.is_empty() || host.contains('/')) {
                let problem = format!(
                    "{origin:?}: give scheme and host only, as \"https://archive.example\""
                );
                return Err(("server.origins".into(), problem));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_and_host() {
        let with = |origin: &str| LiveServer { origins: vec![origin.into()], ..Default::default() };
        assert!(with("https://archive.example").check().is_ok());
        for wrong in ["archive.example", "https://archive.example/", "https://", "*"] {
            let (field, problem) = with(wrong).check().unwrap_err();
            assert!(field == "server.origins" && problem.contains(wrong), "{problem}");
        }
        let none = LiveServer { queue: 0, ..Default::default() };
        assert!(none.check().unwrap_err().0.contains("queue"));
    }
}
