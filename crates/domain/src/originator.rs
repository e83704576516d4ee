//! Originators: who a message is from.

use std::fmt;

/// Who a message is from, as the recipient sees it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Originator(String);

impl fmt::Display for Originator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
