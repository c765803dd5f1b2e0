//! Progress: a bar with rate and remaining time on a terminal; elsewhere, in a log, a line a minute.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use florilegium_llm::{
    Cost, Deadline, Decision, Engine, Facts, Generated, Generation, Judgement, LlmError,
};
use indicatif::{ProgressBar, ProgressStyle};

/// Between two lines of a log.
const EVERY: Duration = Duration::from_secs(60);

/// How far a piece of work has come.
pub(crate) struct Progress {
    bar: ProgressBar,
    doing: String,
    things: String,
    start: Instant,
    /// When the last line was written; None on a terminal, where there are none.
    line: Option<Mutex<Instant>>,
}

/// The progress of `total` things of this kind.
pub(crate) fn bar(total: u64, doing: &str, things: &str) -> Progress {
    let terminal = std::io::stderr().is_terminal();
    let template = format!(
        "{doing} {{wide_bar}} {{human_pos}}/{{human_len}} {things}, {{per_sec}}, {{eta}} left"
    );
    let bar = if terminal { ProgressBar::new(total) } else { ProgressBar::hidden() };
    bar.set_length(total);
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    let line = (!terminal).then(|| Mutex::new(Instant::now()));
    Progress { bar, doing: doing.into(), things: things.into(), start: Instant::now(), line }
}

impl Progress {
    /// So many more are done.
    pub fn inc(&self, by: u64) {
        self.bar.inc(by);
        self.tell();
    }

    /// So many more are to be done.
    pub fn inc_length(&self, by: u64) {
        self.bar.inc_length(by);
    }

    /// So many are done.
    pub fn set_position(&self, position: u64) {
        self.bar.set_position(position);
        self.tell();
    }

    /// How many are done.
    pub fn position(&self) -> u64 {
        self.bar.position()
    }

    /// All is done.
    pub fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }

    /// It stops here.
    pub fn abandon(&self) {
        self.bar.abandon();
    }

    fn tell(&self) {
        let Some(Ok(mut last)) = self.line.as_ref().map(Mutex::try_lock) else { return };
        if last.elapsed() >= EVERY {
            *last = Instant::now();
            let total = self.bar.length().unwrap_or(0);
            tracing::info!(
                "{}",
                line(&self.doing, &self.things, self.position(), total, self.start.elapsed())
            );
        }
    }
}

/// "answering: 120 of 1000 questions, 2.0 a minute, 7h 20m left"
fn line(doing: &str, things: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-9);
    let rated = if rate >= 1.0 {
        format!("{rate:.0} a second")
    } else {
        format!("{:.1} a minute", rate * 60.0)
    };
    let left = total.saturating_sub(done) as f64 / rate.max(1e-9);
    let left = Duration::from_secs(if left < 1e9 { left as u64 } else { 0 });
    format!(
        "{doing}: {done} of {total} {things}, {rated}, {} left",
        humantime::format_duration(left)
    )
}

/// An engine whose decisions are counted.
pub struct Counted<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// Hears how many more were taken.
    pub done: &'a (dyn Fn(usize) + Sync),
    /// Whether no further one is to be taken.
    pub stop: &'a (dyn Fn() -> bool + Sync),
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
        if (self.stop)() {
            return Err(LlmError::Cancelled);
        }
        let count = decisions.len();
        let decided = self.engine.decide(decisions, deadline);
        (self.done)(count);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_rate_and_remaining_time() {
        let line = |done, seconds| {
            line("answering", "questions", done, 1000, Duration::from_secs(seconds))
        };
        assert_eq!(line(120, 3600), "answering: 120 of 1000 questions, 2.0 a minute, 7h 20m left");
        assert_eq!(line(500, 5), "answering: 500 of 1000 questions, 100 a second, 5s left");
        assert!(line(0, 0).contains("0 of 1000"));
    }
}
