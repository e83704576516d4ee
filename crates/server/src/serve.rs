//! Wires everything together, runs it, and takes it down in order.

use crate::commands::{Role, ServeArgs};
use crate::config::Config;
use crate::shutdown::Running;
use crate::system::{RandomIds, SystemClock, SystemRandom, SystemResolver, open_files};
use crate::{carriers, config, folder, greeting, share, telemetry, usage};
use anyhow::{Context as _, bail};
use heliograph_domain::id::NodeId;
use heliograph_engine::{Engine, Mailer};
use heliograph_service::api_keys::Keyring;
use heliograph_service::bells::Bells;
use heliograph_service::context::{Context, Settings};
use heliograph_service::dispatch::Desks;
use heliograph_service::error::Error;
use heliograph_service::events::Couriers;
use heliograph_service::passwords::{self, Passwords};
use heliograph_service::transaction::Road;
use heliograph_service::{nodes, writer};
use heliograph_store::{Db, Options};
use heliograph_web::{App, Entrance, RateLimit, Renewal, Tls, read_certificate};
use metrics_exporter_prometheus::PrometheusHandle;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{self, Signal, SignalKind};
use tokio::sync::{Notify, watch};

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
    let tls = config.server.tls()?.is_some();
    if !listen.ip().is_loopback() && !config.server.behind_proxy && !tls {
        bail!(
            "server.listen is {listen}, which others can reach, and there is no TLS: set server.tls_cert and \
             server.tls_key (--tls-cert, --tls-key), or server.behind_proxy = true (--behind-proxy) if a proxy in \
             front of it speaks HTTPS, or listen on 127.0.0.1"
        );
    }
    Ok(())
}

async fn run(config: Config, roles: &[Role]) -> anyhow::Result<ExitCode> {
    let (hangup, nudge) = (unix::signal(SignalKind::hangup())?, Arc::new(Notify::new()));
    let (certificate, files) = (certificate(&config)?, open_files());
    mailer(&config)?;
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
    let mut running = Running::new(writer, config.limits.max_in_flight);
    running.background.spawn(upkeep(metrics.clone()));
    running.background.spawn(hangups(hangup, nudge.clone()));
    let keyring = Keyring::default();
    running.background.spawn(usage::keep(context.clone(), keyring.clone()));
    if roles.contains(&Role::Engine) {
        let (carriers, simulator) =
            carriers::start(&context, &config, numbers, &mut running.background).await?;
        let (context, writer) = (context.clone(), to_writer.clone());
        let mailer = mailer(&config)?;
        let engine = Engine { context, writer, desks, couriers, carriers, simulator, mailer };
        running.engine.spawn(heliograph_engine::run(engine, running.stop.subscribe()));
    }
    if roles.contains(&Role::Web) {
        let listener = listen(&context, &config).await?;
        let (context, writer) = (context.clone(), to_writer.clone());
        let (gate, behind_proxy) = (running.keeper.gate(), config.server.behind_proxy);
        let metrics = Arc::new(move || metrics.render());
        let limit = config.limits.requests_per_second;
        let (share, shares) = watch::channel(limit);
        running.background.spawn(share::keep(context.clone(), limit, share));
        let (keyring, rate_limit) = (keyring.clone(), RateLimit::new(shares));
        let entrance = Entrance::new(start_hashing()?);
        let app =
            App { context, writer, keyring, rate_limit, entrance, gate, behind_proxy, metrics };
        let tls = certificate.map(|(tls, renewal)| {
            running.background.spawn(renewal.run(nudge));
            tls
        });
        running.web.spawn(heliograph_web::serve(listener, app, tls, files));
    }
    drop(to_writer);
    let ended = running.until_stopped().await;
    usage::note(&context, &keyring).await;
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

/// The certificate to show, if HTTPS is to be spoken.
fn certificate(config: &Config) -> anyhow::Result<Option<(Tls, Renewal)>> {
    let Some((cert, key)) = config.server.tls()? else { return Ok(None) };
    read_certificate(cert, key).context("server.tls_cert, server.tls_key").map(Some)
}

/// The way to the mail server, if mail is to be sent.
fn mailer(config: &Config) -> anyhow::Result<Option<Mailer>> {
    let Some((url, from)) = config.mail.route()? else { return Ok(None) };
    Mailer::new(&url, from).map(Some).map_err(anyhow::Error::msg)
}

/// Starts the threads that hash passwords; they end when nobody can ask them any more.
fn start_hashing() -> anyhow::Result<Passwords> {
    let (passwords, work) = passwords::channel();
    for _ in 0..passwords::THREADS {
        let work = work.clone();
        std::thread::Builder::new().name("passwords".to_owned()).spawn(move || work.run())?;
    }
    Ok(passwords)
}

/// SIGHUP, which would end a process that does not care: looks at the certificate again.
async fn hangups(mut hangup: Signal, nudge: Arc<Notify>) {
    while hangup.recv().await.is_some() {
        tracing::info!(
            "SIGHUP: certificates are looked at again; the configuration needs a restart"
        );
        nudge.notify_one();
    }
}

async fn listen(context: &Context, config: &Config) -> anyhow::Result<TcpListener> {
    let wanted = config.server.listen;
    let listener = heliograph_web::listen(wanted)
        .with_context(|| format!("server.listen {wanted} can't be listened on"))?;
    let address = listener.local_addr()?;
    let scheme = if config.server.tls()?.is_some() { "https" } else { "http" };
    let base = format!("{scheme}://{address}");
    greeting::greet(context, &config.accounts.currency, &base).await?;
    tracing::info!(scheme, %address, "listening");
    Ok(listener)
}

async fn upkeep(metrics: PrometheusHandle) {
    let mut beat = tokio::time::interval(UPKEEP);
    loop {
        beat.tick().await;
        metrics.run_upkeep();
    }
}

/// Waits for SIGTERM or Ctrl-C.
pub(crate) async fn signal() -> anyhow::Result<()> {
    let mut term = unix::signal(SignalKind::terminate())?;
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
        key: folder::sealing_key(config)?,
        clock: Arc::new(SystemClock),
    };
    Db::open(options).await.map_err(|e| match e {
        heliograph_store::Error::WrongKey => e.into(),
        e => anyhow::Error::from(e).context("database.url"),
    })
}

/// What the rules are handed.
pub(crate) fn context(db: Db, node: NodeId, settings: watch::Receiver<Arc<Settings>>) -> Context {
    let (clock, ids, random) =
        (Arc::new(SystemClock), Arc::new(RandomIds::default()), Arc::new(SystemRandom));
    let (bells, resolver) = (Bells::default(), Arc::new(SystemResolver));
    Context { db, clock, ids, random, bells, resolver, node, settings }
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
