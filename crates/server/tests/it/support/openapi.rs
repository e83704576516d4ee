//! The OpenAPI document of the repository.

use serde_json::Value;

pub(crate) const COMMITTED: &str = include_str!("../../../../../openapi.json");

/// Returns the parsed document.
pub(crate) fn document() -> Value {
    serde_json::from_str(COMMITTED).unwrap()
}
