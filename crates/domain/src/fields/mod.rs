//! Fields that people and clients fill in. Each type is a rule: a value of the type obeys it.

mod error;
mod idempotency_key;
mod message;
mod names;
mod notes;
mod numbers;
mod rule;

pub use error::FieldError;
pub use idempotency_key::IdempotencyKey;
pub use message::{MessageText, Reference, ReplyText};
pub use names::{KeyName, ListName};
pub use notes::{CreditNote, Note};
pub use numbers::{MaxParts, Validity};
