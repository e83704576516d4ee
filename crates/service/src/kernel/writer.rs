//! The handle and the inbox of the node's writer.

use crate::kernel::commands::command::Command;
use async_recursion::async_recursion as boxed;
pub use heliograph_store::StoreError;
use heliograph_store::StoreResult;
use tokio::sync::mpsc;

/// The number of commands that may wait; beyond it callers get an error and retry later.
const INBOX: usize = 4_096;

/// A handle to the writer; cheap to clone.
#[derive(Clone, Debug)]
pub struct Writer(mpsc::Sender<Command>);

/// The receiving end of the writer's queue.
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<Command>);

/// Returns a writer handle and its inbox.
pub fn channel() -> (Writer, Inbox) {
    let (to, from) = mpsc::channel(INBOX);
    (Writer(to), Inbox(from))
}

impl Writer {
    /// Sends a command without waiting.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the queue is full or the writer has ended.
    pub fn try_send(&self, command: Command) -> StoreResult<()> {
        self.0.try_send(command).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => {
                StoreError::Unavailable("write queue is full".to_owned())
            }
            mpsc::error::TrySendError::Closed(_) => {
                StoreError::Unavailable("shutting down".to_owned())
            }
        })
    }

    /// Sends a command, waiting until the queue has room.
    ///
    /// # Errors
    /// The command itself when the writer has ended.
    #[boxed]
    pub async fn send(&self, command: Command) -> std::result::Result<(), Command> {
        self.0.send(command).await.map_err(|e| e.0)
    }
}

impl Inbox {
    /// Waits for the next command; `None` when all handles are gone and the inbox is empty.
    pub(crate) async fn receive(&mut self) -> Option<Command> {
        self.0.recv().await
    }

    /// Returns the next command; `None` when the inbox is empty.
    pub(crate) fn try_receive(&mut self) -> Option<Command> {
        self.0.try_recv().ok()
    }
}
