//! Phone numbers: who a message is for.

use std::fmt;

/// An international number as digits without the plus: `447700900123`. At most 15 digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Recipient(pub u64);

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
