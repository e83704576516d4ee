//! The context of the service layer: the database, and the real clock, ids and randomness.

use crate::config::Config;
use crate::data_dir;
use crate::name_resolver::NameResolver;
use crate::system::{RandomIds, SystemClock, SystemRandom};
use heliograph_domain::id::NodeId;
use heliograph_service::kernel::context::{Context, Settings};
use heliograph_service::kernel::name_resolution::NameResolution;
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
pub(crate) fn build(
    config: &Config,
    db: Db,
    node: NodeId,
    settings: watch::Receiver<Arc<Settings>>,
) -> anyhow::Result<Context> {
    let (clock, ids, random) =
        (Arc::new(SystemClock), Arc::new(RandomIds::default()), Arc::new(SystemRandom));
    let notifier = ChangeNotifier::default();
    let names = NameResolution::new(NameResolver::new(&config.webhooks.dns_servers)?);
    Ok(Context { db, clock, ids, random, notifier, names, node, settings })
}
