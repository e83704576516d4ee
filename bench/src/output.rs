//! Output of the tools: results go to stdout, everything else to stderr.

use std::io::Write;

/// Prints a result to stdout.
pub(crate) fn stdout(line: &impl std::fmt::Display) {
    // A closed pipe is not an error.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a line to stderr.
pub(crate) fn stderr(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
