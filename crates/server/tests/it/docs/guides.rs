//! The API guides in docs/: their commands and samples are run against a server.
//!
//! The tests need bash, curl, `npm ci` in docs/samples/api/typescript, and the Python that
//! HELIOGRAPH_PEERS_PYTHON names, with the packages of docs/samples/api/python/requirements.txt.
//! Run
//! them with `--features test-samples`.

use crate::support::api::hello;
use crate::support::ports::Port;
use crate::support::process;
use crate::support::server::Server;
use heliograph_domain::time::Timestamp;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const PAGES: [&str; 5] = ["quickstart", "sending", "messages", "errors", "clients"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn samples(path: &str) -> PathBuf {
    root().join("docs/samples/api").join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn page(name: &str) -> String {
    read(&root().join(format!("docs/{name}.md")))
}

/// Returns the fenced blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, fenced)) = rest.split_once("\n```") {
        let (language, text) = fenced.split_once('\n').unwrap();
        let (text, after) = text.split_once("```").expect("a block has no end");
        blocks.push((language, text));
        rest = after;
    }
    blocks
}

/// Returns the stdout of a program that must succeed.
fn stdout_of(what: &str, output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|o| String::from_utf8_lossy(o));
    assert!(output.status.success(), "{what}: {out}{err}");
    out.into_owned()
}

/// A server with API keys for the samples.
struct Callers {
    server: Server,
    test: String,
    /// A live key; its messages stay queued, because the carrier is down.
    live: String,
    _carrier: Port,
}

impl Callers {
    fn new() -> Self {
        let carrier = Port::reserve();
        let config = format!(
            "[rates]\ndefault = '0.0420'\n\
             [[carriers]]\nname = 'away'\nkind = 'smpp'\nhost = '127.0.0.1'\nport = {}\n\
             system_id = 'x'\n[[routes]]\nprefix = ''\ncarriers = ['away']\n",
            carrier.number
        );
        let server = Server::with(&config);
        let (test, live) = (server.key(), server.live_key("ann@example.com", "25.00"));
        Self { server, test, live, _carrier: carrier }
    }

    /// Runs a command with the URL of the server and this key.
    fn run(&self, command: &mut Command, key: &str) -> String {
        process::clear(command);
        let url = format!("http://{}", self.server.address());
        command.env("HELIOGRAPH_URL", url).env("HELIOGRAPH_KEY", key);
        stdout_of(&format!("{command:?}"), &command.output().unwrap())
    }

    /// Checks the output of all samples of a language.
    fn check_samples(&self, sample: impl Fn(&str) -> Command) {
        let fault = "#/recipient invalid_number\n#/shedule unknown_field\n";
        for (name, actual) in [
            ("send", "DELIVERED 447700900123 order 7\n"),
            ("quote", "UCS_2 1 0.0000 EUR\n"),
            ("list", "DELIVERED accepted sent delivered\n"),
            ("errors", &format!("{fault}QUEUED\n")),
        ] {
            assert_eq!(self.run(&mut sample(name), &self.test), actual, "{name}");
        }
        assert_eq!(self.run(&mut sample("balance"), &self.live), "25.0000 EUR\n");
        let waits = self.server.accepted(&self.live, &hello("+447700900123"));
        assert_eq!(self.run(sample("cancel").arg(waits), &self.live), "CANCELLED\n");
        let gone = self.server.accepted(&self.test, &hello("+447700900123"));
        self.server.wait_until_ended(&self.test, &gone);
        let actual = self.run(sample("cancel").arg(gone), &self.test);
        assert!(actual.starts_with("too late: "), "{actual}");
        let actual = self.run(&mut sample("generated"), &self.live);
        let expected =
            "QUEUED accepted\ntrue true\nCANCELLED 25.0000 EUR\n447700900123\n#/recipient true\n";
        // Python prints booleans with a capital letter.
        assert_eq!(actual.replace("True", "true"), expected);
    }
}

/// Returns the path of openapi.json.
fn document() -> PathBuf {
    root().join("openapi.json")
}

#[test]
fn python() {
    let python = std::env::var("HELIOGRAPH_PEERS_PYTHON").expect("see the head of this file");
    let python = Path::new(&python);
    let place = TempDir::new().unwrap();
    let generator = python.parent().unwrap().join("openapi-python-client");
    let mut generate = Command::new(generator);
    generate.args(["generate", "--meta", "none", "--output-path", "heliograph_client", "--path"]);
    let output = generate.arg(document()).current_dir(place.path()).output().unwrap();
    stdout_of("openapi-python-client", &output);
    // The generator does not support text/csv; everything else is generated.
    let actual = String::from_utf8_lossy(&output.stderr);
    let warnings = actual.matches("WARNING").count();
    assert_eq!((warnings, actual.contains("text/csv")), (1, true), "{actual}");
    Callers::new().check_samples(|name| {
        let mut command = Command::new(python);
        command.env("PYTHONPATH", place.path()).arg("-B");
        command.arg(samples(&format!("python/{name}.py")));
        command
    });
}

#[test]
fn typescript() {
    let (place, from) = (TempDir::new().unwrap(), samples("typescript"));
    for file in std::fs::read_dir(&from).unwrap().map(|f| f.unwrap().path()) {
        let name = file.file_name().unwrap().to_owned();
        if file.is_file() {
            std::fs::copy(&file, place.path().join(&name)).unwrap();
        }
    }
    let modules = from.join("node_modules");
    std::os::unix::fs::symlink(&modules, place.path().join("node_modules")).unwrap();
    let tool = |name: &str| {
        let mut command = Command::new(modules.join(".bin").join(name));
        command.current_dir(place.path());
        command
    };
    let mut generate = tool("openapi-typescript");
    let actual = generate.arg(document()).args(["-o", "heliograph.d.ts"]).output().unwrap();
    stdout_of("openapi-typescript", &actual);
    stdout_of("tsc", &tool("tsc").output().unwrap());
    Callers::new().check_samples(|name| {
        let mut command = Command::new("node");
        command.arg(place.path().join(format!("{name}.js")));
        command
    });
}

