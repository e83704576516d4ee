//! The `heliograph serve` command: wires up all layers, runs the node and shuts it down gracefully.

use crate::config::Config;
use crate::serve_args::{NodeRole, ServeArgs};
use crate::service_context::{self, open_database};
use crate::shutdown::RunningNode;
use crate::system::open_files;
use crate::{carriers, certificate_reload, config, data_dir, http, key_usage};
use crate::{rate_limit_share, safety, telemetry, welcome};
use anyhow::{Context as _, bail};
use heliograph_api::{ApiState, RateLimit};
use heliograph_dashboard::{AfterResponse, DashboardState, SignInThrottle};
use heliograph_domain::id::CarrierId;
use heliograph_engine::{Engine, Mailer};
use heliograph_http::{CertificateReloader, ServerOptions, Tls, read_certificate};
use heliograph_service::group_commit;
use heliograph_service::group_commit::batch::WriterDeps;
use heliograph_service::identity::api_keys::Keyring;
use heliograph_service::identity::passwords::{self, Passwords};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::{ConflictReason, Error};
use heliograph_service::kernel::writer::{self, Writer};
use heliograph_service::messaging::dispatch::DispatchQueues;
use heliograph_service::operations::nodes;
use heliograph_service::operations::numbers;
use heliograph_service::webhooks::events::DeliveryQueues;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::signal::unix::{self, Signal, SignalKind};
use tokio::sync::{Notify, watch};

/// Runs `heliograph serve`.
pub(crate) fn main(
    file: &Option<std::path::PathBuf>,
    args: &ServeArgs,
) -> anyhow::Result<ExitCode> {
    let mut config = config::load(file.as_deref())?;
    args.apply(&mut config);
    require_tls(&config)?;
    let _flushed = telemetry::log(&config.telemetry)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(config, &args.role))
}

/// Rejects a listen address that would expose API keys and message texts without TLS.
fn require_tls(config: &Config) -> anyhow::Result<()> {
    let listen = config.server.listen;
    let tls = config.server.tls()?.is_some();
    if !listen.ip().is_loopback() && !config.server.behind_proxy && !tls {
        bail!(
            "server.listen {listen} is not a loopback address and TLS is not configured: set server.tls_cert and \
             server.tls_key (--tls-cert, --tls-key), set server.behind_proxy = true (--behind-proxy) if a reverse \
             proxy terminates TLS, or listen on 127.0.0.1"
        );
    }
    Ok(())
}

/// Warns about risks of the configuration, and rejects those that would lose money.
fn refuse_unsafe(config: &Config) -> anyhow::Result<()> {
    let found = safety::assess(config)?;
    found.warnings.iter().for_each(|warning| tracing::warn!("configuration: {warning}"));
    match found.errors.is_empty() {
        true => Ok(()),
        false => bail!("unsafe configuration: {}", found.errors.join(" ")),
    }
}

async fn run(config: Config, roles: &[NodeRole]) -> anyhow::Result<ExitCode> {
    let hangup = unix::signal(SignalKind::hangup())?;
    let (certificate, files) = (certificate(&config)?, open_files());
    mailer(&config)?;
    refuse_unsafe(&config)?;
    let data = data_dir::create(&config)?;
    let _lock = data_dir::lock(data)?;
    // Before anything runs that would have to be stopped again.
    let listener = roles.contains(&NodeRole::Web).then(|| bind(&config)).transpose()?;
    let db = open_database(&config).await?;
    let node = nodes::start(&db, data_dir::node_identity(data)?).await?;
    let (settings, numbers) = carriers::settings(&db, &config).await?;
    let (_settings, settings) = watch::channel(Arc::new(settings));
    let context = service_context::build(db, node, settings);
    carriers::preflight(&context, &config, roles).await?;
    assign_numbers(&context, &config).await?;
    let (message_queues, delivery_queues) = (DispatchQueues::default(), DeliveryQueues::default());
    let (to_writer, inbox) = writer::channel();
    let deps = WriterDeps {
        context: Context { db: context.db.with_own_pool()?, ..context.clone() },
        dispatch_queues: message_queues.clone(),
        delivery_queues: delivery_queues.clone(),
    };
    let writer = start_writer(deps, inbox)?;
    let mut running = RunningNode::new(writer, config.limits.max_in_flight);
    let keyring = Keyring::default();
    let usage = key_usage::run(context.clone(), keyring.clone(), running.stop.subscribe());
    running.background.spawn(usage);
    let certificate = certificate.filter(|_| roles.contains(&NodeRole::Web));
    let tls = start_reloading(hangup, certificate, &mut running);
    let node = Node {
        config: &config,
        context: context.clone(),
        writer: to_writer,
        message_queues,
        delivery_queues,
        keyring: keyring.clone(),
    };
    if roles.contains(&NodeRole::Engine) {
        node.start_engine(numbers, &mut running).await?;
    }
    if let Some(listener) = listener {
        node.start_web(tls, files, listener, &mut running).await?;
    }
    // The writer ends when its last handle is gone.
    drop(node);
    let result = running.until_stopped().await;
    key_usage::flush(&context, &keyring).await;
    rate_limit_share::leave(&context, config.limits.requests_per_second).await;
    result
}

/// The parts of a node that its roles share.
struct Node<'a> {
    config: &'a Config,
    context: Context,
    writer: Writer,
    message_queues: DispatchQueues,
    delivery_queues: DeliveryQueues,
    keyring: Keyring,
}

