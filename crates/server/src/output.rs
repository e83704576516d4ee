//! The one place that prints: results to stdout, talk to stderr.

use std::io::Write;

/// Prints a result. A reader that went away is no error.
pub(crate) fn result(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Says something to the person at the terminal.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
