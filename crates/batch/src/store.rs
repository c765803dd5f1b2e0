//! Where answers are kept: each under the hash of everything it depends on, written the moment it
//! exists, and never changed. A killed run loses at most the question in flight.

use std::path::{Path, PathBuf};

use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex_parts};
use florilegium_synthesis::{Candidate, Mode, Settings, Synthesis};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const ANSWER: Format = Format { magic: *b"FLORANSW", version: 3 };
const LATEST: Format = Format { magic: *b"FLORLAST", version: 1 };

/// Raised when the code that makes a synthesis changes what comes out.
const METHOD: &str = "synthesis/4";

/// The store of answers of one archive.
#[derive(Debug, Clone)]
pub struct Store {
    path: PathBuf,
}

/// An answer as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The hash it is kept under.
    pub key: String,
    /// Day on which it was made, as `2026-11-30` (UTC).
    pub computed_on: String,
    /// The answer.
    pub synthesis: Synthesis,
}

/// Everything an answer depends on.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The question, white space collapsed.
    pub question: &'a str,
    /// Its language.
    pub language: &'a str,
    /// The passages retrieved for it, in order.
    pub candidates: &'a [Candidate<'a>],
    /// Identity of the embedding model.
    pub embedding: &'a str,
    /// Identity of the language model.
    pub model: &'a str,
    /// Hash of the prompts.
    pub prompts: &'a str,
    /// Which stages there are.
    pub mode: Mode,
    /// The settings.
    pub settings: &'a Settings,
}

impl Inputs<'_> {
    /// The key of the answer to these inputs.
    pub fn key(&self) -> String {
        let settings = serde_json::to_string(self.settings).unwrap_or_default();
        let fixed = [
            METHOD,
            self.question,
            self.language,
            self.embedding,
            self.model,
            self.prompts,
            self.mode.name(),
            &settings,
        ];
        let passages = self.candidates.iter().flat_map(|candidate| {
            let passage = candidate.passage;
            [passage.id.as_str(), &passage.text_hash, candidate.title]
                .into_iter()
                .chain(passage.headings.iter().map(String::as_str))
        });
        sha256_hex_parts(fixed.into_iter().chain(passages).map(str::as_bytes))
    }
}

impl Store {
    /// The store in the folder `path`.
    pub fn new(path: &Path) -> Self {
        Store { path: path.to_owned() }
    }

    /// The answer kept under `key`. A damaged record is reported in the log and counts as missing:
    /// it is computed again.
    pub fn get(&self, key: &str) -> Result<Option<Stored>, FileError> {
        load_if_whole(&self.answer_path(key), ANSWER)
    }

    /// Keeps an answer.
    pub fn put(&self, stored: &Stored) -> Result<(), FileError> {
        record::write(&self.answer_path(&stored.key), ANSWER, stored)
    }

    /// Notes which answer a curated question got last.
    pub fn set_latest(&self, question: &str, key: &str) -> Result<(), FileError> {
        if self.latest_key(question)?.as_deref() == Some(key) {
            return Ok(());
        }
        record::write(&self.path.join("latest").join(question), LATEST, &key)
    }

    /// The last good answer of a curated question.
    pub fn latest(&self, question: &str) -> Result<Option<Stored>, FileError> {
        match self.latest_key(question)? {
            Some(key) => self.get(&key),
            None => Ok(None),
        }
    }

    fn latest_key(&self, question: &str) -> Result<Option<String>, FileError> {
        load_if_whole(&self.path.join("latest").join(question), LATEST)
    }

    fn answer_path(&self, key: &str) -> PathBuf {
        // Two levels, so that no folder grows without bound.
        self.path.join("answers").join(key.get(..2).unwrap_or("00")).join(key)
    }
}

/// Reads a record. A missing one is none; a damaged one is reported in the log and counts as missing,
/// for everything kept here can be made anew.
pub(crate) fn load_if_whole<T: DeserializeOwned>(
    path: &Path,
    format: Format,
) -> Result<Option<T>, FileError> {
    match record::load(path, format) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error @ FileError::Format { .. }) => {
            tracing::warn!("{error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_an_older_version_counts_as_missing_and_is_not_misread() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        for version in ["answer-v1", "answer-v2"] {
            let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/fixtures/store");
            let path = store.answer_path(version);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::copy(fixture.join(version), path).unwrap();
            assert_eq!(store.get(version).unwrap(), None);
        }
    }
}
