//! The sections of the configuration: every key with its default, and what may stand in it.

use crate::config::secret::Secret;
use anyhow::{Context, bail};
use heliograph_domain::money::Amount;
use heliograph_store::SealingKey;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use url::Url;

/// The whole configuration. `config.default.toml` says what each key is for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) database: Database,
    pub(crate) accounts: Accounts,
    pub(crate) limits: Limits,
    pub(crate) carriers: Vec<CarrierConfig>,
    pub(crate) routes: Vec<RouteConfig>,
    pub(crate) numbers: Vec<NumberConfig>,
    pub(crate) optouts: Optouts,
    pub(crate) rates: RatesConfig,
    pub(crate) webhooks: Webhooks,
    pub(crate) mail: Mail,
    pub(crate) telemetry: Telemetry,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_url: Option<Url>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) behind_proxy: bool,
    pub(crate) data_dir: String,
}

impl Default for Server {
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

impl Server {
    /// The files of certificate and key, if HTTPS is to be spoken.
    pub(crate) fn tls(&self) -> anyhow::Result<Option<(&Path, &Path)>> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            (Some(_), None) => bail!(
                "server.tls_cert needs server.tls_key (--tls-key) beside it: the file with the certificate's private key"
            ),
            (None, Some(_)) => bail!(
                "server.tls_key needs server.tls_cert (--tls-cert) beside it: the file with the certificate"
            ),
        }
    }
}

impl Config {
    /// The address of the dashboard and the API, without a slash at its end.
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
pub(crate) struct Limits {
    /// Of each API key; 0 is no limit.
    pub(crate) requests_per_second: u32,
    pub(crate) max_in_flight: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests_per_second: 0, max_in_flight: 4_096 }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Database {
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "Secret::show_url")]
    pub(crate) url: Option<Secret>,
    pub(crate) connections: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sealing_key: Option<Secret>,
}

impl Default for Database {
    fn default() -> Self {
        Self { url: None, connections: 16, sealing_key: None }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Accounts {
    pub(crate) sign_up: SignUp,
    pub(crate) currency: String,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { sign_up: SignUp::Open, currency: "EUR".to_owned() }
    }
}

/// Whether anybody may open an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SignUp {
    Open,
    Closed,
}

/// Over whom mail goes out; nothing is sent without.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mail {
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "Secret::show_url")]
    pub(crate) smtp_url: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
}

