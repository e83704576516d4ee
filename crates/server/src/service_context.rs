//! The context of the service layer: the database, and the real clock, ids and randomness.

use crate::config::Config;
use crate::data_dir;
use crate::system::{RandomIds, SystemClock, SystemRandom, SystemResolver};
use heliograph_domain::id::NodeId;
use heliograph_service::kernel::account_limits::{self, LimitTable};
use heliograph_service::kernel::context::{Context, Settings};
use heliograph_service::kernel::notifier::ChangeNotifier;
use heliograph_store::{Db, Options};
use std::sync::Arc;
use tokio::sync::watch;

/// Opens the configured database.
pub(crate) async fn open_database(config: &Config) -> anyhow::Result<Db> {
    let options = Options {
        url: config.database_url()?,
        connections: config.database.connections,
        key: data_dir::sealing_key(config)?,
        clock: Arc::new(SystemClock),
    };
    Db::open(options).await.map_err(|e| match e {
        heliograph_store::StoreError::WrongKey => e.into(),
        e => anyhow::Error::from(e).context("database.url"),
    })
}

/// Builds the context of the service layer with the real clock, ids and randomness.
pub(crate) async fn build(
    config: &Config,
    db: Db,
    node: NodeId,
    settings: watch::Receiver<Arc<Settings>>,
) -> anyhow::Result<Context> {
    let context = Context {
        db,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds::default()),
        random: Arc::new(SystemRandom),
        notifier: ChangeNotifier::default(),
        resolver: Arc::new(SystemResolver),
        node,
        limits: LimitTable::new(config.limits.account_limits()),
        settings,
    };
    account_limits::refresh(&context).await?;
    Ok(context)
}
