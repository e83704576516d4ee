//! The command that checks whether this node can commit.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_store::{StoreError, StoreResult};
use tokio::sync::oneshot;

/// A write without effect on messages, for the health check of a node.
#[derive(Debug)]
pub struct CheckCommit {
    /// Confirms that the write is durable.
    pub reply: oneshot::Sender<StoreResult<()>>,
}

impl WriterCommand for CheckCommit {
    fn weight(&self) -> usize {
        1
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err(error.share()));
    }
}
