//! Everything that runs, and how it is taken down: nothing that was begun is cut, nothing stays half done.

use crate::serve;
use heliograph_web::GateKeeper;
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long the node may take to finish what it has begun.
const DRAIN: Duration = Duration::from_secs(30);
/// How much of it clients get to finish their requests: one that dawdles must not cost the carriers
/// the time in which they give their work back.
const DRAIN_WEB: Duration = Duration::from_secs(10);

/// Everything that runs, in the order in which it is taken down.
pub(crate) struct Running {
    pub(crate) keeper: GateKeeper,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) engine: JoinSet<()>,
    pub(crate) web: JoinSet<()>,
    pub(crate) background: JoinSet<()>,
    writer: JoinHandle<()>,
}

impl Running {
    pub(crate) fn new(writer: JoinHandle<()>, max_in_flight: u32) -> Self {
        let (keeper, stop) = (GateKeeper::new(max_in_flight), watch::Sender::new(false));
        let (web, engine, background) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        Self { keeper, stop, engine, web, background, writer }
    }

    /// Waits for the signal, then takes everything down: no new requests, the open ones answered,
    /// the carriers drained, everything written. Until the end, whoever asks is told to go elsewhere.
    pub(crate) async fn until_stopped(mut self) -> anyhow::Result<ExitCode> {
        tokio::select! {
            signal = serve::signal() => signal?,
            Some(ended) = self.web.join_next() => ended?,
        }
        tracing::info!("draining");
        if tokio::time::timeout(DRAIN, self.drain()).await.is_err() {
            tracing::warn!("not everything was finished in time; leases that are left run out");
            self.engine.shutdown().await;
        }
        self.keeper.close();
        while self.web.join_next().await.is_some() {}
        self.background.shutdown().await;
        // With the last handle to it gone, the writer ends once everything is written.
        let writer = self.writer;
        drop(tokio::task::spawn_blocking(move || writer.join()).await?);
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }

    async fn drain(&mut self) {
        if self.keeper.drain(DRAIN_WEB).await {
            tracing::warn!("a client did not finish its request in time");
        }
        self.stop.send_replace(true);
        while self.engine.join_next().await.is_some() {}
    }
}
