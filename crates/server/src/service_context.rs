//! The context of the service layer: the database, and the real clock, ids and randomness.

use crate::config::Config;
use crate::data_dir;
use crate::name_resolver::NameResolver;
use crate::system::{RandomIds, SystemClock, SystemRandom};
use anyhow::{Context as _, bail};
use heliograph_domain::id::NodeId;
use heliograph_service::kernel::account_limits::{self, LimitTable};
use heliograph_service::kernel::context::{Context, Settings};
use heliograph_service::kernel::name_resolution::NameResolution;
use heliograph_service::kernel::notifier::ChangeNotifier;
use heliograph_store::{Db, Options, StoreError};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Opens the configured database, and completes a rotation of the sealing key that was interrupted
/// after its commit.
pub(crate) async fn open_database(config: &Config) -> anyhow::Result<Db> {
    let url = config.database_url()?;
    if let Some(file) = data_dir::missing_key(config)
        && Db::has_users(&url).await.context("database.url")?
    {
        bail!(
            "{} is missing, but the database exists: its secrets cannot be decrypted with another key. Restore the file \
             from where you keep a copy of the sealing key, or set database.sealing_key",
            file.display()
        );
    }
    let (connections, clock) = (config.database.connections, Arc::new(SystemClock));
    let key = data_dir::sealing_key(config)?;
    let options = Options { url, connections, key, clock };
    let opened = match (Db::open(options.clone()).await, data_dir::next_key(config)?) {
        (Err(StoreError::WrongKey), Some(key)) => {
            let opened = Db::open(Options { key, ..options }).await;
            if opened.is_ok() {
                data_dir::activate_next_key(Path::new(&config.server.data_dir))?;
            }
            opened
        }
        (opened, _) => opened,
    };
    opened.map_err(|e| match e {
        StoreError::WrongKey => e.into(),
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
        names: NameResolution::new(NameResolver::new(&config.webhooks.dns_servers)?),
        node,
        limits: LimitTable::new(config.limits.account_limits()),
        settings,
    };
    account_limits::refresh(&context.db, &context.limits).await?;
    Ok(context)
}
