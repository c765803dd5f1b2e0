//! The shelf on disk: what was computed before a restart need not be computed after it.
//!
//! Each state is a file of llama.cpp's, named by the hash of its content: a file that has been
//! damaged is removed before llama.cpp sees it.

use std::path::{Path, PathBuf};

use florilegium_files::{FileError, persist, sha256_hex, sha256_hex_file, temporary_beside};
use llama_cpp_2::context::session::LlamaStateSeqFlags;

use super::{LocalConfig, Session};

/// The sequence that states pass through on their way; memory is empty then.
const WAY: i32 = 0;

/// The folder of the states of one model with one kind of memory.
pub(super) fn folder(config: &LocalConfig) -> Option<PathBuf> {
    let of = sha256_hex(format!("{} {:?}", config.identity, config.memory).as_bytes());
    Some(config.states.as_ref()?.join(&of[..16]))
}

impl Session<'_> {
    /// Takes up the states of an earlier process. One that cannot be used is left out.
    pub(super) fn load_states(&mut self, folder: &Path) {
        for path in state_files(folder) {
            let named = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
            if sha256_hex_file(&path).ok() != named {
                tracing::warn!("{} is damaged and is removed", path.display());
                let _ = std::fs::remove_file(&path);
                continue;
            }
            let loaded = self.context.state_seq_load_file(&path, WAY, self.cells);
            match loaded {
                Ok((tokens, _)) => {
                    let state = self.context.state_seq_get(WAY, LlamaStateSeqFlags::empty());
                    if let Ok(state) = state {
                        let bytes = state.byte_len();
                        self.shelf.put(tokens, state, bytes);
                    }
                }
                Err(error) => tracing::warn!("{} cannot be used: {error}", path.display()),
            }
            self.forget_all();
        }
    }

    /// Writes the shelf, with what is in memory, for the next process.
    pub(super) fn save_states(&mut self, folder: &Path) -> Result<(), FileError> {
        self.shelve();
        let mut written = Vec::new();
        for (tokens, state) in self.shelf.states() {
            self.context.clear_kv_cache();
            if self.context.state_seq_set(state, WAY).is_err() {
                continue;
            }
            let temporary = temporary_beside(&folder.join("state"))?;
            if let Err(error) = self.context.state_seq_save_file(&temporary, WAY, tokens) {
                tracing::warn!("a state cannot be written to {}: {error}", folder.display());
                let _ = std::fs::remove_file(&temporary);
                continue;
            }
            let path = folder.join(sha256_hex_file(&temporary)? + ".state");
            persist(&temporary, &path)?;
            written.push(path);
        }
        for old in state_files(folder).into_iter().filter(|path| !written.contains(path)) {
            let _ = std::fs::remove_file(old);
        }
        Ok(())
    }
}

fn state_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some("state".as_ref()))
        .collect()
}
