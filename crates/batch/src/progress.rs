//! Progress bars: on a terminal, with rate and remaining time; nothing elsewhere.

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
