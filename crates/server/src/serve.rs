//! Wires everything together, runs it, and takes it down in order.

use crate::commands::{Role, ServeArgs};
use crate::config::{CarrierKind, Config};
use crate::system::{RandomIds, SystemClock};
use crate::{config, greeting, rates, telemetry};
use anyhow::{Context as _, bail};
use heliograph_carrier::carrier::Carrier;
use heliograph_carrier::smpp::bind::SmppCarrier;
use heliograph_carrier::smpp::options::SmppOptions;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_carrier::smsc::server;
use heliograph_domain::carrier::{Route, Routes};
use heliograph_domain::id::{CarrierId, NodeId};
use heliograph_engine::Engine;
use heliograph_service::context::{Context, Settings};
use heliograph_service::dispatch::Desks;
use heliograph_service::transaction::Road;
use heliograph_service::{nodes, writer};
use heliograph_store::{Db, Options};
use heliograph_web::App;
use std::fs::{File, TryLockError};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

/// How long the node may take to finish what it has begun.
const DRAIN: Duration = Duration::from_secs(30);
/// How much of it clients get to finish their requests: one that dawdles must not cost the carriers
/// the time in which they give their work back.
const DRAIN_WEB: Duration = Duration::from_secs(10);
/// How often the gathered metrics are brought into order.
const UPKEEP: Duration = Duration::from_secs(5);
/// Parts that may wait for the simulated SMSC, which answers at once.
const SIMULATED_WINDOW: u16 = 200;

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
    let data = Path::new(&config.server.data_dir);
    std::fs::create_dir_all(data)
        .with_context(|| format!("server.data_dir {} can't be made", data.display()))?;
    let _lock = lock(data)?;
    let metrics = telemetry::metrics()?;
    let db = open(&config).await?;
    let node = nodes::start(&db, identity(data)?).await?;
    let (settings, carriers) = settings(&db, &config).await?;
    let (_settings, settings) = watch::channel(Arc::new(settings));
    let context = context(db, node, settings);
    let (to_writer, inbox) = writer::channel();
    let desks = Desks::default();
    let road = Road::new(context.clone(), desks.clone());
    let written = start_writer(context.clone(), inbox, road)?;
    let (draining, drain) = watch::channel(false);
    let (stop, stopped) = watch::channel(false);
    let mut background = JoinSet::new();
    let handle = metrics.clone();
    background.spawn(async move {
        let mut beat = tokio::time::interval(UPKEEP);
        loop {
            beat.tick().await;
            handle.run_upkeep();
        }
    });

    let mut engine = JoinSet::new();
    if roles.contains(&Role::Engine) {
        let carriers = start_carriers(&context, &config, carriers, &mut background).await?;
        let work = Engine { context: context.clone(), writer: to_writer.clone(), desks, carriers };
        engine.spawn(heliograph_engine::run(work, stopped));
    }
    let mut web = JoinSet::new();
    if roles.contains(&Role::Web) {
        let listen = config.server.listen;
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("server.listen {listen} can't be listened on"))?;
        let address = listener.local_addr()?;
        greeting::greet(&context, &config.accounts.currency, address).await?;
        tracing::info!(%address, "listening");
        let app = App {
            context: context.clone(),
            writer: to_writer.clone(),
            keyring: Default::default(),
            draining: drain.clone(),
            metrics: Arc::new(move || metrics.render()),
        };
        web.spawn(heliograph_web::serve(listener, app));
    }
    tokio::select! {
        signal = signal() => signal?,
        Some(ended) = web.join_next() => ended?,
    }
    tracing::info!("draining");
    draining.send_replace(true);
    let drained = tokio::time::timeout(DRAIN, async {
        let asked = async { while web.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_WEB, asked).await.is_err() {
            tracing::warn!("a client did not finish its request in time");
            web.shutdown().await;
        }
        stop.send_replace(true);
        while engine.join_next().await.is_some() {}
    });
    let in_time = drained.await.is_ok();
    if !in_time {
        tracing::warn!("not everything was finished in time; leases that are left run out");
        engine.shutdown().await;
    }
    background.shutdown().await;
    drop((to_writer, context));
    tokio::task::spawn_blocking(move || written.join()).await?.ok();
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
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

