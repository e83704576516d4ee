//! What a message may be that somebody wants to send: the same by the API and on a page.

use std::ops::RangeInclusive;

/// For how many seconds a message may be tried.
pub(crate) const VALIDITY: RangeInclusive<i64> = 60..=259_200;
/// Of how many parts somebody may want it at most.
pub(crate) const MAX_PARTS: RangeInclusive<i64> = 1..=255;
/// The longest reference, in characters.
const REFERENCE_LIMIT: usize = 255;

/// What is said where there is no text.
pub(crate) const NO_TEXT: &str = "The text must hold at least one character.";

/// What is wrong with a reference, if anything is.
pub(crate) fn bad_reference(reference: &str) -> Option<String> {
    let long = reference.chars().count() > REFERENCE_LIMIT;
    long.then(|| format!("This must be at most {REFERENCE_LIMIT} characters."))
}
