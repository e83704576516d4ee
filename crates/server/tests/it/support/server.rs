//! The server of one test: data folder, configuration, database and process.

use crate::support::database::Database;
use crate::support::engine::Engine;
use crate::support::http::{self, HttpResponse, Request};
use crate::support::process::{self, Process};
use crate::support::wait::eventually;
use serde_json::Value;
use std::cell::OnceCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitStatus, Output};
use std::rc::Rc;
use tempfile::TempDir;

/// A server, which may be running.
pub(crate) struct Server {
    process: Option<Process>,
    address: Option<SocketAddr>,
    /// The stderr of earlier processes.
    earlier_stderr: String,
    key: OnceCell<String>,
    pub(crate) home: TempDir,
    pub(crate) database: Rc<Database>,
}

impl Server {
    /// Creates a server with this heliograph.toml, without starting it.
    pub(crate) fn new(config: &str) -> Self {
        Self::on(Engine::current(), config)
    }

    /// Creates a server on an engine that may differ from that of this run.
    pub(crate) fn on(engine: Engine, config: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let database = Rc::new(Database::new(engine, home.path()));
        Self::with_database(database, home, config)
    }

    /// Starts another node on PostgreSQL; SQLite has only one node.
    pub(crate) fn other_nodes(&self) -> Vec<Self> {
        if let Database::Postgres(_) = *self.database {
            let mut node = self.add_node();
            node.launch();
            node.wait_until_ready();
            return vec![node];
        }
        Vec::new()
    }

    /// Creates another node on the same database, with its own data folder and the same sealing
    /// key.
    pub(crate) fn add_node(&self) -> Self {
        let config = std::fs::read_to_string(self.home.path().join("heliograph.toml")).unwrap();
        let node =
            Self::with_database(self.database.clone(), tempfile::tempdir().unwrap(), &config);
        node.copy_sealing_key(self);
        node
    }

    /// Copies the sealing key of another server.
    pub(crate) fn copy_sealing_key(&self, other: &Self) {
        let key = |server: &Self| server.home.path().join("data/sealing.key");
        std::fs::create_dir_all(self.home.path().join("data")).unwrap();
        std::fs::copy(key(other), key(self)).unwrap();
    }

    fn with_database(database: Rc<Database>, home: TempDir, config: &str) -> Self {
        std::fs::write(home.path().join("heliograph.toml"), config).unwrap();
        let earlier_stderr = String::new();
        Self { process: None, address: None, earlier_stderr, key: OnceCell::new(), home, database }
    }

    /// Starts a server with the default configuration.
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// Starts a server with this configuration.
    pub(crate) fn with(config: &str) -> Self {
        Self::start_on(Engine::current(), config)
    }

    /// Starts a server with this configuration, on an engine that may differ from that of this run.
    pub(crate) fn start_on(engine: Engine, config: &str) -> Self {
        let mut server = Self::on(engine, config);
        server.launch();
        server.wait_until_ready();
        server
    }

    /// Returns a command in the server's folder.
    pub(crate) fn command(&self) -> Command {
        let mut command = process::command();
        self.configure(&mut command);
        command
    }

    fn configure(&self, command: &mut Command) {
        command.current_dir(self.home.path());
        if let Some(url) = self.database.url() {
            command.env("HELIOGRAPH_DATABASE__URL", url);
        }
        let file = std::fs::read_to_string(self.home.path().join("heliograph.toml"));
        let has = |text: &str| file.as_ref().is_ok_and(|file| file.contains(text));
        // Most tests are not about prices and links.
        if has("[[routes]]") && !has("[rates]") {
            command.env("HELIOGRAPH_RATES__DEFAULT", "0");
            if !has("[accounts]") {
                command.env("HELIOGRAPH_ACCOUNTS__SIGN_UP", "closed");
            }
        }
        if has("[mail]") && !has("public_url") {
            command.env("HELIOGRAPH_SERVER__PUBLIC_URL", "http://heliograph.test");
        }
    }

    /// Starts the process, without waiting until it listens.
    pub(crate) fn launch(&mut self) {
        self.launch_with(&["serve", "--listen", "127.0.0.1:0"]);
    }

    /// Starts the process with other arguments.
    pub(crate) fn launch_with(&mut self, arguments: &[&str]) {
        let mut command = self.command();
        self.spawn(command.args(arguments));
    }

    /// Starts the process with an environment variable.
    pub(crate) fn launch_with_variable(&mut self, name: &str, value: &str) {
        let mut command = self.command();
        self.spawn(command.args(["serve", "--listen", "127.0.0.1:0"]).env(name, value));
    }

    /// Starts the process so that a write beyond the limit of [`Process::limit_files`] is an error,
    /// as
    /// on a full disk, and does not end the process.
    pub(crate) fn launch_without_sigxfsz(&mut self) {
        self.launch_from_shell("trap '' XFSZ");
    }

    /// Starts the process from a shell, after a shell command.
    pub(crate) fn launch_from_shell(&mut self, what: &str) {
        let mut command = Command::new("sh");
        process::clear(&mut command);
        self.configure(&mut command);
        let script = format!("{what}; exec \"$0\" serve --listen 127.0.0.1:0");
        self.spawn(command.args(["-c", &script]).arg(process::program()));
    }

    fn spawn(&mut self, command: &mut Command) {
        self.kill();
        self.process = Some(Process::start(command));
    }

