//! The sample output in docs/commands.md, compared with the output of the commands.

use crate::support::api::hello;
use crate::support::server::Server;
use crate::support::webhook_sink::WebhookSink;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The indented blocks of a section: the command, then its output.
struct Sample {
    command: Vec<String>,
    /// The lines of the output without `--json`.
    text: Vec<String>,
    /// The output with `--json`.
    json: Option<String>,
}

/// Returns the first sample of each section, by command.
fn samples() -> BTreeMap<String, Sample> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let text = std::fs::read_to_string(path).unwrap();
    let sections = text.split("\n## `heliograph ").skip(1);
    let sample = |section: &str| {
        let (name, body) = section.split_once('`').unwrap();
        let indented = |block: &&str| block.lines().all(|line| line.starts_with("    "));
        let mut blocks =
            body.trim_start_matches('\n').trim_end().split("\n\n").take_while(indented);
        let lines = |block: &str| block.lines().map(|l| l[4..].to_owned()).collect::<Vec<_>>();
        let command = lines(blocks.next().unwrap()).remove(0);
        let mut text = blocks.next().map(lines).unwrap_or_default();
        let json = text.pop_if(|line| line.starts_with(['{', '[']));
        (name.to_owned(), Sample { command: words(&command), text, json })
    };
    sections.map(sample).collect()
}

/// Splits a command line at blanks outside of quotes, without the name of the program.
fn words(line: &str) -> Vec<String> {
    let line = line.trim_start_matches("KEY=$(").trim_end_matches(')');
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.skip(1).collect()
}

/// Replaces what differs between runs: ids, times, links, secrets and figures.
fn masked(text: &str) -> String {
    let separators = [' ', '\t', '"', ',', '(', ')', ';', '{', '}', '[', ']', '\''];
    let token = |token: &str| -> String {
        let end = token.chars().next_back().filter(|c| separators.contains(c));
        let word = token.trim_end_matches(separators);
        let is_time = word.ends_with('Z') && word.contains('T') && word.contains(':');
        let word = match word {
            w if w.starts_with("http") => "URL".to_owned(),
            w if w.starts_with("hg_live_") => "KEY".to_owned(),
            w if w.starts_with("whsec_") => "SECRET".to_owned(),
            w if w.len() == 36 && w.matches('-').count() == 4 => "ID".to_owned(),
            _ if is_time => "TIME".to_owned(),
            w if w.trim_end_matches(':').ends_with(".db") => "FILE".to_owned(),
            w => figures(w),
        };
        format!("{word}{}", end.map_or(String::new(), String::from))
    };
    text.split_inclusive(separators).map(token).collect()
}

/// Replaces each run of digits with one 9.
fn figures(word: &str) -> String {
    let mut masked = String::new();
    for c in word.chars() {
        match c {
            '0'..='9' if masked.ends_with('9') => {}
            '0'..='9' => masked.push('9'),
            _ => masked.push(c),
        }
    }
    masked
}

/// Returns the cells of a line of a table, which are two blanks or a tab apart.
fn cells(line: &str) -> Vec<String> {
    let cells = line.split("  ").flat_map(|cell| cell.split('\t')).map(str::trim);
    cells.filter(|cell| !cell.is_empty()).map(masked).collect()
}

/// Compares two documents: names, kinds of values, and texts without ids, times and figures. A
/// shortened object (`…`) may have more names.
fn compare(what: &str, shown: &Value, actual: &Value) {
    match (shown, actual) {
        (Value::Object(shown), Value::Object(actual)) => {
            for (name, value) in shown.iter().filter(|(name, _)| *name != "…") {
                let there = actual.get(name).unwrap_or_else(|| panic!("{what}: no '{name}'"));
                compare(&format!("{what}.{name}"), value, there);
            }
            let missing = actual.keys().find(|name| !shown.contains_key(*name));
            assert!(
                shown.contains_key("…") || missing.is_none(),
                "{what}: {missing:?} is not shown"
            );
        }
        (Value::Array(shown), Value::Array(actual)) => {
            assert_eq!(shown.len(), actual.len(), "{what}: {actual:?}");
            shown.iter().zip(actual).for_each(|(s, a)| compare(what, s, a));
        }
        (Value::String(shown), Value::String(actual)) => {
            assert_eq!(masked(shown), masked(actual), "{what}");
        }
        (Value::Number(_), Value::Number(_)) => {}
        _ => assert_eq!(shown, actual, "{what}"),
    }
}

