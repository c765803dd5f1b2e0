//! Whether somebody has asked to stop: a signal, as a rule.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Asks every run of this process to stop at the next place where nothing is lost. Gives whether that
/// had been asked before.
pub fn request() -> bool {
    STOP.swap(true, Ordering::Relaxed)
}

/// Whether somebody has asked to stop.
pub fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}
