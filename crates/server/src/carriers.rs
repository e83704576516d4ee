//! The configured carriers: their numbers and routes, and what is started for them.

use crate::commands::Role;
use crate::config::{CarrierKind, Config, SignUp};
use crate::rates;
use crate::system::SystemClock;
use anyhow::{Context as _, bail};
use heliograph_carrier::smpp::bind::SmppCarrier;
use heliograph_carrier::smpp::options::SmppOptions;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_carrier::smsc::server;
use heliograph_carrier::smsc::simulator::Simulator;
use heliograph_domain::carrier::{Route, Routes, SIMULATED};
use heliograph_domain::id::CarrierId;
use heliograph_domain::target::Reach;
use heliograph_engine::Served;
use heliograph_service::context::{Context, Entrance, Replies, Settings};
use heliograph_service::{accounts, dispatch, nodes};
use heliograph_store::Db;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Parts that may wait for the simulated SMSC, which answers at once.
const SIMULATED_WINDOW: u16 = 200;

/// Refuses secrets that are not there and what would charge wrongly, and warns of what would leave messages lying.
pub(crate) async fn complain(
    context: &Context,
    config: &Config,
    roles: &[Role],
) -> anyhow::Result<()> {
    config.check_secrets()?;
    let currency = &config.accounts.currency;
    for a in accounts::list(context).await? {
        if a.currency != *currency {
            bail!(
                "accounts.currency is {currency}, but {} is kept in {}: rates would be charged in the wrong money",
                a.name,
                a.currency
            );
        }
    }
    if !roles.contains(&Role::Engine) && !context.db.is_shared() {
        tracing::warn!(
            "this node only accepts messages, and no other can send them: SQLite serves one node"
        );
    }
    let known = |name: &str| name == SIMULATED || config.carriers.iter().any(|c| c.name == name);
    for (name, messages) in dispatch::waiting(context).await? {
        if messages > 0 && !known(&name) {
            tracing::warn!(
                carrier = name,
                messages,
                "messages wait for a carrier that [[carriers]] does not have"
            );
        }
    }
    Ok(())
}

/// The configured carriers, the simulated one, and its SMSC inside this process.
pub(crate) async fn start(
    context: &Context,
    config: &Config,
    numbers: Vec<CarrierId>,
    background: &mut JoinSet<()>,
) -> anyhow::Result<(Vec<Served>, Simulator)> {
    let mut served: Vec<Served> = Vec::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let at = listener.local_addr()?;
    let simulator = Simulator::new(SmscOptions::default(), Arc::new(SystemClock))?;
    let served_simulator = simulator.clone();
    background.spawn(async move {
        let (_stop, stopped) = watch::channel(false);
        server::serve(listener, served_simulator, stopped).await;
    });
    let simulated = context.settings().simulated;
    served.push(simulated_carrier(simulated, SIMULATED, at));
    for (number, c) in numbers.into_iter().zip(&config.carriers) {
        match c.kind {
            CarrierKind::Simulated => served.push(simulated_carrier(number, &c.name, at)),
            CarrierKind::Smpp => {
                let options = SmppOptions {
                    system_id: c.system_id.clone(),
                    password: c.password.reveal()?,
                    system_type: c.system_type.clone(),
                    window: c.window,
                    rate: c.rate,
                    ..SmppOptions::new(&c.name, &c.host, c.port)
                };
                served.push(serve(number, options));
            }
        }
    }
    Ok((served, simulator))
}

fn serve(id: CarrierId, options: SmppOptions) -> Served {
    let (name, window) = (options.name.clone(), usize::from(options.window));
    Served { id, name, carrier: Box::new(SmppCarrier::new(options)), window }
}

fn simulated_carrier(number: CarrierId, name: &str, at: SocketAddr) -> Served {
    let options = SmppOptions {
        system_id: name.to_owned(),
        window: SIMULATED_WINDOW,
        labelled: true,
        ..SmppOptions::new(name, &at.ip().to_string(), at.port())
    };
    serve(number, options)
}

/// A text, if there is one.
fn said(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|t| !t.trim().is_empty())
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
    let settings = Settings {
        routes: Routes::new(routes),
        rates,
        simulated,
        replies: Replies {
            stop: said(&config.optouts.stop_reply),
            start: said(&config.optouts.start_reply),
            help: said(&config.optouts.help_reply),
        },
        entrance: Entrance {
            open: config.accounts.sign_up == SignUp::Open,
            currency: config.accounts.currency.clone(),
            base_url: config.base_url()?,
            named: config.server.public_url.is_some(),
            mail: config.mail.smtp_url.is_some(),
        },
        reach: Reach::with(config.webhooks.allow_private.clone()),
        webhook_timeout: Duration::from_secs(config.webhooks.timeout_seconds),
        webhook_retention: Duration::from_secs(config.webhooks.retention_days * 86_400),
    };
    Ok((settings, numbers))
}
