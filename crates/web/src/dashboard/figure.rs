//! Figures as people read them: counts, shares, spans of time and instants.

use heliograph_domain::time::Timestamp;
use std::time::Duration;

/// A count, with its thousands apart: `12,804`.
pub(crate) fn count(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if n < 0 { format!("-{text}") } else { text }
}

/// A share: `98.2 %`. What is less than all never looks like all.
pub(crate) fn share(of_one: f64) -> String {
    let percent = (of_one * 1_000.0).floor() / 10.0;
    if percent >= 100.0 { "100 %".to_owned() } else { format!("{percent:.1} %") }
}

/// How long: `340 ms`, `2.1 s`, `12 min`, `3 h`, `2 d`.
pub(crate) fn span(time: Duration) -> String {
    let (millis, seconds) = (time.as_millis(), time.as_secs());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, millis % 1_000 / 100),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// An instant as on the wire, and in UTC for who has no script: `2026-11-21 09:12 UTC`.
pub(crate) fn instant(at: Timestamp) -> (String, String) {
    let iso = at.to_string();
    let (day, clock) = (iso.get(..10).unwrap_or_default(), iso.get(11..16).unwrap_or_default());
    let text = format!("{day} {clock} UTC");
    (iso, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        for (n, text) in [(0, "0"), (999, "999"), (12_804, "12,804"), (-1_000_000, "-1,000,000")] {
            assert_eq!(count(n), text);
        }
        for (of_one, text) in [(1.0, "100 %"), (0.99999, "99.9 %"), (0.5, "50.0 %"), (0.0, "0.0 %")]
        {
            assert_eq!(share(of_one), text);
        }
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (2_150, "2.1 s"),
            (60_000, "1 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
        let (iso, text) = instant(Timestamp(1_795_165_200_120));
        assert_eq!((&*iso, &*text), ("2026-11-20T09:00:00.120Z", "2026-11-20 09:00 UTC"));
    }
}
