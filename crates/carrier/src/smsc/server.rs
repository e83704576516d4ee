//! The server: takes connections and serves each until it ends.

use crate::smsc::options::SmscOptions;
use crate::smsc::session::Session;
use crate::smsc::shared::Smsc;
use crate::stop::stopped;
use heliograph_domain::time::Clock;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The most connections at once.
const MAX_SESSIONS: usize = 1_000;

/// The wait after a connection that could not be taken: most likely there are too many open files.
const BREATH: Duration = Duration::from_millis(100);

/// Answers whoever connects, with any credentials, until `stop` turns true. An error only when the
/// journal can't be opened or the listener breaks.
pub async fn serve(
    listener: TcpListener,
    options: SmscOptions,
    clock: Arc<dyn Clock>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let smsc = Arc::new(Smsc::new(options, clock)?);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = sessions.join_next() => {}
            taken = listener.accept(), if sessions.len() < MAX_SESSIONS => match taken {
                Ok((stream, _)) => {
                    let (smsc, stop) = (Arc::clone(&smsc), stop.clone());
                    sessions.spawn(async move { Session::serve(&smsc, stream, stop).await });
                }
                Err(error) => {
                    tracing::warn!("the SMSC could not take a connection: {error}");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }
    while sessions.join_next().await.is_some() {}
    Ok(())
}