/// Returns the time from the acceptance of a message to its expiry, in milliseconds.
fn validity(message: &Map<String, Value>) -> Option<i64> {
    let time = |name: &str| message.get(name)?.as_str()?.parse::<Timestamp>().ok();
    Some(time("expiresAt")?.millis() - time("createdAt")?.millis())
}

/// Returns whether a response equals the one on a page, except for ids and times, of which only the
/// validity is compared.
fn alike(shown: &Value, actual: &Value) -> bool {
    match (shown, actual) {
        (Value::Object(shown), Value::Object(actual)) => {
            let same = |(name, value)| actual.get(name).is_some_and(|t| alike(value, t));
            let same_validity = validity(shown) == validity(actual);
            shown.len() == actual.len() && shown.iter().all(same) && same_validity
        }
        (Value::Array(shown), Value::Array(actual)) => {
            shown.len() == actual.len() && shown.iter().zip(actual).all(|(s, t)| alike(s, t))
        }
        (Value::String(shown), Value::String(actual)) => masked(shown) == masked(actual),
        _ => shown == actual,
    }
}

/// Replaces the digits of an id or a time with `x`.
fn masked(text: &str) -> String {
    let is_id = text.len() == 36 && text.matches('-').count() == 4
        || text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit());
    let is_time = text.len() == 24 && text.ends_with('Z');
    let x = |c: char| if c.is_ascii_hexdigit() { 'x' } else { c };
    if is_id || is_time { text.chars().map(x).collect() } else { text.to_owned() }
}

/// Runs the shell blocks of a page in order, and compares the response with the JSON block that
/// follows.
fn run_page(name: &str) {
    let callers = Callers::new();
    let key = if name == "sending" { &callers.live } else { &callers.test };
    let id = callers.server.accepted(key, &message());
    if name != "sending" {
        callers.server.wait_until_ended(key, &id);
    }
    let text = page(name);
    let blocks = blocks(&text);
    let mut run = 0;
    for (at, (_, script)) in blocks.iter().enumerate().filter(|(_, b)| b.0 == "sh") {
        let url = format!("http://{}", callers.server.address());
        let mut bash = Command::new("bash");
        bash.args(["-euc", script]).env("URL", url).env("KEY", key).env("ID", &id);
        let actual = callers.run(&mut bash, key);
        run += 1;
        let Some(("json", shown)) = blocks.get(at + 1) else {
            assert!(!actual.contains("requestId"), "docs/{name}.md:\n{script}\n{actual}");
            continue;
        };
        let shown: Value = serde_json::from_str(shown).unwrap_or_else(|e| panic!("{e}: {shown}"));
        let actual: Value =
            serde_json::from_str(&actual).unwrap_or_else(|e| panic!("{e}: {script}: {actual}"));
        assert!(
            alike(&shown, &actual),
            "docs/{name}.md:\n{script}\nshows {shown:#}\nbut is {actual:#}"
        );
    }
    assert!(run > 0, "docs/{name}.md has no shell block");
}

/// The message that `$ID` refers to in the pages.
fn message() -> Value {
    json!({
        "originator": "Shop", "recipient": "+447700900123", "text": "Your parcel comes at 9",
        "reference": "order 7", "validitySeconds": 3600,
    })
}

#[test]
fn curl_of_the_readme() {
    let callers = Callers::new();
    let id = callers.server.accepted(&callers.test, &message());
    let text = read(&root().join("README.md"));
    let mut run = 0;
    for lines in text.split("\n\n").filter(|part| part.starts_with("    curl ")) {
        let here = callers.server.address().to_string();
        let script = lines.replace("127.0.0.1:8080", &here).replace("/ID", &format!("/{id}"));
        let mut bash = Command::new("bash");
        let actual =
            callers.run(bash.args(["-euc", &script]).env("KEY", &callers.test), &callers.test);
        assert!(actual.contains(r#""recipient":"447700900123""#), "README.md:\n{lines}\n{actual}");
        run += 1;
    }
    assert_eq!(run, 2, "README.md has other curl commands");
}

#[test]
fn curl_of_the_quickstart() {
    run_page("quickstart");
}

#[test]
fn curl_of_sending() {
    run_page("sending");
}

#[test]
fn curl_of_messages() {
    run_page("messages");
}

#[test]
fn curl_of_errors() {
    run_page("errors");
}

#[test]
fn quoted_code_is_in_the_samples() {
    let pages = PAGES.map(page);
    for (language, folder, ending) in [("python", "python", "py"), ("ts", "typescript", "ts")] {
        let files = std::fs::read_dir(samples(folder)).unwrap().map(|f| f.unwrap().path());
        let files = files.filter(|f| f.extension().is_some_and(|e| e == ending));
        let files: Vec<_> = files.map(|f| (f.display().to_string(), read(&f))).collect();
        let quotes = pages.iter().flat_map(|p| blocks(p)).filter(|b| b.0 == language);
        let quotes: Vec<_> = quotes.map(|b| b.1).collect();
        for quote in &quotes {
            assert!(files.iter().any(|f| f.1.contains(quote)), "in no sample:\n{quote}");
        }
        for (name, text) in &files {
            assert!(quotes.iter().any(|q| text.contains(q)), "{name} is not quoted");
        }
    }
}
