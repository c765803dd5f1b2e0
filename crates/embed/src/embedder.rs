//! The engine's face: open it, ask it for vectors.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use candle_core::Device;
use florilegium_files::sha256_hex_parts;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::EmbedError;
use crate::batch::plan;
use crate::bundle::Shape;
use crate::encoder::Encoder;
use crate::portable::Portable;
use crate::tokens::{Role, Tokens};
use crate::weights;

/// A vector of unit length, with as many numbers as [`Embedder::dimension`] says.
pub type Vector = Vec<f32>;

/// How the linear layers compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arithmetic {
    /// f32 throughout: quantized weights are expanded when loaded (85 MB), and nothing is rounded
    /// afterwards. Measured (see `data/fixtures/embed/README.md`): seven times as fast as
    /// [`Arithmetic::Quantized`], and four times as fast as the C engine of the packed bundle.
    #[default]
    Full,
    /// The weights stay as they are stored and inputs are rounded to 8 bits on the fly. Uses a
    /// quarter of the memory or less.
    Quantized,
}

/// What computes the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compute {
    /// The processor.
    #[default]
    Cpu,
    /// The first NVIDIA card; needs the feature `cuda`.
    Cuda,
}

/// What to open, and how.
#[derive(Debug, Clone)]
pub struct EmbedConfig {
    /// The weights: a packed bundle, a GGUF file made from one, a safetensors file with its
    /// `config.json` beside it, or a folder with `model.safetensors` and `config.json`.
    pub weights: PathBuf,
    /// The model's `tokenizer.json`.
    pub tokenizer: PathBuf,
    /// The most tokens a text may have, its prefix and `<s>`, `</s>` included; at most what the
    /// model reads (512).
    pub max_tokens: usize,
    /// Threads to compute with; `None` for one a core.
    pub threads: Option<usize>,
    /// How the linear layers compute, on the CPU.
    pub arithmetic: Arithmetic,
    /// What computes.
    pub compute: Compute,
}

/// An encoder, wherever it computes.
enum Encoding {
    Cpu(Encoder),
    Device(Portable),
}

impl Encoding {
    fn forward(&self, texts: &[&[u32]]) -> candle_core::Result<Vec<Option<Vec<f32>>>> {
        match self {
            Encoding::Cpu(encoder) => encoder.forward(texts),
            Encoding::Device(encoder) => encoder.forward(texts),
        }
    }
}

impl EmbedConfig {
    /// The model's own limit, all cores, and the arithmetic that was measured to be faster.
    pub fn new(weights: impl Into<PathBuf>, tokenizer: impl Into<PathBuf>) -> Self {
        EmbedConfig {
            weights: weights.into(),
            tokenizer: tokenizer.into(),
            max_tokens: 512,
            threads: None,
            arithmetic: Arithmetic::default(),
            compute: Compute::default(),
        }
    }
}

/// Tokens computed together: enough to use each weight often while it is in the cache, few enough
/// that what is between two layers stays in a core's own cache.
const BUDGET: usize = 1024;

/// The fewest tokens that a text can have: `<s>`, two of prefix, one of text, `</s>`.
const FEWEST: usize = 5;

/// Turns texts into vectors. May be shared among threads.
pub struct Embedder {
    encoder: Encoding,
    shape: Shape,
    tokens: Tokens,
    max_tokens: usize,
    hash: String,
    /// All threads on one text.
    wide: ThreadPool,
    /// Each thread on texts of its own: pools of one thread, so that what candle does in parallel
    /// stays within it.
    narrow: Vec<ThreadPool>,
}

