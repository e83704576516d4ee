//! A simulated SMSC in its own process, with a journal.

use crate::support::http::{self, Request};
use crate::support::ports::Port;
use crate::support::process::{self, Process};
use crate::support::wait::eventually;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use tempfile::TempDir;

/// An SMSC that keeps its port after a restart.
pub(crate) struct Smsc {
    process: Option<Process>,
    /// The port stays reserved while the SMSC is down.
    port: Port,
    /// The address of the handset API, which changes with each start.
    control: Option<SocketAddr>,
    behavior: Vec<String>,
    home: TempDir,
}

/// A line of the journal.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) event: String,
    pub(crate) destination: String,
    pub(crate) text: Option<String>,
    #[allow(dead_code, reason = "used by the kill test only")]
    pub(crate) part: Option<u8>,
}

impl Smsc {
    /// Starts an SMSC on a reserved port.
    pub(crate) fn start(behavior: &[&str]) -> Self {
        let behavior = behavior.iter().map(|b| (*b).to_owned()).collect();
        let home = tempfile::tempdir().unwrap();
        let port = Port::reserve();
        let (process, control) = (None, None);
        let mut smsc = Self { process, port, control, behavior, home };
        smsc.launch();
        while smsc.process.is_none() {
            smsc.port = Port::reserve();
            smsc.launch();
        }
        smsc
    }

    /// Starts the SMSC again.
    pub(crate) fn restart(&mut self) {
        self.launch();
        assert!(self.process.is_some(), "port {} is in use", self.port.number);
    }

    /// Starts the SMSC, unless its port is in use.
    fn launch(&mut self) {
        let mut command = process::command();
        command.args(["smsc", "--port", &self.port.number.to_string(), "--control-port", "0"]);
        command.arg("--journal").arg(self.journal_file());
        let mut process = Process::start(command.args(&self.behavior));
        let ended = eventually("the SMSC prints its address, or ends", || {
            let stdout = process.stdout.text();
            let control = stdout
                .split_once("Control API listening on http://")
                .and_then(|s| s.1.split_once('\n'));
            self.control = control.and_then(|(address, _)| address.parse().ok());
            process.ended().is_some().then_some(true).or(self.control.map(|_| false))
        });
        if ended {
            process.wait();
            let why = process.stderr.text();
            assert!(why.contains("failed to listen on"), "{why}");
        } else {
            self.process = Some(process);
        }
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    fn journal_file(&self) -> PathBuf {
        self.home.path().join("journal")
    }

    /// Returns all messages that were accepted, rejected or delivered.
    pub(crate) fn journal(&self) -> Vec<Entry> {
        let text = std::fs::read_to_string(self.journal_file()).unwrap();
        // The last line may be incomplete.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the texts of accepted parts, in order.
    pub(crate) fn accepted(&self) -> Vec<String> {
        let journal = self.journal().into_iter().filter(|e| e.event == "accepted");
        journal.map(|e| e.text.unwrap_or_default()).collect()
    }

    fn ask(&self, request: &Request) -> http::HttpResponse {
        http::ask(self.control.expect("no control port"), request).unwrap()
    }

    /// Sends a message from a handset, as soon as a client is bound.
    pub(crate) fn reply(&self, from: &str, to: &str, text: &str) {
        let body = json!({ "to": to, "text": text }).to_string();
        let request = Request::new("POST", &format!("/handsets/{from}/reply")).body(body);
        eventually("a client is bound", || {
            let response = self.ask(&request);
            assert!([202, 409].contains(&response.status), "{}", response.text());
            (response.status == 202).then_some(())
        });
    }

    /// Returns the texts that a handset has received, oldest first.
    pub(crate) fn handset(&self, number: &str) -> Vec<String> {
        let response = self.ask(&Request::get(&format!("/handsets/{number}/messages"))).json();
        let text = |m: &Value| m["text"].as_str().unwrap().to_owned();
        response.as_array().unwrap().iter().map(text).collect()
    }

    /// Returns the acknowledged parts of replies, in order.
    pub(crate) fn taken_replies(&self) -> Vec<String> {
        let journal = self.journal().into_iter().filter(|e| e.event == "replied");
        journal.map(|e| e.text.unwrap_or_default()).collect()
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port.number
    }

    /// A configuration that routes all live messages to this SMSC, free of charge.
    pub(crate) fn config(&self, window: u16) -> String {
        let port = self.port.number;
        format!(
            "[[carriers]]\nname = 'remote'\nkind = 'smpp'\nhost = '127.0.0.1'\nport = {port}\n\
             system_id = 'heliograph'\nwindow = {window}\n\
             [[routes]]\nprefix = ''\ncarriers = ['remote']\n"
        )
    }
}
