//! Small helpers for error texts, which the API and the dashboard show as sentences.

/// Turns a clause, as error types print it, into a sentence.
pub fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
