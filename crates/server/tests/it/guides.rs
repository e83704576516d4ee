//! The guides of docs/ for those who call the API: what they quote is run against a real server.
//!
//! Needs bash, curl, `npm ci` in docs/samples/api/typescript, and a Python with what the
//! requirements.txt of docs/samples/api/python names, itself named by HELIOGRAPH_PEERS_PYTHON. Run
//! with `--features test-samples`.

use crate::database::Engine;
use crate::ports::Port;
use crate::process;
use crate::send_sms::hello;
use crate::server::Server;
use serde_json::{Value, json};
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

/// The fenced blocks of a page: what each is written in, and what it says.
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

/// What a program that must succeed says.
fn said(what: &str, output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|o| String::from_utf8_lossy(o));
    assert!(output.status.success(), "{what}: {out}{err}");
    out.into_owned()
}

/// A server, and who calls it.
struct Callers {
    server: Server,
    test: String,
    /// Its carrier is away: what is sent with it waits.
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
        let server = Server::with(Engine::Sqlite, &config);
        let (test, live) = (server.key(), server.live_key("ann@example.com", "25.00"));
        Self { server, test, live, _carrier: carrier }
    }

    /// Runs something as one of them.
    fn run(&self, command: &mut Command, key: &str) -> String {
        process::clear(command);
        let url = format!("http://{}", self.server.address());
        command.env("HELIOGRAPH_URL", url).env("HELIOGRAPH_KEY", key);
        said(&format!("{command:?}"), &command.output().unwrap())
    }

    /// What every language's sample of a name says.
    fn hold(&self, sample: impl Fn(&str) -> Command) {
        let fault = "#/recipient invalid_number\n#/shedule unknown_field\n";
        for (name, told) in [
            ("send", "DELIVERED 447700900123 order 7\n"),
            ("quote", "UCS_2 1 0.0000 EUR\n"),
            ("list", "DELIVERED accepted sent delivered\n"),
            ("errors", &format!("{fault}QUEUED\n")),
        ] {
            assert_eq!(self.run(&mut sample(name), &self.test), told, "{name}");
        }
        assert_eq!(self.run(&mut sample("balance"), &self.live), "25.0000 EUR\n");
        let waits = self.server.accepted(&self.live, &hello("+447700900123"));
        assert_eq!(self.run(sample("cancel").arg(waits), &self.live), "CANCELLED\n");
        let gone = self.server.accepted(&self.test, &hello("+447700900123"));
        self.server.ended(&self.test, &gone);
        let told = self.run(sample("cancel").arg(gone), &self.test);
        assert!(told.starts_with("too late: "), "{told}");
        let told = self.run(&mut sample("generated"), &self.live);
        let expected =
            "QUEUED accepted\ntrue true\nCANCELLED 25.0000 EUR\n447700900123\n#/recipient true\n";
        // Python spells it with a capital.
        assert_eq!(told.replace("True", "true"), expected);
    }
}

/// openapi.json as this program says it.
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
    said("openapi-python-client", &output);
    // It knows no text/csv; everything else is there.
    let told = String::from_utf8_lossy(&output.stderr);
    let warnings = told.matches("WARNING").count();
    assert_eq!((warnings, told.contains("text/csv")), (1, true), "{told}");
    Callers::new().hold(|name| {
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
    let told = generate.arg(document()).args(["-o", "heliograph.d.ts"]).output().unwrap();
    said("openapi-typescript", &told);
    said("tsc", &tool("tsc").output().unwrap());
    Callers::new().hold(|name| {
        let mut command = Command::new("node");
        command.arg(place.path().join(format!("{name}.js")));
        command
    });
}

/// Whether an answer is what a page shows, but for ids and times, which are never the same.
fn alike(shown: &Value, told: &Value) -> bool {
    match (shown, told) {
        (Value::Object(shown), Value::Object(told)) => {
            let same = |(name, value)| told.get(name).is_some_and(|t| alike(value, t));
            shown.len() == told.len() && shown.iter().all(same)
        }
        (Value::Array(shown), Value::Array(told)) => {
            shown.len() == told.len() && shown.iter().zip(told).all(|(s, t)| alike(s, t))
        }
        (Value::String(shown), Value::String(told)) => masked(shown) == masked(told),
        _ => shown == told,
    }
}

/// A text with an `x` for each digit of what is an id or a time.
fn masked(text: &str) -> String {
    let is_id = text.len() == 36 && text.matches('-').count() == 4
        || text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit());
    let is_time = text.len() == 24 && text.ends_with('Z');
    let x = |c: char| if c.is_ascii_hexdigit() { 'x' } else { c };
    if is_id || is_time { text.chars().map(x).collect() } else { text.to_owned() }
}

/// Runs a page's lines of bash one after the other; where JSON follows, it is the answer.
fn lines_of(name: &str) {
    let callers = Callers::new();
    let key = if name == "sending" { &callers.live } else { &callers.test };
    let id = callers.server.accepted(key, &message());
    if name != "sending" {
        callers.server.ended(key, &id);
    }
    let text = page(name);
    let blocks = blocks(&text);
    let mut run = 0;
    for (at, (_, script)) in blocks.iter().enumerate().filter(|(_, b)| b.0 == "sh") {
        let url = format!("http://{}", callers.server.address());
        let mut bash = Command::new("bash");
        bash.args(["-euc", script]).env("URL", url).env("KEY", key).env("ID", &id);
        let told = callers.run(&mut bash, key);
        run += 1;
        let Some(("json", shown)) = blocks.get(at + 1) else {
            assert!(!told.contains("requestId"), "docs/{name}.md:\n{script}\n{told}");
            continue;
        };
        let shown: Value = serde_json::from_str(shown).unwrap_or_else(|e| panic!("{e}: {shown}"));
        let told: Value =
            serde_json::from_str(&told).unwrap_or_else(|e| panic!("{e}: {script}: {told}"));
        assert!(
            alike(&shown, &told),
            "docs/{name}.md:\n{script}\nshows {shown:#}\nbut is {told:#}"
        );
    }
    assert!(run > 0, "docs/{name}.md has no line to run");
}

/// What the pages' `$ID` is.
fn message() -> Value {
    json!({
        "originator": "Shop", "recipient": "+447700900123", "text": "Your parcel comes at 9",
        "reference": "order 7",
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
        let told =
            callers.run(bash.args(["-euc", &script]).env("KEY", &callers.test), &callers.test);
        assert!(told.contains(r#""recipient":"447700900123""#), "README.md:\n{lines}\n{told}");
        run += 1;
    }
    assert_eq!(run, 2, "README.md has other lines of curl");
}

#[test]
fn curl_of_the_quickstart() {
    lines_of("quickstart");
}

#[test]
fn curl_of_sending() {
    lines_of("sending");
}

#[test]
fn curl_of_messages() {
    lines_of("messages");
}

#[test]
fn curl_of_errors() {
    lines_of("errors");
}

#[test]
fn what_the_pages_quote_is_in_the_samples() {
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
