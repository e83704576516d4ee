//! The English texts of codes that more than one of API, webhooks, dashboard and commands shows.
//!
//! Types and the database hold codes. A text that only the API, the dashboard or a command shows is
//! in that crate; a text that several of them show is here, so that it is written once. This is the
//! only place that all of them can import: `api`, `dashboard` and `server` do not import each other,
//! and the body of a webhook, which contains the text of a failure, is rendered by [`crate::event`].
//! `service`, `store`, `engine` and `carrier` do not import this module.

pub mod cancellation;
pub mod deliveries;
pub mod endpoints;
pub mod failures;
pub mod limits;

/// Turns a clause, as error types print it, into a sentence.
pub fn sentence(clause: &str) -> String {
    format!("{}.", capitalized(clause))
}

/// Returns a text with an upper-case first letter.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}
