//! What day it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time as far as it is written down: now, or what `SOURCE_DATE_EPOCH` says, the usual way to ask
/// for the same bytes on another day.
pub(crate) fn now() -> SystemTime {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse().ok());
    match given.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds))) {
        Some(time) if time < UNIX_EPOCH + FOUR_DIGITS => time,
        _ => SystemTime::now(),
    }
}

/// Later than this, a year has five digits.
const FOUR_DIGITS: Duration = Duration::from_secs(253_402_300_800);

/// The time, as `2026-11-30T01:02:03Z`.
pub(crate) fn timestamp() -> String {
    humantime::format_rfc3339_seconds(now()).to_string()
}

/// Today, as `2026-11-30` (UTC).
pub(crate) fn today() -> String {
    let mut text = timestamp();
    text.truncate(10);
    text
}
