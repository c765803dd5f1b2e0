//! Where answers are kept: each under the hash of everything it depends on, written the moment it
//! exists, and never changed. A killed run loses at most the question in flight.

use std::path::{Path, PathBuf};

use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex_parts};
use florilegium_llm::Cost;
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
    /// What it depends on; its hash is the key.
    pub inputs: InputsRecord,
}

/// What an answer depends on, as it is kept beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputsRecord {
    /// The way in which the program makes answers.
    pub method: String,
    /// The question, white space collapsed.
    pub question: String,
    /// Its language.
    pub language: String,
    /// Identity of the embedding model.
    pub embedding: String,
    /// Identity of the language model.
    pub model: String,
    /// Hash of the prompts.
    pub prompts: String,
    /// Which stages there are: "full" or "degraded".
    pub mode: String,
    /// The settings, as JSON.
    pub settings: String,
    /// The passages retrieved for it, in order.
    pub passages: Vec<PassageRecord>,
}

/// A passage that an answer depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassageRecord {
    /// Its id.
    pub id: String,
    /// Hash of its text.
    pub text_hash: String,
    /// Title of its document.
    pub title: String,
    /// The headings it stands under.
    pub headings: Vec<String>,
}

impl InputsRecord {
    /// The key of the answer to these inputs.
    pub fn key(&self) -> String {
        let fixed = [
            &self.method,
            &self.question,
            &self.language,
            &self.embedding,
            &self.model,
            &self.prompts,
            &self.mode,
            &self.settings,
        ];
        let passages = self.passages.iter().flat_map(|passage| {
            [&passage.id, &passage.text_hash, &passage.title].into_iter().chain(&passage.headings)
        });
        sha256_hex_parts(fixed.into_iter().chain(passages).map(|part| part.as_bytes()))
    }
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
    /// These inputs as they are kept; [`InputsRecord::key`] is the key of the answer to them.
    pub fn record(&self) -> InputsRecord {
        let passage = |candidate: &Candidate<'_>| PassageRecord {
            id: candidate.passage.id.clone(),
            text_hash: candidate.passage.text_hash.clone(),
            title: candidate.title.to_owned(),
            headings: candidate.passage.headings.clone(),
        };
        InputsRecord {
            method: METHOD.to_owned(),
            question: self.question.to_owned(),
            language: self.language.to_owned(),
            embedding: self.embedding.to_owned(),
            model: self.model.to_owned(),
            prompts: self.prompts.to_owned(),
            mode: self.mode.name().to_owned(),
            settings: serde_json::to_string(self.settings).unwrap_or_default(),
            passages: self.candidates.iter().map(passage).collect(),
        }
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
        let Some(stored) = load_if_whole::<Stored>(&self.answer_path(key), ANSWER)? else {
            return Ok(None);
        };
        if stored.key == key && stored.inputs.key() == key {
            return Ok(Some(stored));
        }
        tracing::warn!("{}: it answers something else", self.answer_path(key).display());
        Ok(None)
    }

    /// Keeps an answer. What it cost is no part of it: the same answer is the same bytes.
    pub fn put(&self, stored: &Stored) -> Result<(), FileError> {
        let mut stored = stored.clone();
        let trace = &mut stored.synthesis.trace;
        trace.cost = Cost::default();
        for call in &mut trace.calls {
            // What the model was asked, and how long it took, depends on what was known before.
            call.cost = Cost { decisions: call.cost.decisions, ..Cost::default() };
        }
        record::write(&self.answer_path(&stored.key), ANSWER, &stored)
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

    /// The key of the answer that a curated question got last.
    pub fn latest_key(&self, question: &str) -> Result<Option<String>, FileError> {
        load_if_whole(&self.path.join("latest").join(question), LATEST)
    }

    pub(crate) fn answer_path(&self, key: &str) -> PathBuf {
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
        for name in ["answer-v1", "answer-v2"] {
            let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/fixtures/store");
            let path = store.answer_path("00");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::copy(fixtures.join(name), path).unwrap();
            assert_eq!(store.get("00").unwrap(), None);
        }
    }

    #[test]
    fn the_key_depends_on_every_input_and_on_the_order_of_passages() {
        let passage = |id: &str| PassageRecord { id: id.into(), ..PassageRecord::default() };
        let base =
            InputsRecord { passages: vec![passage("a"), passage("b")], ..InputsRecord::default() };
        let changes: [fn(&mut InputsRecord); 14] = [
            |i| i.method.push('x'),
            |i| i.question.push('x'),
            |i| i.language.push('x'),
            |i| i.embedding.push('x'),
            |i| i.model.push('x'),
            |i| i.prompts.push('x'),
            |i| i.mode.push('x'),
            |i| i.settings.push('x'),
            |i| i.passages.reverse(),
            |i| i.passages[1].id.push('x'),
            |i| i.passages[1].text_hash.push('x'),
            |i| i.passages[1].title.push('x'),
            |i| i.passages[1].headings.push("x".into()),
            |i| _ = i.passages.pop(),
        ];
        let mut keys = vec![base.key()];
        for change in changes {
            let mut changed = base.clone();
            change(&mut changed);
            keys.push(changed.key());
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 15);
    }
}
