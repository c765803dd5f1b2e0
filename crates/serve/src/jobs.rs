//! Answers in the making: each question once, and not too many at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use florilegium_batch::{Answered, BatchError, Library};
use tokio::sync::watch;

/// Questions that may wait or be answered at one time; the engine takes them one after the other.
const WAITING: usize = 8;
/// Failures remembered, so that a page that refreshes itself does not start the same failure again.
const FAILURES: usize = 64;

type Key = (String, String);

/// How an answer stands.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// It is being made.
    Running,
    /// It is there.
    Done(Arc<Answered>),
    /// It could not be made; the reason is in the log.
    Failed,
}

/// The answers in the making.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    running: Mutex<HashMap<Key, watch::Receiver<Standing>>>,
    failed: Arc<Mutex<Vec<Key>>>,
}

impl Jobs {
    /// Starts an answer, or joins the one being made; nothing when too many wait.
    pub fn start(
        self: &Jobs,
        library: &Arc<Library>,
        question: &str,
        language: &str,
    ) -> Option<watch::Receiver<Standing>> {
        let key = (question.to_owned(), language.to_owned());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, standing| matches!(*standing.borrow(), Standing::Running));
        if let Some(standing) = running.get(&key) {
            return Some(standing.clone());
        }
        if running.len() >= WAITING {
            return None;
        }
        let (sender, receiver) = watch::channel(Standing::Running);
        let library = library.clone();
        let failed = self.failed.clone();
        running.insert(key.clone(), receiver.clone());
        tokio::task::spawn_blocking(move || {
            let standing = match library.ask(&key.0, &key.1, &[]) {
                Ok(answered) => Standing::Done(Arc::new(answered)),
                Err(error) => {
                    report(&error);
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    if failed.len() >= FAILURES {
                        failed.remove(0);
                    }
                    failed.push(key);
                    Standing::Failed
                }
            };
            let _ = sender.send(standing);
        });
        Some(receiver)
    }

    /// Whether this question failed lately; asked once, then forgotten, so that it can be tried
    /// again.
    pub fn take_failure(&self, question: &str, language: &str) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match failed.iter().position(|(q, l)| q == question && l == language) {
            Some(at) => {
                failed.remove(at);
                true
            }
            None => false,
        }
    }
}

fn report(error: &BatchError) {
    tracing::error!("a question could not be answered: {error}");
}
