//! Progress bars: bytes of one model.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::Model;

/// A bar counting the bytes of `model`; hidden unless wanted and standard error is a terminal.
pub(crate) fn bar(model: &Model, wanted: bool) -> ProgressBar {
    if !wanted || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(model.size);
    let template = "{prefix} {bar:24} {bytes}/{total_bytes} {bytes_per_sec} {eta}  {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(model.id.clone());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
