//! The `heliograph serve` command: wires up all layers, runs the node and shuts it down gracefully.

use crate::config::{Config, NumberConfig};
use crate::http::HttpSettings;
use crate::number_owners::NumberOwnersTask;
use crate::serve_args::{NodeRole, ServeArgs};
use crate::service_context::{self, open_database};
use crate::shutdown::RunningNode;
use crate::system::open_files;
use crate::welcome::Place;
use crate::{account_lookup, carriers, certificate_reload, config, data_dir, http, key_usage};
use crate::{metrics_access, rate_limit_share, safety, telemetry, welcome, writer_thread};
use anyhow::{Context as _, bail};
use heliograph_api::{ApiState, ProblemDocuments, RateLimit};
use heliograph_dashboard::{AfterResponse, DashboardState, LiveUpdates, PageRate, SignInThrottle};
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::id::CarrierId;
use heliograph_engine::{Authorities, Engine, Mailer, PeriodicTask};
use heliograph_http::{CertificateReloader, ServerOptions, Tls, TrustedProxies, read_certificate};
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
    let mut found = safety::assess(config)?;
    found.warnings.extend(config::unknown_variables());
    found.warnings.extend(data_dir::warning(config));
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
    authorities(&config)?;
    refuse_unsafe(&config)?;
    let data = data_dir::create(&config)?;
    tracing::info!(path = %data_dir::absolute(&config).display(), "data directory");
    let _lock = data_dir::lock(data)?;
    // Before anything runs that would have to be stopped again.
    let listener = roles.contains(&NodeRole::Web).then(|| bind(&config)).transpose()?;
    let metrics_listener = metrics_access::bind(&config)?;
    let db = open_database(&config).await?;
    let node = nodes::start(&db, data_dir::node_identity(data)?).await?;
    let (settings, numbers) = carriers::settings(&db, &config).await?;
    let (settings_sender, settings) = watch::channel(Arc::new(settings));
    let context = service_context::build(&config, db, node, settings).await?;
    carriers::preflight(&context, &config, roles).await?;
    assign_numbers(&context, &config).await?;
    let mut owners = NumberOwnersTask { context: context.clone(), settings: settings_sender };
    // Before the first message is accepted.
    owners.turn().await?;
    let (message_queues, delivery_queues) = (DispatchQueues::default(), DeliveryQueues::default());
    let (to_writer, inbox) = writer::channel();
    let deps = WriterDeps {
        context: Context { db: context.db.with_own_pool()?, ..context.clone() },
        dispatch_queues: message_queues.clone(),
        delivery_queues: delivery_queues.clone(),
    };
    let writer = writer_thread::start(deps, inbox)?;
    let mut running = RunningNode::new(writer, config.limits.max_in_flight);
    let keyring = Keyring::default();
    let usage = key_usage::run(context.clone(), keyring.clone(), running.stop.subscribe());
    running.background.spawn(usage);
    running.background.spawn(owners.run(running.stop.subscribe()));
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
    if let Some(listener) = metrics_listener {
        let problems = ProblemDocuments::default();
        let options = ServerOptions {
            gate: running.drain_controller.gate(),
            proxies: TrustedProxies::default(),
            tls: None,
            open_files: files,
            errors: http::error_documents(&context, problems),
        };
        let access = metrics_access::own_listener(&config)?;
        tracing::info!(address = %listener.local_addr()?, "serving metrics");
        running.web.spawn(http::run_metrics(listener, access, context.clone(), options));
    }
    let result = running.until_stopped().await;
    key_usage::flush(&context, &keyring).await;
    rate_limit_share::leave(&context).await;
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
            authorities: authorities(self.config)?,
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
        let (nodes, sharing) = watch::channel(1);
        let stop = running.stop.subscribe();
        running.background.spawn(rate_limit_share::run(self.context.clone(), nodes, stop));
        let (context, writer) = (self.context.clone(), self.writer.clone());
        let gate = running.drain_controller.gate();
        let dashboard = DashboardState {
            context: context.clone(),
            writer: writer.clone(),
            sign_in_throttle: SignInThrottle::new(start_hashing()?),
            after_response: AfterResponse::default(),
            page_rate: PageRate::default(),
            live_updates: LiveUpdates::default(),
            gate: gate.clone(),
        };
        let rate_limit = RateLimit::new(sharing);
        let server = &self.config.server;
        let problems = ProblemDocuments { base_url: server.public_base_url() };
        let options = ServerOptions {
            gate: gate.clone(),
            proxies: TrustedProxies::new(server.proxies()),
            tls,
            open_files: files,
            errors: http::error_documents(&context, problems.clone()),
        };
        let api = ApiState::new(context, writer, self.keyring.clone(), rate_limit, gate)
            .with_metrics_access(metrics_access::main_listener(self.config)?);
        let settings = HttpSettings { require_https: server.behind_proxy, problems };
        running.web.spawn(http::run(listener, api, dashboard, settings, options));
        Ok(())
    }
}

/// Assigns the configured phone numbers to their accounts. A number that belongs to another account
/// is not moved, because a mistake would redirect messages silently.
async fn assign_numbers(context: &Context, config: &Config) -> anyhow::Result<()> {
    for NumberConfig { number, account } in &config.numbers {
        let account = account_lookup::find(context, account).await.context("numbers")?;
        match numbers::assign(context, number, account.id).await {
            Err(Error::Conflict(ConflictReason::NumberAssigned(owner))) => {
                let owner = account_lookup::find(context, &AccountRef::Id(owner)).await?;
                bail!(
                    "numbers: {number} belongs to account {} ({}), but [[numbers]] names account {} ({}); to move it, run \
                     'heliograph number move {number} --account {}'; to keep it, set account = \"{}\" in [[numbers]]",
                    owner.id,
                    owner.name,
                    account.id,
                    account.name,
                    account.id,
                    owner.id
                )
            }
            other => other?,
        }
    }
    Ok(())
}

/// Loads the TLS certificate, if one is configured.
fn certificate(config: &Config) -> anyhow::Result<Option<(Tls, CertificateReloader)>> {
    let Some((cert, key)) = config.server.tls()? else { return Ok(None) };
    read_certificate(cert, key).context("server.tls_cert, server.tls_key").map(Some)
}

/// Reads the additional certificate authorities of webhooks.
fn authorities(config: &Config) -> anyhow::Result<Authorities> {
    let Some(path) = &config.webhooks.ca_file else { return Ok(Authorities::default()) };
    heliograph_engine::read_authorities(path)
        .map_err(anyhow::Error::msg)
        .context("webhooks.ca_file")
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

/// The addition to the data directory in the welcome text if it is inside of a clone.
const IN_CLONE: &str =
    "\n    ('git clean -fdx' would delete it: before you go live, set server.data_dir)";

/// Prints the welcome text at the first start, and logs the address.
async fn announce(context: &Context, config: &Config, address: SocketAddr) -> anyhow::Result<()> {
    let scheme = if config.server.tls()?.is_some() { "https" } else { "http" };
    let data = data_dir::absolute(config).display().to_string();
    let data = if data_dir::is_in_clone(config) { format!("{data}{IN_CLONE}") } else { data };
    let place = Place { base: &format!("{scheme}://{address}"), data: &data };
    welcome::print_once(context, &config.accounts.currency, place).await?;
    tracing::info!(scheme, %address, "listening");
    Ok(())
}
