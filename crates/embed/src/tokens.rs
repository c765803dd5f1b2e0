//! Texts to token ids, with the prefix the model was trained with.

use std::path::{Path, PathBuf};

use florilegium_files::{read, sha256_hex};
use tokenizers::Tokenizer;

use crate::EmbedError;

/// What a text is to the model. It was trained with a prefix on either; without it, or with the
/// wrong one, retrieval is worse and nothing says so. So a text cannot be tokenized without a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Something sought.
    Query,
    /// Something that may be found.
    Passage,
}

impl Role {
    /// The prefix; see the model card of multilingual-e5-small.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Role::Query => "query: ",
            Role::Passage => "passage: ",
        }
    }
}

/// A tokenizer that neither cuts nor pads.
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    pub(crate) path: PathBuf,
    pub(crate) hash: String,
}

impl Tokens {
    pub(crate) fn load(path: &Path) -> Result<Self, EmbedError> {
        let bytes = read(path)?;
        let format = |error: tokenizers::Error| EmbedError::Format {
            path: path.to_owned(),
            problem: format!("not a tokenizer.json: {error}"),
        };
        let mut tokenizer = Tokenizer::from_bytes(&bytes).map_err(format)?;
        tokenizer.with_truncation(None).map_err(format)?;
        tokenizer.with_padding(None);
        Ok(Tokens { tokenizer, path: path.to_owned(), hash: sha256_hex(&bytes) })
    }

    /// The number of different tokens.
    pub(crate) fn size(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// The token ids of prefix and text, with `<s>` and `</s>`.
    pub(crate) fn encode(
        &self,
        role: Role,
        text: &str,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<u32>, EmbedError> {
        let whole = [role.prefix(), text].concat();
        match self.tokenizer.encode_fast(whole, true) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(error) => Err(EmbedError::Tokenize { what: what(), problem: error.to_string() }),
        }
    }
}
