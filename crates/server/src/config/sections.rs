//! The sections of the configuration, with the default and the validation of every key.

use crate::config::secret::ConfigSecret;
use anyhow::{Context, bail};
use heliograph_carrier::smpp::command::status::{ESME_RINVBNDSTS, ESME_ROK};
use heliograph_carrier::smpp::status::{StatusMap, StatusMeaning};
use heliograph_domain::account_limit::{AccountLimit, AccountLimits};
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::egress_policy::{EgressPolicy, PortRange};
use heliograph_domain::money::Amount;
use heliograph_store::SealingKey;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use url::Url;

/// The whole configuration; `config.default.toml` describes each key.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) server: ServerConfig,
    pub(crate) database: DatabaseConfig,
    pub(crate) accounts: AccountsConfig,
    pub(crate) limits: LimitsConfig,
    pub(crate) carriers: Vec<CarrierConfig>,
    pub(crate) routes: Vec<RouteConfig>,
    pub(crate) numbers: Vec<NumberConfig>,
    pub(crate) optouts: OptoutsConfig,
    pub(crate) rates: RatesConfig,
    pub(crate) webhooks: WebhooksConfig,
    pub(crate) retention: RetentionConfig,
    pub(crate) mail: MailConfig,
    pub(crate) telemetry: TelemetryConfig,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerConfig {
    pub(crate) listen: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_url: Option<Url>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) behind_proxy: bool,
    #[serde(deserialize_with = "addresses")]
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) data_dir: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
        let (public_url, tls_cert, tls_key) = (None, None, None);
        Self {
            listen,
            public_url,
            tls_cert,
            tls_key,
            behind_proxy: false,
            trusted_proxies: vec![LOOPBACK_V4.into(), LOOPBACK_V6.into()],
            data_dir: "data".to_owned(),
        }
    }
}

/// The addresses of the local machine.
const LOOPBACK_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
const LOOPBACK_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128);

/// Reads networks, and single addresses.
fn addresses<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<IpNet>, D::Error> {
    let read = |text: String| match text.parse::<IpAddr>() {
        Ok(address) => Ok(IpNet::from(address)),
        Err(_) => range(&text, "use an address, or CIDR notation such as 10.1.0.0/16"),
    };
    let all = Vec::<String>::deserialize(d)?.into_iter().map(read);
    all.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

impl ServerConfig {
    /// Returns the proxies whose headers are trusted.
    pub(crate) fn proxies(&self) -> &[IpNet] {
        if self.behind_proxy { &self.trusted_proxies } else { &[] }
    }

    /// Returns `public_url` without a trailing slash; empty if it is not set.
    pub(crate) fn public_base_url(&self) -> String {
        let url = self.public_url.as_ref().map(Url::as_str).unwrap_or_default();
        url.trim_end_matches('/').to_owned()
    }

    /// Returns the certificate and key files, if HTTPS is configured.
    pub(crate) fn tls(&self) -> anyhow::Result<Option<(&Path, &Path)>> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            (Some(_), None) => bail!(
                "server.tls_cert requires server.tls_key (--tls-key), the file with the private key"
            ),
            (None, Some(_)) => bail!(
                "server.tls_key requires server.tls_cert (--tls-cert), the file with the certificate"
            ),
        }
    }
}

impl Config {
    /// Returns the base URL of the dashboard and the API, without a trailing slash.
    pub(crate) fn base_url(&self) -> anyhow::Result<String> {
        if self.server.public_url.is_some() {
            return Ok(self.server.public_base_url());
        }
        let scheme = if self.server.tls()?.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.server.listen))
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsConfig {
    pub(crate) max_in_flight: u32,
    pub(crate) requests_per_second: u32,
    pub(crate) event_streams: u32,
    pub(crate) webhook_endpoints: u32,
    pub(crate) test_messages_per_day: u32,
    pub(crate) invitations_per_day: u32,
    pub(crate) mails_per_day: u32,
    pub(crate) stored_rows: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let limits = AccountLimits::default();
        Self {
            max_in_flight: 4_096,
            requests_per_second: limits.get(AccountLimit::RequestsPerSecond),
            event_streams: limits.get(AccountLimit::EventStreams),
            webhook_endpoints: limits.get(AccountLimit::WebhookEndpoints),
            test_messages_per_day: limits.get(AccountLimit::TestMessagesPerDay),
            invitations_per_day: limits.get(AccountLimit::InvitationsPerDay),
            mails_per_day: limits.get(AccountLimit::MailsPerDay),
            stored_rows: limits.get(AccountLimit::StoredRows),
        }
    }
}