/// The words of commands that are replaced in this test.
type Replaced<'a> = &'a [(&'a str, &'a str)];

/// Compares the samples of docs/commands.md with the output of a server.
struct Checker<'a> {
    server: &'a Server,
    samples: BTreeMap<String, Sample>,
}

impl Checker<'_> {
    fn sample(&self, name: &str) -> &Sample {
        self.samples.get(name).unwrap_or_else(|| panic!("docs/commands.md has no {name}"))
    }

    fn command(&self, name: &str, replaced: Replaced<'_>) -> Vec<String> {
        let exchange = |word: &String| {
            let found = replaced.iter().find(|(old, _)| old == word);
            found.map_or_else(|| word.clone(), |(_, new)| (*new).to_owned())
        };
        self.sample(name).command.iter().map(exchange).collect()
    }

    /// Checks the output with `--json`.
    fn json(&self, name: &str, replaced: Replaced<'_>) {
        let json = self.sample(name).json.as_ref().unwrap_or_else(|| panic!("{name}: no JSON"));
        let shown = json.replace(",…}", r#","…":0}"#);
        let shown: Value =
            serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{name}: {e}: {json}"));
        let command = self.command(name, replaced);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        compare(name, &shown, &self.server.json(&command));
    }

    /// Checks the output without `--json`: the cells of tables, without the header, which only a
    /// terminal shows.
    fn text(&self, name: &str, replaced: Replaced<'_>) {
        let command = self.command(name, replaced);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let is_header = |line: &&String| line.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
        let shown = self.sample(name).text.iter().filter(|line| !is_header(line));
        let shown: Vec<_> = shown.map(|line| cells(line)).collect();
        let actual: Vec<_> = self.server.stdout(&command).lines().map(cells).collect();
        assert_eq!(shown, actual, "docs/commands.md: {name}");
    }
}

#[test]
fn output_of_commands_is_as_documented() {
    let server = Server::with("[webhooks]\nallow_private = ['127.0.0.0/8']\n");
    let (sink, samples) = (WebhookSink::start(), samples());
    assert!(samples.len() > 25, "{:?}", samples.keys());
    let docs = Checker { server: &server, samples };
    for name in ["account create", "account link", "credit", "key create"] {
        docs.json(name, &[]);
    }
    let hook = sink.url("/hook");
    docs.json("webhook add", &[("https://example.com/hook", &hook)]);
    for name in ["webhook test", "webhook off", "webhook on", "optout add"] {
        docs.json(name, &[]);
    }
    let test = server.stdout(&["key", "create", "--account", "1"]);
    docs.json("webhook replay", &[]);
    docs.text("webhook replay", &[]);
    for name in ["account list", "webhook list", "key list", "optout list"] {
        docs.json(name, &[]);
        docs.text(name, &[]);
    }
    let mut message = hello("+447700900123");
    message["originator"] = "Shop".into();
    message["reference"] = "order 7".into();
    let id = server.accepted(&test, &message);
    server.wait_until_ended(&test, &id);
    docs.text("message list", &[("ann@example.com", "1")]);
    let file = ("/var/backups/heliograph-$(date", "--force");
    docs.text("backup", &[file, ("+%F).db", "one.db")]);
    docs.json("backup", &[file, ("+%F).db", "one.db")]);
    for name in ["optout remove", "webhook rotate", "webhook remove"] {
        docs.json(name, &[]);
    }
    // The number of tables is no figure that differs between runs.
    let shown = &docs.sample("backup").text[0];
    let tables = shown.split(" rows in ").nth(1).unwrap();
    let actual = server.stdout(&["backup", "two.db"]);
    let tables = &tables[..tables.find(", ").unwrap()];
    assert!(actual.contains(&format!(" rows in {tables}, ")), "{shown}: {actual}");
}
