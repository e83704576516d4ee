//! A simulated SMSC in a process of its own, which can be killed, and whose journal is evidence.

use crate::patience::eventually;
use crate::process::{self, Process};
use serde::Deserialize;
use std::path::PathBuf;
use tempfile::TempDir;

/// An SMSC on a port that stays the same when it is started again.
pub(crate) struct Smsc {
    process: Option<Process>,
    port: u16,
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
    /// Starts one on any free port.
    pub(crate) fn start(behaviour: &[&str]) -> Self {
        let behaviour = behaviour.iter().map(|b| (*b).to_owned()).collect();
        let home = tempfile::tempdir().unwrap();
        let mut smsc = Self { process: None, port: 0, behaviour, home };
        smsc.revive();
        smsc
    }

    /// Starts it (again).
    pub(crate) fn revive(&mut self) {
        let mut command = process::command();
        command.args(["smsc", "--port", &self.port.to_string(), "--journal"]);
        let process = Process::start(command.arg(self.journal_file()).args(&self.behaviour));
        self.port = eventually("the SMSC says where it is", || {
            let said = process.stdout.text();
            let address = said.split_once(" on ")?.1.split_once(',')?.0;
            address.rsplit_once(':')?.1.parse().ok()
        });
        self.process = Some(process);
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

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// A configuration that sends all live messages to it, for nothing.
    pub(crate) fn config(&self, window: u16) -> String {
        let port = self.port;
        format!(
            "[[carriers]]\nname = 'remote'\nkind = 'smpp'\nhost = '127.0.0.1'\nport = {port}\n\
             system_id = 'heliograph'\nwindow = {window}\n\
             [[routes]]\nprefix = ''\ncarriers = ['remote']\n"
        )
    }
}
