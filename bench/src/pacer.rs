//! An alarm clock that is right to a tenth of a millisecond.
//!
//! Tokio's timer counts whole milliseconds, and always upwards: a response that should take 20 ms
//! takes 21, and of 10,000 submits a second 9,500 are left before the product has done anything.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Instant;
use tokio::sync::Notify;

/// Alarms that may be set at once.
const MOST: usize = 4_096;

/// Rings at given instants, which must be set in their order.
pub(crate) struct Pacer {
    alarms: SyncSender<Instant>,
    bell: Arc<Notify>,
}

impl Pacer {
    /// Starts the thread that waits; it ends when this is dropped.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (alarms, set) = mpsc::sync_channel(MOST);
        let bell = Arc::new(Notify::new());
        let ring = bell.clone();
        std::thread::Builder::new().name("pacer".to_owned()).spawn(move || wait(&set, &ring))?;
        Ok(Self { alarms, bell })
    }

    /// Sets an alarm. When too many are set this one is lost; the next one rings for it.
    pub(crate) fn set(&self, at: Instant) {
        let _ = self.alarms.try_send(at);
    }

    /// Waits for the next alarm that rings.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}

fn wait(set: &Receiver<Instant>, ring: &Notify) {
    while let Ok(at) = set.recv() {
        while let Some(left) = at.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) {
            std::thread::park_timeout(left);
        }
        ring.notify_one();
    }
}
