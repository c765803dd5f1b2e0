//! How fast an engine is, on a prompt that is the same for all.

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use crate::{Deadline, Decision, Engine, Generation, LlmError, Schema, YES_NO};

/// Tokens a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Speed {
    /// Of a prompt that is not in memory.
    pub prompt: f64,
    /// Written one by one.
    pub written: f64,
}

/// Has an engine read a passage and write a line about it.
pub fn speed(engine: &dyn Engine, deadline: Deadline) -> Result<Speed, LlmError> {
    const PASSAGE: &str = "The lighthouse of the island was built of grey stone by masons from the \
        mainland. Its lamp was lit for the first time on the eve of Saint John's day and could be \
        seen from nine leagues away. When the old tower burned down in a storm, the keeper carried \
        the log-book to the chapel, where it lay until the school was given a library. ";
    // No prompt of an earlier measurement may be in a server's memory.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let system = format!("Measurement {}. Read the passage and answer.", now.as_nanos());
    let user = PASSAGE.repeat(4) + "Where did the log-book lie?";
    let decision = Decision { system: system.clone(), user: user.clone(), choices: YES_NO };
    let (_, read) = engine.decide(vec![decision], deadline)?;
    let schema = Arc::new(Schema::Text { longest: 160 });
    let written = engine.generate(Generation { system, user, schema, allowance: 200 }, deadline)?;
    let rate = |tokens: u64, milliseconds: u64| tokens as f64 * 1000.0 / milliseconds.max(1) as f64;
    Ok(Speed {
        prompt: rate(read.computed_tokens, read.milliseconds),
        written: rate(written.decoded_tokens, written.cost.milliseconds),
    })
}
