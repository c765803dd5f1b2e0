//! Progress bars: on a terminal, with rate and remaining time; nothing elsewhere.

use florilegium_llm::{
    Cost, Deadline, Decision, Engine, Facts, Generated, Generation, Judgement, LlmError,
};
use indicatif::{ProgressBar, ProgressStyle};

/// A bar for `total` things of this kind.
pub(crate) fn bar(total: u64, doing: &str, things: &str) -> ProgressBar {
    let template = format!(
        "{doing} {{wide_bar}} {{human_pos}}/{{human_len}} {things}, {{per_sec}}, {{eta}} left"
    );
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}

/// An engine whose decisions are counted on a bar.
pub struct Counted<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// The bar.
    pub bar: &'a ProgressBar,
}

impl Engine for Counted<'_> {
    fn identity(&self) -> &str {
        self.engine.identity()
    }

    fn decide(
        &self,
        decisions: Vec<Decision>,
        deadline: Deadline,
    ) -> Result<(Vec<Judgement>, Cost), LlmError> {
        let count = decisions.len() as u64;
        let decided = self.engine.decide(decisions, deadline);
        self.bar.inc(count);
        decided
    }

    fn slots(&self) -> usize {
        self.engine.slots()
    }

    fn generate(&self, generation: Generation, deadline: Deadline) -> Result<Generated, LlmError> {
        self.engine.generate(generation, deadline)
    }

    fn facts(&self) -> Vec<Facts> {
        self.engine.facts()
    }
}
