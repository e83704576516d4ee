//! Output of the command line: results go to stdout, everything else to stderr.

use heliograph_domain::time::Timestamp;
use serde_json::{Value, json};
use std::fmt;
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

/// An entry of a list: its JSON document, and its cells as text.
pub(crate) struct ListRow {
    pub(crate) document: Value,
    pub(crate) cells: Vec<String>,
}

/// Prints a list as one JSON array, as an aligned table with a header on a terminal, and otherwise
/// as one line per entry with tabs between the cells, for scripts.
pub(crate) fn print_list(as_json: bool, header: &[&str], all: Vec<ListRow>) {
    if as_json {
        let all: Vec<Value> = all.into_iter().map(|row| row.document).collect();
        return stdout(&Value::Array(all).to_string());
    }
    let rows: Vec<Vec<String>> = all.into_iter().map(|row| row.cells).collect();
    if std::io::stdout().is_terminal() {
        table(header, &rows).iter().for_each(|line| stdout(line));
    } else {
        rows.iter().for_each(|row| stdout(row.join("\t").trim_end()));
    }
}

/// Returns the lines of a table with a header and aligned columns; none without rows.
fn table(header: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let width = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = header.iter().map(|title| width(title)).collect();
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head = line(&mut header.iter().copied());
    let body = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    std::iter::once(head).chain(body).collect()
}

/// Returns a time for people, to the second: `2026-11-20T09:00:00Z`.
pub(crate) fn time(at: Timestamp) -> String {
    Timestamp(at.millis() - at.millis().rem_euclid(1_000)).to_string().replace(".000Z", "Z")
}

/// A command line that clap accepts but that makes no sense; nothing was done.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl UsageError {
    /// Returns the error with this text.
    pub(crate) fn error(text: impl Into<String>) -> anyhow::Error {
        Self(text.into()).into()
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_under_their_header() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["7", "Übersicht", "now"]), row(["12", "x", ""])];
        assert_eq!(
            table(&["ID", "NAME", "CREATED"], &rows),
            ["ID  NAME       CREATED", "7   Übersicht  now", "12  x"]
        );
        assert_eq!(table(&["ID"], &[]), [""; 0]);
    }

    #[test]
    fn times_have_no_milliseconds() {
        let at = "2026-11-20T09:00:00.999Z".parse().unwrap();
        assert_eq!(time(at), "2026-11-20T09:00:00Z");
    }
}
