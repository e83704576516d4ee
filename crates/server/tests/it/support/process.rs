//! A child process whose output is kept, and which ends with its test.

use crate::support::wait::eventually;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Returns the program under test: `HELIOGRAPH_BIN`, or the one that Cargo has built.
pub(crate) fn program() -> OsString {
    std::env::var_os("HELIOGRAPH_BIN").unwrap_or(env!("CARGO_BIN_EXE_heliograph").into())
}

/// Returns a command without configuration from the environment.
pub(crate) fn command() -> Command {
    let mut command = Command::new(program());
    clear(&mut command);
    command
}

/// Removes all `HELIOGRAPH_` variables.
pub(crate) fn clear(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HELIOGRAPH_") {
            command.env_remove(name);
        }
    }
}

/// A running child.
pub(crate) struct Process {
    child: Child,
    pub(crate) stdout: Lines,
    pub(crate) stderr: Lines,
}

/// The output of a child so far.
pub(crate) struct Lines {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Lines {
    fn of(source: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let kept = text.clone();
        let read = move || {
            let mut source = BufReader::new(source);
            let mut line = Vec::new();
            while source.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let whole = String::from_utf8_lossy(&line).into_owned();
                kept.lock().unwrap_or_else(PoisonError::into_inner).push_str(&whole);
                line.clear();
            }
        };
        Self { text, reader: Some(std::thread::spawn(read)) }
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Lines::of(child.stdout.take().unwrap());
        let stderr = Lines::of(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        rustix::process::kill_process(self.pid(), Signal::TERM).unwrap();
    }

    /// Sends SIGHUP.
    pub(crate) fn hang_up(&self) {
        rustix::process::kill_process(self.pid(), Signal::HUP).unwrap();
    }

    /// Sends SIGKILL, which has the effect of a crash.
    pub(crate) fn kill(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.stdout.end();
        self.stderr.end();
    }

    /// Returns the exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until the process ends.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let status = eventually("the process ends", || self.ended());
        self.stdout.end();
        self.stderr.end();
        status
    }

    /// Limits the size of files that the process writes, in bytes; `None` removes the limit.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let most = rustix::process::getrlimit(Resource::Fsize).maximum;
        let limit = Rlimit { current: bytes.or(most), maximum: most };
        rustix::process::prlimit(Some(self.pid()), Resource::Fsize, limit).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
