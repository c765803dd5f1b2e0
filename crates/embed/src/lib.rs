//! Sentence embeddings: multilingual-e5-small on candle.
//!
//! Texts in, unit vectors out. The model (intfloat/multilingual-e5-small: BERT, 12 layers of 384,
//! mean pooling) was trained with the prefixes `query: ` and `passage: `; here a text is a question
//! or a passage, and the prefix comes with that choice, so that it cannot be forgotten.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use florilegium_embed::{EmbedConfig, Embedder};
//! let embedder = Embedder::open(&EmbedConfig::new("e5-small-q4.bin", "tokenizer.json"))?;
//! let question = embedder.question("Where are the settings kept?")?;
//! let passages = embedder.passages(&["They are kept in /etc."], &mut |_, _| {})?;
//! let nearness: f32 = question.iter().zip(&passages[0]).map(|(a, b)| a * b).sum();
//! # Ok(()) }
//! ```
//!
//! Weights come from the packed 4-bit bundle (converted once to GGUF, see [`convert()`]), from such a
//! GGUF file, or from the model's own checkpoint in safetensors. The same text gives the same vector
//! alone, in a batch, and on any number of threads. A text with more tokens than the model reads is
//! an error; nothing is ever cut silently.

mod batch;
mod bundle;
mod convert;
mod embedder;
mod encoder;
mod error;
mod kernels;
mod portable;
mod tokens;
mod weights;

pub use convert::{convert, gguf_path};
pub use embedder::{Arithmetic, Compute, EmbedConfig, Embedder, Vector};
pub use error::EmbedError;
