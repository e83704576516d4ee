//! The limits of the fields of a message, for the API and the dashboard alike.

use std::ops::RangeInclusive;

/// The allowed validity period of a message, in seconds.
pub const VALIDITY_SECONDS: RangeInclusive<i64> = 60..=259_200;
/// The allowed values of `maxParts`.
pub const MAX_PARTS: RangeInclusive<i64> = 1..=255;
/// The longest reference, in characters.
const REFERENCE_LIMIT: usize = 255;

/// The error message for an empty text.
pub const TEXT_REQUIRED: &str = "The text must not be empty.";

/// Returns an error message if the reference is too long.
pub fn reference_error(reference: &str) -> Option<String> {
    let long = reference.chars().count() > REFERENCE_LIMIT;
    long.then(|| format!("The reference must not exceed {REFERENCE_LIMIT} characters."))
}
