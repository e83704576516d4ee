//! A simulated SMSC in a process of its own, which can be killed, and whose journal is evidence.

use crate::http::{self, Request};
use crate::patience::eventually;
use crate::ports::Port;
use crate::process::{self, Process};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use tempfile::TempDir;

/// An SMSC on a port that stays the same when it is started again.
pub(crate) struct Smsc {
    process: Option<Process>,
    /// Nobody else's while it is dead: who listened there would be taken for it.
    port: Port,
    /// Where its handsets are; another port each time it is started.
    control: Option<SocketAddr>,
    behaviour: Vec<String>,
    home: TempDir,
}

/// A line of the journal.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) event: String,
    pub(crate) destination: String,
    pub(crate) text: Option<String>,
    #[allow(dead_code, reason = "only one of the two test binaries counts parts")]
    pub(crate) part: Option<u8>,
}

impl Smsc {
    /// Starts one on a port that nobody else gets while it is dead: below those that systems hand out.
    pub(crate) fn start(behaviour: &[&str]) -> Self {
        let behaviour = behaviour.iter().map(|b| (*b).to_owned()).collect();
        let home = tempfile::tempdir().unwrap();
        let port = Port::reserve();
        let (process, control) = (None, None);
        let mut smsc = Self { process, port, control, behaviour, home };
        smsc.launch();
        while smsc.process.is_none() {
            smsc.port = Port::reserve();
            smsc.launch();
        }
        smsc
    }

    /// Starts it again.
    pub(crate) fn revive(&mut self) {
        self.launch();
        assert!(self.process.is_some(), "somebody has taken port {}", self.port.number);
    }

    /// Starts it, unless its port is taken.
    fn launch(&mut self) {
        let mut command = process::command();
        command.args(["smsc", "--port", &self.port.number.to_string(), "--control-port", "0"]);
        command.arg("--journal").arg(self.journal_file());
        let mut process = Process::start(command.args(&self.behaviour));
        let ended = eventually("the SMSC says where it is, or why it ended", || {
            let said = process.stdout.text();
            let control = said.split_once("control on http://").and_then(|s| s.1.split_once('\n'));
            self.control = control.and_then(|(address, _)| address.parse().ok());
            process.ended().is_some().then_some(true).or(self.control.map(|_| false))
        });
        if ended {
            process.wait();
            let why = process.stderr.text();
            assert!(why.contains("can't be listened on"), "{why}");
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

    /// All that it has taken, refused, and delivered.
    pub(crate) fn journal(&self) -> Vec<Entry> {
        let text = std::fs::read_to_string(self.journal_file()).unwrap();
        // What is being written at this moment has no end yet.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The texts that it took, part by part, in order.
    pub(crate) fn accepted(&self) -> Vec<String> {
        let journal = self.journal().into_iter().filter(|e| e.event == "accepted");
        journal.map(|e| e.text.unwrap_or_default()).collect()
    }

    fn ask(&self, request: &Request) -> http::Answer {
        http::ask(self.control.expect("no control port"), request).unwrap()
    }

    /// A handset writes to `to`, as soon as there is somebody to take it.
    pub(crate) fn reply(&self, from: &str, to: &str, text: &str) {
        let body = json!({ "to": to, "text": text }).to_string();
        let request = Request::new("POST", &format!("/handsets/{from}/reply")).body(body);
        eventually("somebody is bound who takes the reply", || {
            let answer = self.ask(&request);
            assert!([202, 409].contains(&answer.status), "{}", answer.text());
            (answer.status == 202).then_some(())
        });
    }

    /// The texts that a handset has received, the oldest first.
    pub(crate) fn handset(&self, number: &str) -> Vec<String> {
        let answer = self.ask(&Request::get(&format!("/handsets/{number}/messages"))).json();
        let text = |m: &Value| m["text"].as_str().unwrap().to_owned();
        answer.as_array().unwrap().iter().map(text).collect()
    }

    /// The parts of replies that were taken, in order.
    pub(crate) fn taken_replies(&self) -> Vec<String> {
        let journal = self.journal().into_iter().filter(|e| e.event == "replied");
        journal.map(|e| e.text.unwrap_or_default()).collect()
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port.number
    }

    /// A configuration that sends all live messages to it, for nothing.
    pub(crate) fn config(&self, window: u16) -> String {
        let port = self.port.number;
        format!(
            "[[carriers]]\nname = 'remote'\nkind = 'smpp'\nhost = '127.0.0.1'\nport = {port}\n\
             system_id = 'heliograph'\nwindow = {window}\n\
             [[routes]]\nprefix = ''\ncarriers = ['remote']\n"
        )
    }
}
