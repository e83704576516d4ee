//! Instants as pages show them: as on the wire, and in UTC for who has no script.

use heliograph_domain::time::Timestamp;

/// With the time of day: `09:00 UTC`.
pub(crate) fn clock(at: Timestamp) -> (String, String) {
    let iso = at.to_string();
    let text = format!("{} UTC", iso.get(11..16).unwrap_or_default());
    (iso, text)
}

/// With the day: `2026-11-20 09:00 UTC`.
pub(crate) fn day_and_clock(at: Timestamp) -> (String, String) {
    let iso = at.to_string();
    let part = |range: std::ops::Range<usize>| iso.get(range).unwrap_or_default();
    let text = format!("{} {} UTC", part(0..10), part(11..16));
    (iso, text)
}
