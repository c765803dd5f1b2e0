//! What requests are answered from: one library with its questions and pages. A new one, after a batch
//! run, takes the place of the old as a whole; a request that has begun ends with the one it began with.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use florilegium_batch::{BatchError, Library, Wordings, normalise};
use florilegium_publish::Chrome;
use florilegium_questions::{Question, QuestionList};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Curated questions listed beside the passages.
const NEAR: usize = 5;

/// A library with its questions and what is around the text of every page.
pub struct Loaded {
    /// The library that is searched and asked.
    pub library: Library,
    /// The curated questions.
    pub questions: QuestionList,
    /// What is around the text of every page.
    pub chrome: Chrome,
    /// The wordings of the curated questions, by likeness.
    pub wordings: Wordings,
}

/// Opens what a run has built.
pub type Open = Box<dyn Fn() -> Result<Loaded, String> + Send + Sync>;

/// The library in use.
pub(crate) struct Current {
    loaded: RwLock<Arc<Loaded>>,
}

impl Loaded {
    /// Curated questions that are like `text`, the likest first.
    pub(crate) fn near(&self, text: &str, language: &str) -> Result<Vec<&Question>, BatchError> {
        let languages = [language.to_owned()];
        let near = self.wordings.nearest(&self.library, &normalise(text), &languages, NEAR)?;
        let questions = self.questions.questions();
        Ok(near.iter().filter_map(|near| questions.get(near.question)).collect())
    }
}

impl Current {
    pub fn new(loaded: Loaded) -> Self {
        Current { loaded: RwLock::new(Arc::new(loaded)) }
    }

    /// The library in use now; whoever holds it keeps it whole.
    pub fn get(&self) -> Arc<Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the files now and then, and opens the library anew once they have changed and rest.
    /// `changed` hears of it.
    pub async fn follow(
        self: Arc<Self>,
        files: Vec<PathBuf>,
        open: Open,
        changed: impl Fn(&Loaded),
    ) {
        let open = Arc::new(open);
        let mut known = stamps(&files);
        let mut before = known.clone();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = stamps(&files);
            // A run that is writing is let finish.
            if now != known && now == before {
                let opened = {
                    let open = open.clone();
                    tokio::task::spawn_blocking(move || open()).await
                };
                match opened {
                    Ok(Ok(loaded)) => {
                        changed(&loaded);
                        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) =
                            Arc::new(loaded);
                        tracing::info!("the archive has changed; it was opened anew");
                        known = now.clone();
                    }
                    Ok(Err(error)) => {
                        tracing::warn!("the archive has changed and cannot be opened yet: {error}");
                    }
                    Err(error) => tracing::error!("{error}"),
                }
            }
            before = now;
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    files
        .iter()
        .map(|file| {
            let data = std::fs::metadata(file).ok()?;
            Some((data.modified().ok()?, data.len()))
        })
        .collect()
}
