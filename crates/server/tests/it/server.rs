//! A heliograph of a test's own: data, configuration, database and process.

use crate::database::{Database, Engine};
use crate::http::{self, Answer, Request};
use crate::patience::eventually;
use crate::process::{self, Process};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitStatus, Output};
use std::rc::Rc;
use tempfile::TempDir;

/// A server, running or not.
pub(crate) struct Server {
    process: Option<Process>,
    address: Option<SocketAddr>,
    /// What all its runs so far have said to stderr.
    told: String,
    pub(crate) home: TempDir,
    pub(crate) database: Rc<Database>,
}

impl Server {
    /// Not started yet; `config` becomes its heliograph.toml.
    pub(crate) fn new(engine: Engine, config: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let database = Rc::new(Database::new(engine, home.path()));
        Self::on(database, home, config)
    }

    /// Other nodes beside it, ready, where there can be any.
    pub(crate) fn others(&self) -> Vec<Self> {
        #[cfg(feature = "test-postgres")]
        if let Database::Postgres(_) = *self.database {
            let mut node = self.beside();
            node.launch();
            node.await_ready();
            return vec![node];
        }
        Vec::new()
    }

    /// Another node on the same database, with a data folder of its own, and the key of the first in it.
    #[cfg(feature = "test-postgres")]
    pub(crate) fn beside(&self) -> Self {
        let config = std::fs::read_to_string(self.home.path().join("heliograph.toml")).unwrap();
        let node = Self::on(self.database.clone(), tempfile::tempdir().unwrap(), &config);
        node.take_key(self);
        node
    }

    /// Gives it the sealing key of another one.
    pub(crate) fn take_key(&self, other: &Self) {
        let key = |server: &Self| server.home.path().join("data/sealing.key");
        std::fs::create_dir_all(self.home.path().join("data")).unwrap();
        std::fs::copy(key(other), key(self)).unwrap();
    }

    fn on(database: Rc<Database>, home: TempDir, config: &str) -> Self {
        std::fs::write(home.path().join("heliograph.toml"), config).unwrap();
        Self { process: None, address: None, told: String::new(), home, database }
    }

    /// A server with the default configuration, ready.
    pub(crate) fn start(engine: Engine) -> Self {
        Self::with(engine, "")
    }

    /// A server with this configuration, ready.
    pub(crate) fn with(engine: Engine, config: &str) -> Self {
        let mut server = Self::new(engine, config);
        server.launch();
        server.await_ready();
        server
    }

    /// A command in its folder.
    pub(crate) fn command(&self) -> Command {
        let mut command = process::command();
        self.place(&mut command);
        command
    }

    fn place(&self, command: &mut Command) {
        command.current_dir(self.home.path());
        if let Some(url) = self.database.url() {
            command.env("HELIOGRAPH_DATABASE__URL", url);
        }
    }

    /// Starts it, without waiting until it is ready.
    pub(crate) fn launch(&mut self) {
        self.launch_with(&["serve", "--listen", "127.0.0.1:0"]);
    }

    /// The same, with other arguments.
    pub(crate) fn launch_with(&mut self, arguments: &[&str]) {
        let mut command = self.command();
        self.run(command.args(arguments));
    }

    /// Starts it with a variable in its environment.
    pub(crate) fn launch_with_variable(&mut self, name: &str, value: &str) {
        let mut command = self.command();
        self.run(command.args(["serve", "--listen", "127.0.0.1:0"]).env(name, value));
    }

    /// Starts it so that a write beyond the limit of [`Process::limit_files`] is an error to it, as
    /// on a full disk, and not its end.
    pub(crate) fn launch_without_sigxfsz(&mut self) {
        self.launch_after("trap '' XFSZ");
    }

    /// Starts it from a shell that says something first.
    pub(crate) fn launch_after(&mut self, what: &str) {
        let mut command = Command::new("sh");
        process::clear(&mut command);
        self.place(&mut command);
        let script = format!("{what}; exec \"$0\" serve --listen 127.0.0.1:0");
        self.run(command.args(["-c", &script]).arg(process::program()));
    }

    fn run(&mut self, command: &mut Command) {
        self.kill();
        self.process = Some(Process::start(command));
    }

    #[allow(dead_code, reason = "only one of the two test binaries starts what it killed")]
    pub(crate) const fn is_launched(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("not running")
    }

