//! The journal: one JSON line for each thing that a test may have to prove afterwards.

use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Entry<'a> {
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    /// `accepted` or `refused` (a submit), `acknowledged` (a receipt), `replied` (a reply), or
    /// `declined` (either of these).
    pub(crate) event: &'static str,
    /// The number that the message is or was for; of a reply, the originator that it answers.
    pub(crate) destination: &'a str,
    /// The originator; of a reply, the handset.
    pub(crate) source: &'a str,
    /// The part's text; of submits and replies only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<&'a str>,
    /// Which part, from 1; of submits and replies only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<u8>,
    /// Of how many; of submits and replies only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<u8>,
    /// The message id in decimal; null when the submit was refused, and of a reply.
    pub(crate) id: Option<String>,
    /// command_status of the answer.
    pub(crate) status: u32,
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal(Mutex<BufWriter<File>>);

impl Journal {
    /// Appends to what is there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(Mutex::new(BufWriter::new(file))))
    }

    pub(crate) fn write(&self, entry: &Entry<'_>) {
        self.report(|out| {
            serde_json::to_writer(&mut *out, entry)?;
            out.write_all(b"\n")
        });
    }

    /// Hands everything to the system. Called before the answers go out, so that what a client was
    /// told is always in the journal.
    pub(crate) fn flush(&self) {
        self.report(Write::flush);
    }

    fn report(&self, work: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = work(&mut out) {
            tracing::error!("the SMSC's journal can't be written: {error}");
        }
    }
}