impl LimitsConfig {
    /// Returns the defaults of the limits of accounts.
    pub(crate) fn account_limits(&self) -> AccountLimits {
        AccountLimits::new(|limit| match limit {
            AccountLimit::RequestsPerSecond => self.requests_per_second,
            AccountLimit::EventStreams => self.event_streams,
            AccountLimit::WebhookEndpoints => self.webhook_endpoints,
            AccountLimit::TestMessagesPerDay => self.test_messages_per_day,
            AccountLimit::InvitationsPerDay => self.invitations_per_day,
            AccountLimit::MailsPerDay => self.mails_per_day,
            AccountLimit::StoredRows => self.stored_rows,
        })
    }
}

/// The days for which messages are kept; 0 keeps them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RetentionConfig {
    pub(crate) test_messages_days: u64,
    pub(crate) live_messages_days: u64,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { test_messages_days: 35, live_messages_days: 0 }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DatabaseConfig {
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "ConfigSecret::show_url")]
    pub(crate) url: Option<ConfigSecret>,
    pub(crate) connections: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sealing_key: Option<ConfigSecret>,
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self { url: None, connections: 16, sealing_key: None }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AccountsConfig {
    pub(crate) sign_up: SignUp,
    pub(crate) currency: String,
    pub(crate) operator_two_factor: bool,
}

impl Default for AccountsConfig {
    fn default() -> Self {
        Self { sign_up: SignUp::Open, currency: "EUR".to_owned(), operator_two_factor: false }
    }
}

/// Self-service sign-up: open to anyone, or closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SignUp {
    Open,
    Closed,
}

/// The mail server; without it no mail is sent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MailConfig {
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "ConfigSecret::show_url")]
    pub(crate) smtp_url: Option<ConfigSecret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
}

