//! Wires everything together, runs it, and takes it down in order.

use crate::commands::{Role, ServeArgs};
use crate::config::Config;
use crate::system::{RandomIds, SystemClock, SystemResolver};
use crate::{carriers, config, folder, greeting, share, telemetry};
use anyhow::{Context as _, bail};
use heliograph_domain::id::NodeId;
use heliograph_engine::Engine;
use heliograph_service::api_keys::Keyring;
use heliograph_service::context::{Context, Settings};
use heliograph_service::dispatch::Desks;
use heliograph_service::error::Error;
use heliograph_service::events::Couriers;
use heliograph_service::transaction::Road;
use heliograph_service::{nodes, writer};
use heliograph_store::{Db, Options};
use heliograph_web::{App, RateLimit};
use metrics_exporter_prometheus::PrometheusHandle;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long the node may take to finish what it has begun.
const DRAIN: Duration = Duration::from_secs(30);
/// How much of it clients get to finish their requests: one that dawdles must not cost the carriers
/// the time in which they give their work back.
const DRAIN_WEB: Duration = Duration::from_secs(10);
/// How often the gathered metrics are brought into order.
const UPKEEP: Duration = Duration::from_secs(5);

/// `heliograph serve`.
pub(crate) fn main(
    file: &Option<std::path::PathBuf>,
    args: &ServeArgs,
) -> anyhow::Result<ExitCode> {
    let mut config = config::load(file.as_deref())?;
    args.apply(&mut config);
    refuse_open_door(&config)?;
    let _flushed = telemetry::log(&config.telemetry)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(config, &args.role))
}

/// Keys and texts must not travel in the clear.
fn refuse_open_door(config: &Config) -> anyhow::Result<()> {
    let listen = config.server.listen;
    if !listen.ip().is_loopback() && !config.server.behind_proxy {
        bail!(
            "server.listen is {listen}, which others can reach, and there is no TLS: listen on 127.0.0.1, or set \
             server.behind_proxy = true (--behind-proxy) if a proxy in front of it speaks HTTPS"
        );
    }
    Ok(())
}

async fn run(config: Config, roles: &[Role]) -> anyhow::Result<ExitCode> {
    let data = folder::create(&config)?;
    let _lock = folder::lock(data)?;
    let metrics = telemetry::metrics()?;
    let db = open(&config).await?;
    let node = nodes::start(&db, folder::identity(data)?).await?;
    let (settings, numbers) = carriers::settings(&db, &config).await?;
    let (_settings, settings) = watch::channel(Arc::new(settings));
    let context = context(db, node, settings);
    carriers::complain(&context, &config, roles).await?;
    assign_numbers(&context, &config).await?;
    let (desks, couriers) = (Desks::default(), Couriers::default());
    let (to_writer, inbox) = writer::channel();
    let road = Road::new(context.clone(), desks.clone(), couriers.clone());
    let writer = start_writer(context.clone(), inbox, road)?;
    let mut running = Running::new(writer);
    running.background.spawn(upkeep(metrics.clone()));
    if roles.contains(&Role::Engine) {
        let carriers = carriers::start(&context, &config, numbers, &mut running.background).await?;
        let (context, writer) = (context.clone(), to_writer.clone());
        let engine = Engine { context, writer, desks, couriers, carriers };
        running.engine.spawn(heliograph_engine::run(engine, running.stop.subscribe()));
    }
    if roles.contains(&Role::Web) {
        let listener = listen(&context, &config).await?;
        let (context, writer) = (context.clone(), to_writer.clone());
        let draining = running.draining.subscribe();
        let metrics = Arc::new(move || metrics.render());
        let limit = config.limits.requests_per_second;
        let (share, shares) = watch::channel(limit);
        running.background.spawn(share::keep(context.clone(), limit, share));
        let (keyring, rate_limit) = (Keyring::default(), RateLimit::new(shares));
        let app = App { context, writer, keyring, rate_limit, draining, metrics };
        running.web.spawn(heliograph_web::serve(listener, app));
    }
    drop(to_writer);
    let ended = running.until_stopped().await;
    share::leave(&context, config.limits.requests_per_second).await;
    ended
}