impl Node<'_> {
    /// Starts the role `engine` with the carriers of these ids.
    async fn start_engine(
        &self,
        carriers: Vec<CarrierId>,
        running: &mut RunningNode,
    ) -> anyhow::Result<()> {
        let background = &mut running.background;
        let (carriers, simulator) =
            carriers::start(&self.context, self.config, carriers, background).await?;
        let engine = Engine {
            context: self.context.clone(),
            writer: self.writer.clone(),
            message_queues: self.message_queues.clone(),
            delivery_queues: self.delivery_queues.clone(),
            carriers,
            simulator,
            mailer: mailer(self.config)?,
        };
        running.engine.spawn(heliograph_engine::run(engine, running.stop.subscribe()));
        Ok(())
    }

    /// Starts the role `web`. `files` is the limit of open files.
    async fn start_web(
        &self,
        tls: Option<Tls>,
        files: usize,
        listener: TcpListener,
        running: &mut RunningNode,
    ) -> anyhow::Result<()> {
        announce(&self.context, self.config, listener.local_addr()?).await?;
        let limit = self.config.limits.requests_per_second;
        let (share, shares) = watch::channel(limit);
        let stop = running.stop.subscribe();
        let task = rate_limit_share::run(self.context.clone(), limit, share, stop);
        running.background.spawn(task);
        let (context, writer) = (self.context.clone(), self.writer.clone());
        let gate = running.drain_controller.gate();
        let dashboard = DashboardState {
            context: context.clone(),
            writer: writer.clone(),
            sign_in_throttle: SignInThrottle::new(start_hashing()?),
            after_response: AfterResponse::default(),
            gate: gate.clone(),
        };
        let rate_limit = RateLimit::new(shares);
        let api = ApiState::new(context, writer, self.keyring.clone(), rate_limit, gate.clone());
        let behind_proxy = self.config.server.behind_proxy;
        let options = ServerOptions { gate, behind_proxy, tls, open_files: files };
        running.web.spawn(http::run(listener, api, dashboard, options));
        Ok(())
    }
}

/// Assigns the configured phone numbers to their accounts.
async fn assign_numbers(context: &Context, config: &Config) -> anyhow::Result<()> {
    let numbers =
        config.numbers.iter().map(|n| (n.number.clone(), n.account.trim().to_lowercase()));
    let numbers: Vec<_> = numbers.collect();
    match numbers::assign(context, &numbers).await {
        Err(Error::Conflict(ConflictReason::UnknownAccount(email))) => {
            bail!("numbers: there is no account for {email}: see 'heliograph account list'")
        }
        other => Ok(other?),
    }
}

/// Loads the TLS certificate, if one is configured.
fn certificate(config: &Config) -> anyhow::Result<Option<(Tls, CertificateReloader)>> {
    let Some((cert, key)) = config.server.tls()? else { return Ok(None) };
    read_certificate(cert, key).context("server.tls_cert, server.tls_key").map(Some)
}

/// Creates the mailer, if mail is configured.
fn mailer(config: &Config) -> anyhow::Result<Option<Mailer>> {
    let Some((url, from)) = config.mail.transport()? else { return Ok(None) };
    Mailer::new(&url, from).map(Some).map_err(anyhow::Error::msg)
}

/// Starts the threads that hash passwords; they end when the last [`Passwords`] handle is dropped.
fn start_hashing() -> anyhow::Result<Passwords> {
    let (passwords, work) = passwords::channel();
    for _ in 0..passwords::THREADS {
        let work = work.clone();
        std::thread::Builder::new().name("passwords".to_owned()).spawn(move || work.run())?;
    }
    Ok(passwords)
}

/// Starts reloading the certificate on SIGHUP and when its files change.
fn start_reloading(
    signal: Signal,
    certificate: Option<(Tls, CertificateReloader)>,
    running: &mut RunningNode,
) -> Option<Tls> {
    let hangup = Arc::new(Notify::new());
    running.background.spawn(certificate_reload::hangups(signal, hangup.clone()));
    let (tls, reloader) = certificate?;
    let reload = certificate_reload::run(reloader, hangup, running.stop.subscribe());
    running.background.spawn(reload);
    Some(tls)
}

/// Binds the listening socket.
fn bind(config: &Config) -> anyhow::Result<TcpListener> {
    let wanted = config.server.listen;
    heliograph_http::bind(wanted).with_context(|| {
        format!(
            "server.listen: failed to listen on {wanted}; choose another address or port with --listen"
        )
    })
}

/// Prints the welcome text at the first start, and logs the address.
async fn announce(context: &Context, config: &Config, address: SocketAddr) -> anyhow::Result<()> {
    let scheme = if config.server.tls()?.is_some() { "https" } else { "http" };
    welcome::print_once(context, &config.accounts.currency, &format!("{scheme}://{address}"))
        .await?;
    tracing::info!(scheme, %address, "listening");
    Ok(())
}

/// Starts the writer (group commit) on a thread of its own: on SQLite its statements block the
/// calling thread, and on PostgreSQL the writer drives its own connection.
fn start_writer(deps: WriterDeps, inbox: writer::Inbox) -> anyhow::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let body = move || runtime.block_on(group_commit::run::run(deps, inbox));
    Ok(std::thread::Builder::new().name("writer".to_owned()).spawn(body)?)
}