    #[allow(dead_code, reason = "used by the kill test only")]
    pub(crate) const fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("not running")
    }

    /// Returns the address, if the server listens.
    pub(crate) fn listen_address(&mut self) -> Option<SocketAddr> {
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

    /// Waits until the server listens.
    pub(crate) fn wait_until_ready(&mut self) {
        eventually("the server listens", || {
            let ended = self.process().ended();
            assert!(ended.is_none(), "{ended:?}: {}", self.log());
            self.listen_address()
        });
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("not listening")
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
            self.earlier_stderr.push_str(&process.stderr.text());
        }
        self.address = None;
    }

    /// Sends SIGTERM, and waits until the process ends.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.process().terminate();
        let status = self.process().wait();
        self.kill();
        status
    }

    /// Returns the stderr of all processes.
    pub(crate) fn log(&self) -> String {
        let now = self.process.as_ref().map(|p| p.stderr.text());
        format!("{}{}", self.earlier_stderr, now.unwrap_or_default())
    }

    /// Returns the welcome message of the first start.
    pub(crate) fn welcome(&self) -> String {
        let said = &self.process.as_ref().expect("not running").stdout;
        eventually("the welcome message", || {
            Some(said.text()).filter(|text| text.contains("To sign in to the demo account later"))
        })
    }

    /// Returns a test key of the demo account, made with the command of the welcome message.
    pub(crate) fn key(&self) -> String {
        let create = ["key", "create", "--account", "demo@localhost", "--name", "first key"];
        let make = || {
            self.welcome();
            self.stdout(&create)
        };
        self.key.get_or_init(make).clone()
    }

    /// Runs a command in the server's folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Runs a command; returns its exit code, stdout and stderr.
    pub(crate) fn run_text(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.run(arguments);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// Returns the stdout of a command that must succeed, without the final newline.
    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(arguments);
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap().trim_end().to_owned()
    }

    /// Runs a command that must fail, and returns its stderr.
    pub(crate) fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (stdout, stderr) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
        assert_eq!(
            (output.status.code(), stdout.unwrap().as_str()),
            (Some(1), ""),
            "{arguments:?}"
        );
        stderr.unwrap()
    }

    /// Starts the server, which must fail, and returns its stderr.
    pub(crate) fn fails_to_start(&mut self, arguments: &[&str]) -> String {
        self.launch_with(arguments);
        let status = self.process().wait();
        let (stdout, stderr) = (self.process().stdout.text(), self.process().stderr.text());
        assert_eq!((status.code(), stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.lines().any(|l| l.starts_with("heliograph: ")), "{stderr}");
        stderr
    }

    /// Returns the document that a command prints with `--json`.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let stdout = self.stdout(&[&["--json"], arguments].concat());
        serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {stdout}"))
    }

    /// Returns the list that a command prints with `--json`.
    pub(crate) fn list(&self, arguments: &[&str]) -> Vec<Value> {
        self.json(arguments).as_array().expect("no list").clone()
    }

    /// Creates an account with this balance; returns a live key.
    pub(crate) fn live_key(&self, email: &str, money: &str) -> String {
        self.stdout(&["account", "create", "--email", email]);
        if money != "0" {
            self.stdout(&["credit", "--account", email, "--amount", money]);
        }
        self.stdout(&["key", "create", "--account", email, "--live"])
    }

    pub(crate) fn ask(&self, request: &Request) -> HttpResponse {
        http::ask(self.address(), request).unwrap()
    }

    /// Requests to send a message.
    pub(crate) fn post(&self, key: &str, body: &Value) -> HttpResponse {
        self.ask(&Request::send_sms(key, body.to_string()))
    }

    /// Sends a message, which must be accepted; returns its id.
    pub(crate) fn accepted(&self, key: &str, body: &Value) -> String {
        let response = self.post(key, body);
        assert_eq!(response.status, 201, "{}", response.text());
        response.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn message(&self, key: &str, id: &str) -> HttpResponse {
        self.ask(&Request::get(&format!("/v1/messages/{id}")).key(key))
    }

    /// Waits until the status of a message is one of these.
    pub(crate) fn wait_for_status(&self, key: &str, id: &str, statuses: &[&str]) -> Value {
        eventually(&format!("message {id} becomes one of {statuses:?}"), || {
            let message = self.message(key, id).json();
            let status = message["status"].as_str().unwrap_or_default();
            statuses.contains(&status).then_some(message)
        })
    }

    /// Waits until a message is delivered or has failed.
    pub(crate) fn wait_until_ended(&self, key: &str, id: &str) -> Value {
        self.wait_for_status(key, id, &["DELIVERED", "FAILED"])
    }

    /// Returns the number of rows in the tables that a message uses.
    pub(crate) fn stored(&self) -> i64 {
        ["messages", "queue", "idempotency", "parts"]
            .map(|table| self.database.number(&format!("SELECT count(*) FROM {table}")))
            .iter()
            .sum()
    }

    /// Verifies the database invariants.
    pub(crate) fn check(&self) {
        let output = self.run(&["check"]);
        let list = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{list}{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Server {
    #[expect(clippy::print_stderr, reason = "the log explains a failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
            eprintln!("-- end of the server's log\n{}", last.join("\n"));
        }
        self.kill();
    }
}
