//! The loop of every worker that does what is due: at an interval, and when something wakes it.

use heliograph_service::kernel::error::Result;
use heliograph_service::kernel::log_limit::LogLimit;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// A task that a [`Worker`] repeats.
pub trait PeriodicTask {
    /// The log message about a failed turn.
    const FAILURE: &'static str;

    /// Does what is due now, in bounded time. A turn is not interrupted when the node stops.
    fn turn(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Waits for a reason to take a turn before the interval ends. Waiting may be cancelled at any
    /// time. By default there is no such reason.
    fn woken(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Repeats a task until the node stops.
pub struct Worker {
    /// The interval between turns. The first turn begins at once; after a turn that took longer,
    /// the next one begins at once too, but skipped turns are not repeated.
    pub interval: Duration,
    /// Turns true when the node stops.
    pub stop: watch::Receiver<bool>,
}

impl Worker {
    /// Runs until `stop` turns true. After a failed turn, which is logged, the next one waits for
    /// the interval, whatever wakes the task meanwhile.
    pub async fn run<T: PeriodicTask>(mut self, task: &mut T) {
        let mut interval = tokio::time::interval(self.interval);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut failed, limit) = (false, LogLimit::new());
        loop {
            tokio::select! {
                _ = interval.tick() => {}
                () = task.woken(), if !failed => {}
                _ = self.stop.wait_for(|stop| *stop) => return,
            }
            let result = task.turn().await;
            failed = result.is_err();
            if let Err(error) = result
                && let Some(omitted) = limit.admit()
            {
                tracing::warn!(%error, omitted, "{}", T::FAILURE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heliograph_service::kernel::error::Error;
    use std::sync::Arc;
    use tokio::sync::Notify;
    use tokio::time::Instant;

    /// Records the seconds of its turns; some of them fail.
    struct Recorder {
        started: Instant,
        turns: Vec<u64>,
        failures: usize,
        wake: Arc<Notify>,
    }

    impl PeriodicTask for Recorder {
        const FAILURE: &'static str = "failed to record";

        async fn turn(&mut self) -> Result<()> {
            self.turns.push(self.started.elapsed().as_secs());
            match self.turns.len() <= self.failures {
                true => Err(Error::NotFound),
                false => Ok(()),
            }
        }

        async fn woken(&mut self) {
            self.wake.notified().await;
        }
    }

    /// Returns the seconds of the turns in 25 seconds, with an interval of ten and a wake-up after
    /// three.
    async fn turns(failures: usize) -> Vec<u64> {
        let wake = Arc::new(Notify::new());
        let mut task =
            Recorder { started: Instant::now(), turns: vec![], failures, wake: wake.clone() };
        let stop = watch::Sender::new(false);
        let worker = Worker { interval: Duration::from_secs(10), stop: stop.subscribe() };
        let script = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            wake.notify_one();
            tokio::time::sleep(Duration::from_secs(22)).await;
            stop.send_replace(true);
        };
        tokio::join!(worker.run(&mut task), script);
        task.turns
    }

    #[tokio::test(start_paused = true)]
    async fn turns_follow_the_interval_and_wake_ups() {
        assert_eq!(turns(0).await, [0, 3, 10, 20]);
    }

    /// The wake-up is not lost: it is taken when the first turn has succeeded.
    #[tokio::test(start_paused = true)]
    async fn a_failed_turn_is_repeated_after_the_interval() {
        assert_eq!(turns(1).await, [0, 10, 10, 20]);
    }
}
