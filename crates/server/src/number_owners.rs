//! The accounts of the assigned numbers in the settings of this node, which follow `heliograph number
//! move`.

use heliograph_engine::{PeriodicTask, Worker};
use heliograph_service::kernel::context::{Context, Settings};
use heliograph_service::kernel::error::Result;
use heliograph_service::operations::numbers;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The interval at which the numbers are read.
const PERIOD: Duration = Duration::from_secs(10);

/// The numbers in the settings.
pub(crate) struct NumberOwnersTask {
    pub(crate) context: Context,
    pub(crate) settings: watch::Sender<Arc<Settings>>,
}

impl NumberOwnersTask {
    /// Runs until `stop` turns true.
    pub(crate) async fn run(mut self, stop: watch::Receiver<bool>) {
        Worker { interval: PERIOD, stop }.run(&mut self).await;
    }
}

impl PeriodicTask for NumberOwnersTask {
    const FAILURE: &'static str = "failed to read the assigned numbers";

    async fn turn(&mut self) -> Result<()> {
        let owners = numbers::owners(&self.context).await?;
        self.settings.send_if_modified(|settings| {
            let changed = settings.number_owners != owners;
            if changed {
                Arc::make_mut(settings).number_owners = owners;
            }
            changed
        });
        Ok(())
    }
}