/// One service per folder: a second one would free the leases of the first.
fn lock(data: &Path) -> anyhow::Result<File> {
    let path = data.join("lock");
    let file =
        File::create(&path).with_context(|| format!("{} can't be written", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another heliograph is running on {}: stop it, or choose another server.data_dir",
                data.display()
            )
        }
        Err(TryLockError::Error(e)) => {
            Err(e).with_context(|| format!("{} can't be locked", path.display()))
        }
    }
}

/// By which the node recognises leases of its former self.
fn identity(data: &Path) -> anyhow::Result<Uuid> {
    use heliograph_domain::id::Ids;
    use heliograph_domain::time::Clock;
    let path = data.join("node");
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            text.trim().parse().with_context(|| format!("{} is no node's identity", path.display()))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let fresh = RandomIds.next(SystemClock.now());
            std::fs::write(&path, format!("{fresh}\n"))
                .with_context(|| format!("{} can't be written", path.display()))?;
            Ok(fresh)
        }
        Err(e) => Err(e).with_context(|| format!("{} can't be read", path.display())),
    }
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
    Context { db, clock: Arc::new(SystemClock), ids: Arc::new(RandomIds), node, settings }
}

/// The operator's settings, and the numbers of the configured carriers.
pub(crate) async fn settings(
    db: &Db,
    config: &Config,
) -> anyhow::Result<(Settings, Vec<CarrierId>)> {
    let names: Vec<String> = config.carriers.iter().map(|c| c.name.clone()).collect();
    let (numbers, simulated) = nodes::carriers(db, &names).await?;
    let number = |name: &String| {
        let at = names.iter().position(|n| n == name)?;
        numbers.get(at).copied()
    };
    let mut routes = Vec::new();
    for route in &config.routes {
        let carriers: Option<Vec<CarrierId>> = route.carriers.iter().map(number).collect();
        let carriers = carriers.with_context(|| {
            format!(
                "routes: prefix '{}' names a carrier that [[carriers]] does not have",
                route.prefix
            )
        })?;
        routes.push(Route { prefix: route.prefix.clone(), carriers });
    }
    let rates =
        rates::load(config.rates.default, config.rates.file.as_deref(), &config.accounts.currency)?;
    Ok((Settings { routes: Routes::new(routes), rates, simulated }, numbers))
}

/// The writer has a thread of its own: on SQLite its statements run where they are called.
fn start_writer(
    context: Context,
    inbox: writer::Inbox,
    road: Road,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let body = move || runtime.block_on(writer::run(context, inbox, road));
    Ok(std::thread::Builder::new().name("writer".to_owned()).spawn(body)?)
}

type Served = (CarrierId, Box<dyn Carrier>, usize);

/// The configured carriers, and the simulated one with its SMSC inside this process.
async fn start_carriers(
    context: &Context,
    config: &Config,
    numbers: Vec<CarrierId>,
    background: &mut JoinSet<()>,
) -> anyhow::Result<Vec<Served>> {
    let mut served: Vec<Served> = Vec::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let simulator = listener.local_addr()?;
    background.spawn(async move {
        let (_stop, stopped) = watch::channel(false);
        let smsc = server::serve(listener, SmscOptions::default(), Arc::new(SystemClock), stopped);
        if let Err(e) = smsc.await {
            tracing::error!(error = %e, "the simulated SMSC ended");
        }
    });
    let simulated = context.settings().simulated;
    served.push(simulated_carrier(simulated, heliograph_domain::carrier::SIMULATED, simulator));
    for (number, c) in numbers.into_iter().zip(&config.carriers) {
        match c.kind {
            CarrierKind::Simulated => served.push(simulated_carrier(number, &c.name, simulator)),
            CarrierKind::Smpp => {
                let options = SmppOptions {
                    system_id: c.system_id.clone(),
                    password: c.password.reveal()?,
                    system_type: c.system_type.clone(),
                    window: c.window,
                    rate: c.rate,
                    ..SmppOptions::new(&c.name, &c.host, c.port)
                };
                served.push((number, Box::new(SmppCarrier::new(options)), usize::from(c.window)));
            }
        }
    }
    Ok(served)
}

fn simulated_carrier(number: CarrierId, name: &str, at: SocketAddr) -> Served {
    let options = SmppOptions {
        system_id: name.to_owned(),
        window: SIMULATED_WINDOW,
        ..SmppOptions::new(name, &at.ip().to_string(), at.port())
    };
    (number, Box::new(SmppCarrier::new(options)), usize::from(SIMULATED_WINDOW))
}
