//! The one place that prints: results to stdout, talk to stderr.

use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// Prints a result. A reader that went away is no error.
pub(crate) fn result(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Says something to the person at the terminal.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints one result in the form that was asked for.
pub(crate) fn either(as_json: bool, json: &Value, text: &str) {
    if as_json {
        result(&json.to_string());
    } else {
        result(text);
    }
}

/// Prints a list: one JSON array, or one line for each.
pub(crate) fn list(as_json: bool, all: Vec<(Value, String)>) {
    if as_json {
        let all: Vec<Value> = all.into_iter().map(|(json, _)| json).collect();
        return result(&Value::Array(all).to_string());
    }
    for (_, line) in all {
        result(&line);
    }
}

/// Says why it failed: to the person, and with `--json` to the script as well.
pub(crate) fn failure(as_json: bool, why: &anyhow::Error) {
    let why = format!("{why:#}");
    talk(&format!("heliograph: {why}"));
    if as_json {
        result(&json!({ "error": why }).to_string());
    }
}

/// How far something is, on a terminal alone.
pub(crate) struct Progress {
    shown: Option<u64>,
    there: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { shown: None, there: std::io::stderr().is_terminal() }
    }

    /// Shows the part that is done, where it changed.
    pub(crate) fn show(&mut self, done: u64, all: u64) {
        let percent = done.saturating_mul(100) / all.max(1);
        if self.there && self.shown != Some(percent) {
            self.shown = Some(percent);
            let _ = write!(std::io::stderr().lock(), "\r{percent:3} %");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr().lock(), "\r     \r");
        }
    }
}