    /// Where it listens, once it does.
    pub(crate) fn listens(&mut self) -> Option<SocketAddr> {
        let process = self.process.as_mut()?;
        if self.address.is_none() {
            let log = process.stderr.text();
            let line = log.lines().find(|l| l.contains("listening"));
            let port = line.and_then(|l| l.split_once("127.0.0.1:")).map(|(_, rest)| {
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                rest[..end].parse::<u16>().unwrap()
            });
            self.address = port.map(|port| (Ipv4Addr::LOCALHOST, port).into());
        }
        self.address
    }

    /// Waits until it listens.
    pub(crate) fn await_ready(&mut self) {
        eventually("the server listens", || {
            let ended = self.process().ended();
            assert!(ended.is_none(), "{ended:?}: {}", self.log());
            self.listens()
        });
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("not listening")
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
            self.told.push_str(&process.stderr.text());
        }
        self.address = None;
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.process().terminate();
        let status = self.process().wait();
        self.kill();
        status
    }

    /// All that it has said to stderr.
    pub(crate) fn log(&self) -> String {
        let now = self.process.as_ref().map(|p| p.stderr.text());
        format!("{}{}", self.told, now.unwrap_or_default())
    }

    /// What it says at its very first start.
    pub(crate) fn greeting(&self) -> String {
        let said = &self.process.as_ref().expect("not running").stdout;
        eventually("it greets", || {
            Some(said.text()).filter(|text| text.contains("makes another link"))
        })
    }

    /// The test key of the greeting.
    pub(crate) fn key(&self) -> String {
        let greeting = self.greeting();
        greeting.split_whitespace().find(|w| w.starts_with("hg_test_")).unwrap().to_owned()
    }

    /// Runs a command beside it.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// The stdout of a command that must succeed, without the last line's end.
    pub(crate) fn told(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.tool(arguments);
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap().trim_end().to_owned()
    }

    /// The one document that a command prints with `--json`.
    #[allow(dead_code, reason = "only one of the two test binaries reads documents")]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let told = self.told(&[&["--json"], arguments].concat());
        serde_json::from_str(&told).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {told}"))
    }

    /// The entries of the list that a command prints with `--json`.
    #[allow(dead_code, reason = "only one of the two test binaries lists anything")]
    pub(crate) fn list(&self, arguments: &[&str]) -> Vec<Value> {
        self.json(arguments).as_array().expect("no list").clone()
    }

    /// A new account with a live key, and this much money.
    pub(crate) fn live_key(&self, email: &str, money: &str) -> String {
        self.told(&["account", "create", "--email", email]);
        if money != "0" {
            self.told(&["credit", "--account", email, "--amount", money]);
        }
        self.told(&["key", "create", "--account", email, "--live"])
    }

    pub(crate) fn ask(&self, request: &Request) -> Answer {
        http::ask(self.address(), request).unwrap()
    }

    /// Asks for a message to be sent.
    pub(crate) fn post(&self, key: &str, body: &Value) -> Answer {
        self.ask(&Request::send_sms(key, body.to_string()))
    }

    /// Sends a message that must be accepted; its id.
    pub(crate) fn accepted(&self, key: &str, body: &Value) -> String {
        let answer = self.post(key, body);
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn message(&self, key: &str, id: &str) -> Answer {
        self.ask(&Request::get(&format!("/v1/messages/{id}")).key(key))
    }

    /// The message once its status is one of these.
    pub(crate) fn message_in(&self, key: &str, id: &str, statuses: &[&str]) -> Value {
        eventually(&format!("message {id} becomes one of {statuses:?}"), || {
            let message = self.message(key, id).json();
            let status = message["status"].as_str().unwrap_or_default();
            statuses.contains(&status).then_some(message)
        })
    }

    /// The message once nothing can follow.
    pub(crate) fn ended(&self, key: &str, id: &str) -> Value {
        self.message_in(key, id, &["DELIVERED", "FAILED"])
    }

    /// How many rows a request can have left behind.
    pub(crate) fn stored(&self) -> i64 {
        ["messages", "queue", "idempotency", "parts"]
            .map(|table| self.database.number(&format!("SELECT count(*) FROM {table}")))
            .iter()
            .sum()
    }

    /// Proves the invariants.
    pub(crate) fn check(&self) {
        let output = self.tool(&["check"]);
        let list = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{list}{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Server {
    #[expect(clippy::print_stderr, reason = "whoever looks at a failed test wants the log")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
            eprintln!("-- the server's log, its end\n{}", last.join("\n"));
        }
        self.kill();
    }
}