impl Mail {
    /// The server and the sender, if mail is to be sent.
    pub(crate) fn route(&self) -> anyhow::Result<Option<(String, &str)>> {
        match (&self.smtp_url, &self.from) {
            (Some(url), Some(from)) => Ok(Some((url.reveal().context("mail.smtp_url")?, from))),
            (None, None) => Ok(None),
            (Some(_), None) => {
                bail!("mail.smtp_url needs mail.from beside it: the address that mail comes from")
            }
            (None, Some(_)) => {
                bail!("mail.from needs mail.smtp_url beside it: the server that takes mail")
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
    pub(crate) password: Secret,
    #[serde(default)]
    pub(crate) system_type: String,
    #[serde(default = "window")]
    pub(crate) window: u16,
    #[serde(default)]
    pub(crate) rate: u32,
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
    #[serde(deserialize_with = "amount", serialize_with = "in_words")]
    pub(crate) default: Amount,
    pub(crate) file: Option<PathBuf>,
}

fn amount<'de, D: Deserializer<'de>>(d: D) -> Result<Amount, D::Error> {
    String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
}

fn in_words<S: Serializer>(amount: &Amount, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&amount.to_string())
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NumberConfig {
    pub(crate) number: String,
    pub(crate) account: String,
}

/// What people are answered; nothing when it is empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Optouts {
    pub(crate) stop_reply: String,
    pub(crate) start_reply: String,
    pub(crate) help_reply: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Webhooks {
    pub(crate) timeout_seconds: u64,
    #[serde(deserialize_with = "ranges")]
    pub(crate) allow_private: Vec<IpNet>,
    pub(crate) retention_days: u64,
}

fn ranges<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<IpNet>, D::Error> {
    let read = |text: String| {
        let example = "write a range like 10.1.0.0/16, or 10.1.2.3/32 for one address";
        let range: IpNet = text.parse().map_err(|_| format!("'{text}' is no range: {example}"))?;
        let whole = range.trunc();
        if whole != range {
            return Err(format!(
                "'{text}' begins within a range: write {whole} if all of it is meant"
            ));
        }
        Ok(range)
    };
    let all = Vec::<String>::deserialize(d)?.into_iter().map(read);
    all.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

impl Default for Webhooks {
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
pub(crate) struct Telemetry {
    pub(crate) log: String,
    pub(crate) format: LogFormat,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { log: "info".to_owned(), format: LogFormat::Text }
    }
}

impl Config {
    /// Where the database is: by default a file in the data folder.
    pub(crate) fn database_url(&self) -> anyhow::Result<String> {
        match &self.database.url {
            Some(url) => url.reveal().context("database.url"),
            None => Ok(format!("sqlite:{}/heliograph.db", self.server.data_dir)),
        }
    }

    /// The key that seals secrets, where it is not left to the data folder.
    pub(crate) fn sealing_key(&self) -> anyhow::Result<Option<SealingKey>> {
        let Some(secret) = &self.database.sealing_key else { return Ok(None) };
        let key = SealingKey::parse(&secret.reveal().context("database.sealing_key")?);
        let wrong = "database.sealing_key must be 32 random bytes in base64, as 'openssl rand -base64 32' makes them";
        key.context(wrong).map(Some)
    }

    /// Refuses secrets that can't be had, before anything needs them.
    pub(crate) fn check_secrets(&self) -> anyhow::Result<()> {
        self.database_url()?;
        self.sealing_key()?;
        self.mail.route()?;
        for c in &self.carriers {
            c.password
                .reveal()
                .with_context(|| format!("carriers: the password of '{}'", c.name))?;
        }
        Ok(())
    }

    /// Refuses what can be read and makes no sense.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        if !(2..=1_000).contains(&self.database.connections) {
            bail!("database.connections must be from 2 to 1000");
        }
        if !(1..=1_000_000).contains(&self.limits.max_in_flight) {
            bail!("limits.max_in_flight must be from 1 to 1000000");
        }
        if let Some(url) = &self.server.public_url
            && !(["http", "https"].contains(&url.scheme())
                && url.path() == "/"
                && url.query().is_none())
        {
            bail!(
                "server.public_url must be an address without a path, like https://sms.example.com, not '{url}'"
            );
        }
        self.validate_carriers()?;
        self.validate_routes()?;
        self.validate_numbers()?;
        if !(1..=30).contains(&self.webhooks.timeout_seconds) {
            bail!("webhooks.timeout_seconds must be from 1 to 30");
        }
        if !(6..=3_650).contains(&self.webhooks.retention_days) {
            bail!(
                "webhooks.retention_days must be from 6 to 3650: an endpoint is given five days to recover"
            );
        }
        let currency = &self.accounts.currency;
        if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_uppercase()) {
            bail!("accounts.currency must be three capital letters, like EUR, not '{currency}'");
        }
        if self.rates.default < Amount::ZERO {
            bail!("rates.default can't be negative");
        }
        Ok(())
    }

    fn validate_carriers(&self) -> anyhow::Result<()> {
        for c in &self.carriers {
            if c.name.is_empty() || c.name.len() > 64 || c.name.chars().any(char::is_control) {
                bail!("carriers: each needs a name, of at most 64 bytes; '{}' is none", c.name);
            }
            if c.name == heliograph_domain::carrier::SIMULATED {
                bail!("carriers: the name '{}' is taken by the carrier of test messages", c.name);
            }
            if self.carriers.iter().filter(|d| d.name == c.name).count() > 1 {
                bail!("carriers: the name '{}' stands there twice", c.name);
            }
            if c.kind == CarrierKind::Smpp && c.host.is_empty() {
                bail!("carriers: '{}' needs a host", c.name);
            }
            if c.window == 0 {
                bail!("carriers: the window of '{}' must be at least 1", c.name);
            }
        }
        Ok(())
    }

    fn validate_routes(&self) -> anyhow::Result<()> {
        for r in &self.routes {
            if !r.prefix.bytes().all(|b| b.is_ascii_digit()) {
                bail!("routes: the prefix '{}' must be digits, without a plus", r.prefix);
            }
            if self.routes.iter().filter(|s| s.prefix == r.prefix).count() > 1 {
                bail!("routes: prefix '{}' stands there twice", r.prefix);
            }
            if r.carriers.is_empty() {
                bail!("routes: prefix '{}' names no carrier", r.prefix);
            }
        }
        Ok(())
    }

    fn validate_numbers(&self) -> anyhow::Result<()> {
        for n in &self.numbers {
            let digits = n.number.bytes().all(|b| b.is_ascii_digit());
            if !digits || !(3..=15).contains(&n.number.len()) {
                bail!("numbers: '{}' must be 3 to 15 digits, without a plus", n.number);
            }
            if self.numbers.iter().filter(|m| m.number == n.number).count() > 1 {
                bail!("numbers: '{}' stands there twice", n.number);
            }
        }
        Ok(())
    }
}
