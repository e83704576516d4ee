//! The journal: a JSON Lines file of everything that a test may have to verify afterwards.

use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One line of the journal.
#[derive(Debug, Serialize)]
pub(crate) struct JournalEntry<'a> {
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    /// `accepted` or `refused` (a submit), `acknowledged` (a receipt), `replied` (a reply), or
    /// `declined` (a receipt or a reply).
    pub(crate) event: &'static str,
    /// The destination of the message; for a reply, the originator that it answers.
    pub(crate) destination: &'a str,
    /// The originator; for a reply, the handset.
    pub(crate) source: &'a str,
    /// The text of the part; only for submits and replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<&'a str>,
    /// The number of the part, from 1; only for submits and replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<u8>,
    /// The number of parts; only for submits and replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<u8>,
    /// The message id in decimal; null for a refused submit and for a reply.
    pub(crate) id: Option<String>,
    /// The command_status of the response.
    pub(crate) status: u32,
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal(Mutex<BufWriter<File>>);

impl Journal {
    /// Opens the journal for appending.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(Mutex::new(BufWriter::new(file))))
    }

    pub(crate) fn write(&self, entry: &JournalEntry<'_>) {
        self.report(|out| {
            serde_json::to_writer(&mut *out, entry)?;
            out.write_all(b"\n")
        });
    }

    /// Flushes the buffer to the operating system. Called before responses are sent, so that the
    /// journal contains everything that a client has seen.
    pub(crate) fn flush(&self) {
        self.report(Write::flush);
    }

    fn report(&self, work: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = work(&mut out) {
            tracing::error!(%error, "failed to write SMSC journal");
        }
    }
}
