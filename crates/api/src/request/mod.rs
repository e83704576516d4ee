//! Typed requests: one struct is the parser of a JSON body and its schema.

mod declaration;
mod faults;
mod fields;
mod from_json;
mod object;
mod suggestion;
mod syntax_error;

pub(crate) use declaration::request;
pub(crate) use faults::Faults;
pub(crate) use from_json::{FromJson, JsonType, parse};
pub(crate) use object::{ObjectReader, Slot};
