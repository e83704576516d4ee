//! The sections of the configuration, with the default and the validation of every key.

use crate::config::secret::ConfigSecret;
use anyhow::{Context, bail};
use heliograph_carrier::smpp::command::status::{ESME_RINVBNDSTS, ESME_ROK};
use heliograph_carrier::smpp::status::{StatusMap, StatusMeaning};
use heliograph_domain::money::Amount;
use heliograph_store::SealingKey;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
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
            data_dir: "data".to_owned(),
        }
    }
}

impl ServerConfig {
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
        if let Some(url) = &self.server.public_url {
            return Ok(url.as_str().trim_end_matches('/').to_owned());
        }
        let scheme = if self.server.tls()?.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.server.listen))
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsConfig {
    /// Per API key; 0 means no limit.
    pub(crate) requests_per_second: u32,
    pub(crate) max_in_flight: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { requests_per_second: 1_000, max_in_flight: 4_096 }
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

impl CarrierConfig {
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
    pub(crate) account: String,
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
    pub(crate) retention_days: u64,
}

fn ranges<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<IpNet>, D::Error> {
    let read = |text: String| {
        let example = "use CIDR notation such as 10.1.0.0/16, or 10.1.2.3/32 for one address";
        let range: IpNet =
            text.parse().map_err(|_| format!("invalid address range '{text}': {example}"))?;
        let whole = range.trunc();
        if whole != range {
            return Err(format!(
                "address range '{text}' has host bits set: use {whole} for the whole range"
            ));
        }
        Ok(range)
    };
    let all = Vec::<String>::deserialize(d)?.into_iter().map(read);
    all.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self { timeout_seconds: 15, allow_private: Vec::new(), retention_days: 30 }
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
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { log: "info".to_owned(), format: LogFormat::Text }
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
        for c in &self.carriers {
            c.password.reveal().with_context(|| format!("carriers: password of '{}'", c.name))?;
        }
        Ok(())
    }
}
