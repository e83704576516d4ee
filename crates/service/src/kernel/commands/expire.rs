//! The command that fails queued messages whose validity has ended.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_store::messaging::queue::ExpiredEntry;
use heliograph_store::{StoreError, StoreResult};
use tokio::sync::oneshot;

/// A request to fail queued messages whose validity has ended.
#[derive(Debug)]
pub struct Expire {
    /// The queue entries of the messages.
    pub entries: Vec<ExpiredEntry>,
    /// Confirms that the failures are durable.
    pub reply: oneshot::Sender<StoreResult<()>>,
}

impl WriterCommand for Expire {
    fn weight(&self) -> usize {
        self.entries.len()
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err(error.share()));
    }
}