impl Embedder {
    /// Loads weights and tokenizer.
    ///
    /// # Errors
    /// A file is missing, damaged, or does not belong to the others; a setting makes no sense.
    pub fn open(config: &EmbedConfig) -> Result<Self, EmbedError> {
        // Both take their time, the tokenizer more.
        let (tokens, loaded) = thread::scope(|scope| {
            let tokens = scope.spawn(|| Tokens::load(&config.tokenizer));
            let loaded = weights::load(&config.weights);
            let tokens = tokens.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (tokens, loaded)
        });
        let (tokens, weights) = (tokens?, loaded?);
        let shape = weights.shape.clone();
        if tokens.size() > shape.tokens {
            return Err(EmbedError::Mismatch {
                tokenizer: config.tokenizer.clone(),
                tokens: tokens.size(),
                weights: config.weights.clone(),
                rows: shape.tokens,
            });
        }
        let positions = shape.positions;
        if !(FEWEST..=positions).contains(&config.max_tokens) {
            return Err(EmbedError::Setting {
                field: "max_tokens",
                problem: format!(
                    "{} is not within {FEWEST} to {positions}, which this model reads",
                    config.max_tokens
                ),
            });
        }
        let threads = match config.threads {
            Some(0) => {
                return Err(EmbedError::Setting {
                    field: "threads",
                    problem: "must be at least 1".into(),
                });
            }
            Some(threads) => threads,
            None => thread::available_parallelism().map_or(1, usize::from),
        };
        let pool = |threads: usize| {
            ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|_| "embed".into())
                .build()
                .map_err(|error| EmbedError::Threads(error.to_string()))
        };
        let encoder = match config.compute {
            Compute::Cpu => Encoding::Cpu(weights.encoder(config.arithmetic)?),
            Compute::Cuda => {
                let device = Device::new_cuda(0).map_err(|error| EmbedError::Setting {
                    field: "compute",
                    problem: format!("there is no CUDA here ({error}); build with --features cuda on a machine that has it, or choose \"cpu\""),
                })?;
                Encoding::Device(weights.portable(device)?)
            }
        };
        let narrow = match (config.compute, config.arithmetic) {
            (Compute::Cpu, Arithmetic::Full) => {
                (0..threads).map(|_| pool(1)).collect::<Result<_, _>>()?
            }
            // Candle's quantized product has threads of its own, and a card is one: each lets in one
            // caller at a time.
            _ => Vec::new(),
        };
        let scheme = format!(
            "1; {:?}; {:?}; mean, unit length; {:?}",
            Role::Query.prefix(),
            Role::Passage.prefix(),
            config.arithmetic
        );
        let hash =
            sha256_hex_parts([weights.hash.as_bytes(), tokens.hash.as_bytes(), scheme.as_bytes()]);
        Ok(Embedder {
            encoder,
            shape,
            tokens,
            max_tokens: config.max_tokens,
            hash,
            wide: pool(threads)?,
            narrow,
        })
    }

    /// The number of numbers in a vector: 384 for multilingual-e5-small.
    pub fn dimension(&self) -> usize {
        self.shape.hidden
    }

    /// The most tokens a text may have, prefix and special tokens included.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// SHA-256 over the weights file, the tokenizer file, the prefixes and the arithmetic: equal for
    /// two engines only if their vectors may be compared.
    pub fn model_hash(&self) -> &str {
        &self.hash
    }

    /// The tokens that `text` has as a passage, prefix and special tokens included: it can be
    /// embedded if that is at most [`Embedder::max_tokens`]. A text that cannot be tokenized at all
    /// counts as `usize::MAX`, which fits no budget.
    pub fn count_tokens(&self, text: &str) -> usize {
        match self.tokens.encode(Role::Passage, text, String::new) {
            Ok(ids) => ids.len(),
            Err(error) => {
                tracing::warn!("a text could not be counted: {error}");
                usize::MAX
            }
        }
    }

    /// The vector of a question.
    ///
    /// # Errors
    /// The question is empty or too long.
    pub fn question(&self, text: &str) -> Result<Vector, EmbedError> {
        let what = || "the question".to_owned();
        let ids = self.checked(Role::Query, text, what)?;
        let vectors = self.wide.install(|| self.encoder.forward(&[&ids]))?;
        let vector = vectors.into_iter().next().flatten();
        vector.ok_or_else(|| EmbedError::NotFinite { what: what() })
    }

    /// The vectors of passages, in their order. `progress` is told, now and then and at the end, how
    /// many texts and how many tokens are done.
    ///
    /// # Errors
    /// A passage is empty or too long; nothing is computed then.
    pub fn passages(
        &self,
        texts: &[&str],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Vec<Vector>, EmbedError> {
        let ids: Vec<Vec<u32>> = self.wide.install(|| {
            let texts = texts.par_iter().enumerate();
            texts
                .map(|(number, text)| self.checked(Role::Passage, text, || name(number)))
                .collect::<Result<_, _>>()
        })?;
        let lengths: Vec<usize> = ids.iter().map(Vec::len).collect();
        let plan = plan(&lengths, BUDGET);
        let mut vectors: Vec<Option<Vector>> = vec![None; texts.len()];
        let (mut done, mut tokens) = (0, 0);

        let wide = [&self.wide];
        let narrow: Vec<&ThreadPool> = self.narrow.iter().collect();
        // With fewer runs than threads, the threads do better together.
        let pools: &[&ThreadPool] =
            if plan.runs.len() < narrow.len() || narrow.is_empty() { &wide } else { &narrow };
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for pool in pools {
                let sender = sender.clone();
                let (plan, ids, next) = (&plan, &ids, &next);
                scope.spawn(move || {
                    pool.install(|| {
                        while let Some(run) = plan.runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                            let texts: Vec<&[u32]> =
                                plan.order[run.clone()].iter().map(|&t| &*ids[t]).collect();
                            let result = self.encoder.forward(&texts);
                            // Nobody listens any more once a run has failed.
                            if sender.send((run.clone(), result)).is_err() {
                                return;
                            }
                        }
                    });
                });
            }
            drop(sender);
            for (run, result) in receiver {
                for (&text, vector) in plan.order[run].iter().zip(result?) {
                    let finite =
                        vector.ok_or_else(|| EmbedError::NotFinite { what: name(text) })?;
                    vectors[text] = Some(finite);
                    done += 1;
                    tokens += lengths[text];
                }
                progress(done, tokens);
            }
            Ok::<(), EmbedError>(())
        })?;
        let vectors: Option<Vec<Vector>> = vectors.into_iter().collect();
        vectors.ok_or_else(|| EmbedError::Threads("a thread ended before its work".into()))
    }

    /// Tokenizes a text that is neither empty nor too long.
    fn checked(
        &self,
        role: Role,
        text: &str,
        what: impl Fn() -> String,
    ) -> Result<Vec<u32>, EmbedError> {
        if text.trim().is_empty() {
            return Err(EmbedError::Empty { what: what() });
        }
        let ids = self.tokens.encode(role, text, &what)?;
        if ids.len() > self.max_tokens {
            return Err(EmbedError::TooLong {
                what: what(),
                tokens: ids.len(),
                limit: self.max_tokens,
                beginning: text.chars().take(40).collect(),
            });
        }
        Ok(ids)
    }
}

impl std::fmt::Debug for Embedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedder")
            .field("shape", &self.shape)
            .field("tokenizer", &self.tokens.path)
            .field("model_hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// What a passage is called in a message; people count from 1.
fn name(number: usize) -> String {
    format!("passage {}", number + 1)
}