/// Gives the configured numbers to their accounts.
async fn assign_numbers(context: &Context, config: &Config) -> anyhow::Result<()> {
    let numbers =
        config.numbers.iter().map(|n| (n.number.clone(), n.account.trim().to_lowercase()));
    let numbers: Vec<_> = numbers.collect();
    match nodes::assign_numbers(context, &numbers).await {
        Err(Error::Conflict(email)) => {
            bail!("numbers: there is no account for {email}: see 'heliograph account list'")
        }
        other => Ok(other?),
    }
}

async fn listen(context: &Context, config: &Config) -> anyhow::Result<TcpListener> {
    let wanted = config.server.listen;
    let listener = TcpListener::bind(wanted)
        .await
        .with_context(|| format!("server.listen {wanted} can't be listened on"))?;
    let address = listener.local_addr()?;
    greeting::greet(context, &config.accounts.currency, address).await?;
    tracing::info!(%address, "listening");
    Ok(listener)
}

async fn upkeep(metrics: PrometheusHandle) {
    let mut beat = tokio::time::interval(UPKEEP);
    loop {
        beat.tick().await;
        metrics.run_upkeep();
    }
}

/// Everything that runs, in the order in which it is taken down.
struct Running {
    draining: watch::Sender<bool>,
    web: JoinSet<()>,
    stop: watch::Sender<bool>,
    engine: JoinSet<()>,
    background: JoinSet<()>,
    writer: JoinHandle<()>,
}

impl Running {
    fn new(writer: JoinHandle<()>) -> Self {
        let (draining, stop) = (watch::Sender::new(false), watch::Sender::new(false));
        let (web, engine, background) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        Self { draining, web, stop, engine, background, writer }
    }

    /// Waits for the signal, then takes everything down: no new requests, the open ones answered,
    /// the carriers drained, everything written.
    async fn until_stopped(mut self) -> anyhow::Result<ExitCode> {
        tokio::select! {
            signal = signal() => signal?,
            Some(ended) = self.web.join_next() => ended?,
        }
        tracing::info!("draining");
        self.draining.send_replace(true);
        if tokio::time::timeout(DRAIN, self.drain()).await.is_err() {
            tracing::warn!("not everything was finished in time; leases that are left run out");
            self.engine.shutdown().await;
        }
        self.background.shutdown().await;
        // With the last handle to it gone, the writer ends once everything is written.
        let writer = self.writer;
        drop(tokio::task::spawn_blocking(move || writer.join()).await?);
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }

    async fn drain(&mut self) {
        let answered = async { while self.web.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_WEB, answered).await.is_err() {
            tracing::warn!("a client did not finish its request in time");
            self.web.shutdown().await;
        }
        self.stop.send_replace(true);
        while self.engine.join_next().await.is_some() {}
    }
}

/// Waits for SIGTERM or Ctrl-C.
pub(crate) async fn signal() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = term.recv() => {}
        pressed = tokio::signal::ctrl_c() => pressed?,
    }
    Ok(())
}

/// Opens the configured database.
pub(crate) async fn open(config: &Config) -> anyhow::Result<Db> {
    let options = Options {
        url: config.database_url()?,
        connections: config.database.connections,
        clock: Arc::new(SystemClock),
    };
    Db::open(options).await.context("database.url")
}

/// What the rules are handed.
pub(crate) fn context(db: Db, node: NodeId, settings: watch::Receiver<Arc<Settings>>) -> Context {
    let (clock, ids, resolver) =
        (Arc::new(SystemClock), Arc::new(RandomIds::default()), Arc::new(SystemResolver));
    Context { db, clock, ids, resolver, node, settings }
}

/// The writer has a thread of its own: on SQLite its statements run where they are called, and on PostgreSQL
/// it serves its own connection.
fn start_writer(
    context: Context,
    inbox: writer::Inbox,
    road: Road,
) -> anyhow::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let context = Context { db: context.db.apart()?, ..context };
    let body = move || runtime.block_on(writer::run(context, inbox, road));
    Ok(std::thread::Builder::new().name("writer".to_owned()).spawn(body)?)
}
