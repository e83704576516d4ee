//! The command that checks whether this node can commit.

use crate::kernel::commands::command::Command;
use crate::kernel::commands::writer_command::WriterCommand;
use crate::kernel::writer::Writer;
use heliograph_store::{StoreError, StoreResult};
use tokio::sync::oneshot;

/// A write without effect on messages, for the health check of a node.
#[derive(Debug)]
pub struct CheckCommit {
    /// Confirms that the write is durable.
    pub reply: oneshot::Sender<StoreResult<()>>,
}

impl CheckCommit {
    /// Commits such a write.
    ///
    /// # Errors
    /// Those of the commit, and [`StoreError::Unavailable`] when the queue of the writer is full.
    pub async fn run(writer: &Writer) -> StoreResult<()> {
        let (reply, committed) = oneshot::channel();
        writer.try_send(Command::CheckCommit(Self { reply }))?;
        let ended = |_| StoreError::Unavailable("shutting down".to_owned());
        committed.await.map_err(ended).flatten()
    }
}

impl WriterCommand for CheckCommit {
    fn weight(&self) -> usize {
        1
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err(error.share()));
    }
}
