//! The time of the database, as a node knows it between two measurements.
//!
//! Between measurements the time advances with the monotonic clock of the node, so that setting the
//! wall clock has no effect on it. It never runs backwards: a measured step back is made up for
//! slowly.

use heliograph_domain::lease::LEASE;
use heliograph_domain::time::{Clock, Timestamp};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The part of the elapsed time by which a step back is made up for: a tenth.
const SLOWDOWN: i64 = 10;

/// The time of the database.
pub(crate) struct DatabaseTime {
    pub(crate) clock: Arc<dyn Clock>,
    /// The difference to the monotonic clock, in milliseconds.
    offset: AtomicI64,
    /// The latest time that was returned.
    latest: AtomicI64,
    measured: Mutex<Measured>,
}

/// The measurements so far.
#[derive(Default)]
struct Measured {
    /// The time of the last one by the monotonic clock, in milliseconds.
    at: Option<i64>,
    /// The steps forward of the last minute: when, and how far.
    steps: Vec<(i64, i64)>,
}

impl DatabaseTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            offset: AtomicI64::new(0),
            latest: AtomicI64::new(i64::MIN),
            measured: Mutex::default(),
        }
    }

    fn monotonic(&self) -> i64 {
        millis(self.clock.monotonic())
    }

    pub(crate) fn now(&self) -> Timestamp {
        let now = self.monotonic().saturating_add(self.offset.load(Relaxed));
        Timestamp(now.max(self.latest.fetch_max(now, Relaxed)))
    }

    /// Sets the time to a measured one. A step back is made up for by a tenth of the time that has
    /// passed since the last measurement.
    pub(crate) fn set(&self, measured: Timestamp) {
        let now = self.monotonic();
        let mut last = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = measured.millis().saturating_sub(now);
        let Some(before) = last.at.replace(now) else {
            self.offset.store(offset, Relaxed);
            return;
        };
        let step = offset.saturating_sub(self.offset.load(Relaxed));
        let step = step.max(-(now.saturating_sub(before) / SLOWDOWN));
        self.offset.fetch_add(step, Relaxed);
        if step > 0 {
            last.steps.push((now, step));
        }
    }

    /// Returns the current time without the steps forward of the last minute. A lease of this node
    /// that ended before has lasted long enough by the monotonic clock.
    pub(crate) fn now_for_own_leases(&self) -> Timestamp {
        let now = self.monotonic();
        let mut last = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        last.steps.retain(|(at, _)| now.saturating_sub(*at) <= millis(LEASE));
        let steps: i64 = last.steps.iter().map(|(_, by)| by).sum();
        Timestamp(self.now().millis().saturating_sub(steps))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
