//! The command that renews leases of messages.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_domain::lease::Lease;
use heliograph_store::{StoreError, StoreResult};
use tokio::sync::oneshot;

/// A request of a dispatcher to extend leases.
#[derive(Debug)]
pub struct Renew {
    /// The leases.
    pub leases: Vec<Lease>,
    /// Confirms that the extension is durable.
    pub reply: oneshot::Sender<StoreResult<()>>,
}

impl WriterCommand for Renew {
    fn weight(&self) -> usize {
        self.leases.len()
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err(error.share()));
    }
}
