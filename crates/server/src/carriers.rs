//! The configured carriers and routes, and the settings built from the configuration.

use crate::config::{CarrierKind, Config, SignUp};
use crate::rates;
use crate::serve_args::NodeRole;
use crate::system::SystemClock;
use anyhow::{Context as _, bail};
use heliograph_carrier::smpp::bind::SmppCarrier;
use heliograph_carrier::smpp::options::SmppOptions;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_carrier::smsc::server;
use heliograph_carrier::smsc::simulator::Simulator;
use heliograph_domain::carrier::{Route, RoutingTable, SIMULATED};
use heliograph_domain::egress_policy::EgressPolicy;
use heliograph_domain::fields::MessageText;
use heliograph_domain::id::CarrierId;
use heliograph_engine::ConfiguredCarrier;
use heliograph_service::identity::accounts;
use heliograph_service::kernel::context::{
    Context, KeywordReplies, NumberOwners, Settings, SignUpSettings,
};
use heliograph_service::messaging::dispatch;
use heliograph_service::operations::nodes;
use heliograph_store::Db;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The window of the simulated carrier, in parts; the simulated SMSC responds at once.
const SIMULATED_WINDOW: u16 = 200;

/// Checks the configuration against the database before the node starts. Missing secrets and a
/// currency that differs from that of an account are errors; a node role or a carrier name that
/// would leave messages in the queue is a warning.
pub(crate) async fn preflight(
    context: &Context,
    config: &Config,
    roles: &[NodeRole],
) -> anyhow::Result<()> {
    config.check_secrets()?;
    let currency = &config.accounts.currency;
    for a in accounts::list(context).await? {
        if a.currency != *currency {
            bail!(
                "accounts.currency is {currency}, but account {} uses {}; all accounts must use one currency",
                a.name,
                a.currency
            );
        }
    }
    if !roles.contains(&NodeRole::Engine) && !context.db.is_shared() {
        tracing::warn!(
            "messages will not be sent: this node has no engine role, and SQLite supports only one node"
        );
    }
    let known = |name: &str| name == SIMULATED || config.carriers.iter().any(|c| c.name == name);
    for (name, messages) in dispatch::waiting(context).await? {
        if messages > 0 && !known(&name) {
            tracing::warn!(
                carrier = name,
                messages,
                "messages are queued for a carrier that is not configured in [[carriers]]"
            );
        }
    }
    Ok(())
}

/// Starts the simulated SMSC inside this process and returns it with all carriers, the simulated
/// one included.
pub(crate) async fn start(
    context: &Context,
    config: &Config,
    numbers: Vec<CarrierId>,
    background: &mut JoinSet<()>,
) -> anyhow::Result<(Vec<ConfiguredCarrier>, Simulator)> {
    let mut carriers: Vec<ConfiguredCarrier> = Vec::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let at = listener.local_addr()?;
    let simulator = Simulator::new(SmscOptions::default(), Arc::new(SystemClock))?;
    let smsc = simulator.clone();
    background.spawn(async move {
        let (_stop, stopped) = watch::channel(false);
        server::serve(listener, smsc, stopped).await;
    });
    let simulated = context.settings().simulated;
    carriers.push(simulated_carrier(simulated, SIMULATED, at));
    for (number, c) in numbers.into_iter().zip(&config.carriers) {
        match c.kind {
            CarrierKind::Simulated => carriers.push(simulated_carrier(number, &c.name, at)),
            CarrierKind::Smpp => {
                let options = SmppOptions {
                    system_id: c.system_id.clone(),
                    password: c.password.reveal()?,
                    system_type: c.system_type.clone(),
                    window: c.window,
                    rate: c.rate,
                    status_map: c.status_map()?,
                    receipts: c.receipts(),
                    ..SmppOptions::new(&c.name, &c.host, c.port)
                };
                carriers.push(smpp_carrier(number, options));
            }
        }
    }
    Ok((carriers, simulator))
}

fn smpp_carrier(id: CarrierId, options: SmppOptions) -> ConfiguredCarrier {
    let (name, window, receipts) =
        (options.name.clone(), usize::from(options.window), options.receipts);
    ConfiguredCarrier { id, name, carrier: Box::new(SmppCarrier::new(options)), window, receipts }
}

fn simulated_carrier(number: CarrierId, name: &str, at: SocketAddr) -> ConfiguredCarrier {
    let options = SmppOptions {
        system_id: name.to_owned(),
        window: SIMULATED_WINDOW,
        labelled: true,
        ..SmppOptions::new(name, &at.ip().to_string(), at.port())
    };
    smpp_carrier(number, options)
}

/// Returns the reply to a keyword, or `None` if it is blank.
fn keyword_reply(text: &str) -> anyhow::Result<Option<MessageText>> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).context("optouts: invalid reply")
}

/// Builds the settings of the service layer and looks up the ids of the configured carriers.
pub(crate) async fn settings(
    db: &Db,
    config: &Config,
) -> anyhow::Result<(Settings, Vec<CarrierId>)> {
    let names: Vec<String> = config.carriers.iter().map(|c| c.name.clone()).collect();
    let (numbers, simulated) = nodes::carrier_ids(db, &names).await?;
    let number = |name: &String| {
        let at = names.iter().position(|n| n == name)?;
        numbers.get(at).copied()
    };
    let mut routes = Vec::new();
    for route in &config.routes {
        let carriers: Option<Vec<CarrierId>> = route.carriers.iter().map(number).collect();
        let carriers = carriers.with_context(|| {
            format!(
                "routes: prefix '{}' names a carrier that is not configured in [[carriers]]",
                route.prefix
            )
        })?;
        routes.push(Route { prefix: route.prefix.clone(), carriers });
    }
    let rates =
        rates::load(config.rates.default, config.rates.file.as_deref(), &config.accounts.currency)?;
    let settings = Settings {
        routes: RoutingTable::new(routes),
        rates,
        simulated,
        // Read after the configured numbers are assigned.
        number_owners: NumberOwners::default(),
        keyword_replies: KeywordReplies {
            stop: keyword_reply(&config.optouts.stop_reply)?,
            start: keyword_reply(&config.optouts.start_reply)?,
            help: keyword_reply(&config.optouts.help_reply)?,
        },
        sign_up: SignUpSettings {
            enabled: config.accounts.sign_up == SignUp::Open,
            currency: config.accounts.currency.clone(),
            base_url: config.base_url()?,
            base_url_configured: config.server.public_url.is_some(),
            mail_enabled: config.mail.smtp_url.is_some(),
        },
        live_carriers: config.carriers.iter().any(|c| c.kind == CarrierKind::Smpp),
        operator_two_factor: config.accounts.operator_two_factor,
        egress_policy: EgressPolicy::allowing(config.webhooks.allow_private.clone())
            .with_ports(config.webhooks.ports.clone()),
        webhook_timeout: Duration::from_secs(config.webhooks.timeout_seconds),
        webhook_retention: days(config.webhooks.retention_days),
        test_message_retention: Some(config.retention.test_messages_days)
            .filter(|n| *n > 0)
            .map(days),
        live_message_retention: Some(config.retention.live_messages_days)
            .filter(|n| *n > 0)
            .map(days),
    };
    Ok((settings, numbers))
}

const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 86_400)
}