impl MailConfig {
    /// Returns the URL of the mail server and the sender address, if mail is configured.
    pub(crate) fn transport(&self) -> anyhow::Result<Option<(String, &str)>> {
        match (&self.smtp_url, &self.from) {
            (Some(url), Some(from)) => Ok(Some((url.reveal().context("mail.smtp_url")?, from))),
            (None, None) => Ok(None),
            (Some(_), None) => {
                bail!("mail.smtp_url requires mail.from, the sender address")
            }
            (None, Some(_)) => {
                bail!("mail.from requires mail.smtp_url, the mail server")
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CarrierKind {
    Smpp,
    Simulated,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CarrierConfig {
    pub(crate) name: String,
    pub(crate) kind: CarrierKind,
    #[serde(default)]
    pub(crate) host: String,
    #[serde(default = "smpp_port")]
    pub(crate) port: u16,
    #[serde(default)]
    pub(crate) system_id: String,
    #[serde(default)]
    pub(crate) password: ConfigSecret,
    #[serde(default)]
    pub(crate) system_type: String,
    #[serde(default = "window")]
    pub(crate) window: u16,
    #[serde(default)]
    pub(crate) rate: u32,
    #[serde(default)]
    receipts: CarrierReceipts,
    #[serde(default)]
    status_map: BTreeMap<String, CarrierStatus>,
}

/// The meaning of a command_status of a carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum CarrierStatus {
    Temporary,
    Permanent,
    Throttled,
}

/// The delivery receipts of a carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum CarrierReceipts {
    #[default]
    All,
    First,
    Last,
    None,
}

impl CarrierConfig {
    /// Returns the receipts that the carrier sends for a message of several parts.
    pub(crate) const fn receipts(&self) -> ReceiptPolicy {
        match self.receipts {
            CarrierReceipts::All => ReceiptPolicy::All,
            CarrierReceipts::First => ReceiptPolicy::First,
            CarrierReceipts::Last => ReceiptPolicy::Last,
            CarrierReceipts::None => ReceiptPolicy::None,
        }
    }

    /// Returns the meaning of the statuses that the carrier uses differently.
    pub(crate) fn status_map(&self) -> anyhow::Result<StatusMap> {
        let read = |(key, status): (&String, &CarrierStatus)| {
            let number = key.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok());
            let Some(number) = number else {
                bail!(
                    "carriers: status_map of '{}': '{key}' must be a hexadecimal command_status, such as \"0x61\"",
                    self.name
                );
            };
            if [ESME_ROK, ESME_RINVBNDSTS].contains(&number) {
                bail!("carriers: status_map of '{}': the meaning of '{key}' is fixed", self.name);
            }
            let meaning = match status {
                CarrierStatus::Temporary => StatusMeaning::Temporary,
                CarrierStatus::Permanent => StatusMeaning::Permanent,
                CarrierStatus::Throttled => StatusMeaning::Throttled,
            };
            Ok((number, meaning))
        };
        self.status_map.iter().map(read).collect()
    }
}

const fn smpp_port() -> u16 {
    2775
}

const fn window() -> u16 {
    10
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteConfig {
    pub(crate) prefix: String,
    pub(crate) carriers: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RatesConfig {
    #[serde(
        deserialize_with = "amount",
        serialize_with = "in_words",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) default: Option<Amount>,
    pub(crate) file: Option<PathBuf>,
}

fn amount<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Amount>, D::Error> {
    String::deserialize(d)?.parse().map(Some).map_err(serde::de::Error::custom)
}

fn in_words<S: Serializer>(amount: &Option<Amount>, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(&amount.unwrap_or_default())
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NumberConfig {
    pub(crate) number: String,
    #[serde(deserialize_with = "account", serialize_with = "account_text")]
    pub(crate) account: AccountRef,
}

/// The ID of an account may be written as a number or as text.
fn account<'de, D: Deserializer<'de>>(d: D) -> Result<AccountRef, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Id(u32),
        Text(String),
    }
    let text = match Written::deserialize(d)? {
        Written::Id(id) => id.to_string(),
        Written::Text(text) => text,
    };
    text.parse().map_err(serde::de::Error::custom)
}

fn account_text<S: Serializer>(account: &AccountRef, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(account)
}

/// The automatic replies to keywords; an empty text sends nothing.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OptoutsConfig {
    pub(crate) stop_reply: String,
    pub(crate) start_reply: String,
    pub(crate) help_reply: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WebhooksConfig {
    pub(crate) timeout_seconds: u64,
    #[serde(deserialize_with = "ranges")]
    pub(crate) allow_private: Vec<IpNet>,
    #[serde(deserialize_with = "ports", serialize_with = "port_texts")]
    pub(crate) ports: Vec<PortRange>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) dns_servers: Vec<SocketAddr>,
    pub(crate) retention_days: u64,
}

fn ports<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<PortRange>, D::Error> {
    let read = |text: String| text.parse::<PortRange>().map_err(|e| format!("'{text}': {e}"));
    let all = Vec::<String>::deserialize(d)?.into_iter().map(read);
    all.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

fn port_texts<S: Serializer>(ports: &[PortRange], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(ports.iter().map(ToString::to_string))
}

fn ranges<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<IpNet>, D::Error> {
    let example = "use CIDR notation such as 10.1.0.0/16, or 10.1.2.3/32 for one address";
    let read = |text: String| range(&text, example);
    let all = Vec::<String>::deserialize(d)?.into_iter().map(read);
    all.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

/// Reads a network.
fn range(text: &str, example: &str) -> Result<IpNet, String> {
    let range: IpNet =
        text.parse().map_err(|_| format!("invalid address range '{text}': {example}"))?;
    let whole = range.trunc();
    if whole != range {
        return Err(format!(
            "address range '{text}' has host bits set: use {whole} for the whole range"
        ));
    }
    Ok(range)
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self {
            timeout_seconds: 15,
            allow_private: Vec::new(),
            ports: EgressPolicy::DEFAULT_PORTS.into(),
            ca_file: None,
            dns_servers: Vec::new(),
            retention_days: 30,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TelemetryConfig {
    pub(crate) log: String,
    pub(crate) format: LogFormat,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics_token: Option<ConfigSecret>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        let (metrics_listen, metrics_token) = (None, None);
        Self { log: "info".to_owned(), format: LogFormat::Text, metrics_listen, metrics_token }
    }
}

impl Config {
    /// Returns the database URL; the default is a SQLite file in the data directory.
    pub(crate) fn database_url(&self) -> anyhow::Result<String> {
        match &self.database.url {
            Some(url) => url.reveal().context("database.url"),
            None => Ok(format!("sqlite:{}/heliograph.db", self.server.data_dir)),
        }
    }

    /// Returns the configured sealing key; `None` means the key file in the data directory.
    pub(crate) fn sealing_key(&self) -> anyhow::Result<Option<SealingKey>> {
        let Some(secret) = &self.database.sealing_key else { return Ok(None) };
        let key = SealingKey::parse(&secret.reveal().context("database.sealing_key")?);
        let wrong = "database.sealing_key must be 32 random bytes in base64; generate one with 'openssl rand -base64 32'";
        key.context(wrong).map(Some)
    }

    /// Checks at startup that all secrets can be read.
    pub(crate) fn check_secrets(&self) -> anyhow::Result<()> {
        self.database_url()?;
        self.sealing_key()?;
        self.mail.transport()?;
        self.telemetry.metrics_token.as_ref().map(ConfigSecret::reveal).transpose()?;
        for c in &self.carriers {
            c.password.reveal().with_context(|| format!("carriers: password of '{}'", c.name))?;
        }
        Ok(())
    }
}
