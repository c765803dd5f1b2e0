//! The question log: off unless the pipeline names a folder. A line a question, with the day, the
//! language, the folded question and what came of it. No address, no time of day, no order within a day
//! that would tell who asked what after what is kept on purpose: a file a day, and nothing else.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use florilegium_fold::fold;
use serde::Serialize;

/// Where questions are noted, if anywhere.
pub(crate) struct QuestionLog {
    folder: Option<PathBuf>,
    writing: Mutex<()>,
}

#[derive(Serialize)]
struct Line<'a> {
    day: &'a str,
    lang: &'a str,
    question: String,
    outcome: &'a str,
}

impl QuestionLog {
    pub fn new(folder: Option<PathBuf>) -> Self {
        QuestionLog { folder, writing: Mutex::new(()) }
    }

    #[cfg(test)]
    pub fn off() -> Self {
        Self::new(None)
    }

    /// Notes a question. That it could not be is said in the log of the server.
    pub fn note(&self, language: &str, question: &str, outcome: &str) {
        let Some(folder) = &self.folder else { return };
        let day: String =
            humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
        let day = day.get(..10).unwrap_or("unknown");
        let line = Line { day, lang: language, question: fold(question), outcome };
        let append = || -> std::io::Result<()> {
            std::fs::create_dir_all(folder)?;
            let path = folder.join(format!("{day}.jsonl"));
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            let mut text = serde_json::to_vec(&line)?;
            text.push(b'\n');
            file.write_all(&text)
        };
        let _one = self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Err(error) = append() {
            tracing::warn!("the question log in {}: {error}", folder.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_day_language_folded_question_and_outcome_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let log = QuestionLog::new(Some(folder.path().join("log")));
        log.note("fr", "Où est l’Été ?", "answered");
        log.note("fr", "\u{1}\n{\"x\"", "failed");
        let file = std::fs::read_dir(folder.path().join("log")).unwrap().next().unwrap().unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        let keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["day", "lang", "outcome", "question"]);
        assert_eq!(lines[0]["question"], fold("ou est l'ete"));
        QuestionLog::off().note("fr", "x", "y");
    }
}
