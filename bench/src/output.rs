//! The one place that prints.

use std::io::Write;

/// Prints one result.
pub(crate) fn result(line: &impl std::fmt::Display) {
    // A reader that went away is no reason to stop.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Says something to the person at the terminal.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
