//! Formatting of counts, percentages, durations and times.

use heliograph_domain::money::Amount;
use heliograph_domain::originator::{Originator, OriginatorKind};
use heliograph_domain::text::Encoding;
use heliograph_domain::time::Timestamp;
use std::time::Duration;

/// Formats a count with thousands separators: `12,804`.
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

/// Formats an amount with thousands separators: `12,804.5000 EUR`.
pub(crate) fn money(amount: Amount, currency: &str) -> String {
    let text = amount.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "00"));
    match whole.parse() {
        Ok(whole) => format!("{sign}{}.{fraction} {currency}", count(whole)),
        Err(_) => format!("{text} {currency}"),
    }
}

/// Formats an originator as people write it: an international number with its plus.
pub(crate) fn originator(originator: &Originator) -> String {
    match originator.kind() {
        OriginatorKind::International => format!("+{originator}"),
        OriginatorKind::Alphanumeric | OriginatorKind::ShortCode => originator.to_string(),
    }
}

/// Formats a ratio as a percentage: `98.2%`. It rounds down, so that only 1 becomes `100%`.
pub(crate) fn percent(ratio: f64) -> String {
    let percent = (ratio * 1_000.0).floor() / 10.0;
    if percent >= 100.0 { "100%".to_owned() } else { format!("{percent:.1}%") }
}

/// Formats a duration: `340 ms`, `2.1 s`, `12 min`, `3 h`, `2 d`.
pub(crate) fn duration(time: Duration) -> String {
    let (millis, seconds) = (time.as_millis(), time.as_secs());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, millis % 1_000 / 100),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats milliseconds: `340 ms`, `2.1 s`.
pub(crate) fn millis(millis: i32) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        _ => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
    }
}

/// Returns the name of an encoding for people.
pub(crate) const fn encoding(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Gsm7 => "GSM-7",
        Encoding::Ucs2 => "Unicode (UCS-2)",
    }
}

/// Formats a time in RFC 3339, and as a time of day for browsers without scripts: `09:12 UTC`.
pub(crate) fn time_of_day(at: Timestamp) -> (String, String) {
    let iso = at.to_string();
    let text = format!("{} UTC", iso.get(11..16).unwrap_or_default());
    (iso, text)
}

/// Formats a time in RFC 3339, and as date and time for browsers without scripts: `2026-11-21 09:12
/// UTC`.
pub(crate) fn date_time(at: Timestamp) -> (String, String) {
    let iso = at.to_string();
    let (day, clock) = (iso.get(..10).unwrap_or_default(), iso.get(11..16).unwrap_or_default());
    let text = format!("{day} {clock} UTC");
    (iso, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_formatted() {
        for (n, text) in [(0, "0"), (999, "999"), (12_804, "12,804"), (-1_000_000, "-1,000,000")] {
            assert_eq!(count(n), text);
        }
        for (amount, text) in
            [(1_234_567_890_000, "1,234,567.8900 EUR"), (-1_500_000, "-1.5000 EUR")]
        {
            assert_eq!(money(Amount(amount), "EUR"), text);
        }
        for (from, text) in
            [("447700900123", "+447700900123"), ("80100", "80100"), ("Shop", "Shop")]
        {
            assert_eq!(originator(&from.parse().unwrap()), text);
        }
        for (ratio, text) in [(1.0, "100%"), (0.99999, "99.9%"), (0.5, "50.0%"), (0.0, "0.0%")] {
            assert_eq!(percent(ratio), text);
        }
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (2_150, "2.1 s"),
            (60_000, "1 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
        let (iso, text) = date_time(Timestamp(1_795_165_200_120));
        assert_eq!((&*iso, &*text), ("2026-11-20T09:00:00.120Z", "2026-11-20 09:00 UTC"));
    }
}
