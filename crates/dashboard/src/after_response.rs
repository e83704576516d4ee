//! Work that begins after the response was sent, so that its time does not show in the response: only
//! known email addresses cause writes.

use heliograph_service::kernel::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The number of tasks that may wait or run. The throttle of sign-in attempts lets fewer through.
const LIMIT: usize = 256;
/// The time after which the work begins: the response was sent long before.
const DELAY: Duration = Duration::from_millis(100);

/// Runs work after responses.
#[derive(Clone, Debug)]
pub struct AfterResponse(Arc<Semaphore>);

impl Default for AfterResponse {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LIMIT)))
    }
}

impl AfterResponse {
    /// Runs `work` soon. Its error is only logged: nobody waits for it.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when too much work waits.
    #[expect(
        clippy::disallowed_methods,
        reason = "nobody waits for the task, its error is logged, and a shutdown may end it"
    )]
    pub(crate) fn run(
        &self,
        work: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Result<(), Error> {
        let permit = self.0.clone().try_acquire_owned();
        let permit = permit.map_err(|_| Error::Overloaded("too much work waits".to_owned()))?;
        tokio::spawn(async move {
            let _permit = permit;
            tokio::time::sleep(DELAY).await;
            if let Err(error) = work.await {
                tracing::warn!(%error, "failed to finish a request after its response");
            }
        });
        Ok(())
    }
}
