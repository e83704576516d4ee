//! Small helpers for error texts, which the API and the dashboard show as sentences.

use std::ops::RangeInclusive;

/// Turns a clause, as error types print it, into a sentence.
pub fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Returns the error message for a number outside of its bounds.
pub fn out_of_range(bounds: &RangeInclusive<i64>) -> String {
    format!("The value must be between {} and {}.", bounds.start(), bounds.end())
}
