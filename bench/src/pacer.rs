//! A timer with a precision of a tenth of a millisecond.
//!
//! Tokio's timer rounds up to whole milliseconds: a response that should take 20 ms takes 21, which
//! would reduce 10,000 possible submits per second to 9,500 before Heliograph has done anything.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Instant;
use tokio::sync::Notify;

/// The maximum number of pending alarms.
const MAX_ALARMS: usize = 4_096;

/// Fires at given times, which must be set in ascending order.
pub(crate) struct Pacer {
    alarms: SyncSender<Instant>,
    notify: Arc<Notify>,
}

impl Pacer {
    /// Starts the timer thread, which ends when the pacer is dropped.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (alarms, set) = mpsc::sync_channel(MAX_ALARMS);
        let notify = Arc::new(Notify::new());
        let firing = notify.clone();
        std::thread::Builder::new().name("pacer".to_owned()).spawn(move || wait(&set, &firing))?;
        Ok(Self { alarms, notify })
    }

    /// Sets an alarm. If too many are pending, the alarm is dropped, and the next one to fire
    /// stands in.
    pub(crate) fn set(&self, at: Instant) {
        let _ = self.alarms.try_send(at);
    }

    /// Waits until the next alarm fires.
    pub(crate) async fn fired(&self) {
        self.notify.notified().await;
    }
}

fn wait(set: &Receiver<Instant>, notify: &Notify) {
    while let Ok(at) = set.recv() {
        while let Some(left) = at.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) {
            std::thread::park_timeout(left);
        }
        notify.notify_one();
    }
}
