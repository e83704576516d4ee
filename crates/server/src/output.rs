//! Output of the command line: results go to stdout, everything else to stderr.

use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// Prints a line to stdout; a closed pipe is not an error.
pub(crate) fn stdout(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a line to stderr.
pub(crate) fn stderr(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints a result as JSON or as text.
pub(crate) fn print_result(as_json: bool, json: &Value, text: &str) {
    if as_json {
        stdout(&json.to_string());
    } else {
        stdout(text);
    }
}

/// Prints a list as one JSON array or as one line per entry.
pub(crate) fn print_list(as_json: bool, all: Vec<(Value, String)>) {
    if as_json {
        let all: Vec<Value> = all.into_iter().map(|(json, _)| json).collect();
        return stdout(&Value::Array(all).to_string());
    }
    for (_, line) in all {
        stdout(&line);
    }
}

/// Prints an error to stderr and, with `--json`, as a JSON document to stdout.
pub(crate) fn print_error(as_json: bool, error: &anyhow::Error) {
    let error = format!("{error:#}");
    stderr(&format!("heliograph: {error}"));
    if as_json {
        stdout(&json!({ "error": error }).to_string());
    }
}

/// A progress indicator in percent, shown only on a terminal.
pub(crate) struct ProgressBar {
    shown: Option<u64>,
    is_terminal: bool,
}

impl ProgressBar {
    pub(crate) fn new() -> Self {
        Self { shown: None, is_terminal: std::io::stderr().is_terminal() }
    }

    /// Updates the percentage if it changed.
    pub(crate) fn show(&mut self, done: u64, all: u64) {
        let percent = done.saturating_mul(100) / all.max(1);
        if self.is_terminal && self.shown != Some(percent) {
            self.shown = Some(percent);
            let _ = write!(std::io::stderr().lock(), "\r{percent:3} %");
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr().lock(), "\r     \r");
        }
    }
}
