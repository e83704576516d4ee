//! Validates ranges, uniqueness and dependencies between keys of the configuration.

use crate::config::secret::ConfigSecret;
use crate::config::{CarrierKind, Config, OptoutsConfig};
use anyhow::bail;
use heliograph_domain::money::Amount;
use heliograph_domain::text;
use heliograph_domain::wording::limits;

impl Config {
    /// Validates ranges, uniqueness and dependencies between keys.
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
                "server.public_url must be an http(s) URL without a path, such as https://sms.example.com, not '{url}'"
            );
        }
        if let Some(ConfigSecret::Plain(token)) = &self.telemetry.metrics_token
            && token.len() < 16
        {
            bail!("telemetry.metrics_token must have at least 16 characters");
        }
        self.validate_carriers()?;
        self.validate_routes()?;
        self.validate_numbers()?;
        self.validate_replies()?;
        if !(1..=30).contains(&self.webhooks.timeout_seconds) {
            bail!("webhooks.timeout_seconds must be from 1 to 30");
        }
        if !(6..=3_650).contains(&self.webhooks.retention_days) {
            bail!(
                "webhooks.retention_days must be from 6 to 3650; failing endpoints are retried for five days before they are disabled"
            );
        }
        self.validate_retention()?;
        let currency = &self.accounts.currency;
        if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_uppercase()) {
            bail!("accounts.currency must be three capital letters, such as EUR, not '{currency}'");
        }
        if self.rates.default.is_some_and(|price| price < Amount::ZERO) {
            bail!("rates.default must not be negative");
        }
        Ok(())
    }

    /// A message is kept longer than its webhook events, which refer to it and may follow it by the
    /// days for which a message is valid and its receipt may come.
    fn validate_retention(&self) -> anyhow::Result<()> {
        let least = self.webhooks.retention_days + 4;
        for (key, days) in [
            ("test_messages_days", self.retention.test_messages_days),
            ("live_messages_days", self.retention.live_messages_days),
        ] {
            if days != 0 && !(least..=36_500).contains(&days) {
                bail!(
                    "retention.{key} must be 0, or from {least} to 36500: a message is kept 4 days longer than its \
                     webhook events (webhooks.retention_days)"
                );
            }
        }
        Ok(())
    }

    fn validate_carriers(&self) -> anyhow::Result<()> {
        for c in &self.carriers {
            if c.name.is_empty() || c.name.len() > 64 || c.name.chars().any(char::is_control) {
                bail!(
                    "carriers: each carrier needs a name of 1 to 64 bytes without control characters, not '{}'",
                    c.name
                );
            }
            if c.name == heliograph_domain::carrier::SIMULATED {
                bail!(
                    "carriers: the name '{}' is reserved for the carrier of test messages",
                    c.name
                );
            }
            if self.carriers.iter().filter(|d| d.name == c.name).count() > 1 {
                bail!("carriers: duplicate name '{}'", c.name);
            }
            if c.kind == CarrierKind::Smpp && c.host.is_empty() {
                bail!("carriers: '{}' needs a host", c.name);
            }
            // The longest values that fit into a bind (SMPP 3.4 §4.1.5).
            for (key, text, longest) in
                [("system_id", &c.system_id, 15), ("system_type", &c.system_type, 12)]
            {
                if text.len() > longest || text.chars().any(char::is_control) {
                    bail!(
                        "carriers: the {key} of '{}' must have at most {longest} bytes, without control characters",
                        c.name
                    );
                }
            }
            c.status_map()?;
            if c.window == 0 {
                bail!("carriers: the window of '{}' must be at least 1", c.name);
            }
        }
        Ok(())
    }

    /// Rejects replies to keywords that could not be sent.
    fn validate_replies(&self) -> anyhow::Result<()> {
        let OptoutsConfig { stop_reply, start_reply, help_reply } = &self.optouts;
        for (key, text) in
            [("stop_reply", stop_reply), ("start_reply", start_reply), ("help_reply", help_reply)]
        {
            let parts = text::measure(text).parts;
            if parts > text::MAX_PARTS {
                bail!("optouts.{key}: {}", limits::message_parts(parts, text::MAX_PARTS));
            }
            if text.contains('\0') {
                bail!("optouts.{key} must not contain the character NUL");
            }
        }
        Ok(())
    }

    fn validate_routes(&self) -> anyhow::Result<()> {
        for r in &self.routes {
            if !r.prefix.bytes().all(|b| b.is_ascii_digit()) {
                bail!(
                    "routes: prefix '{}' must contain only digits, without a plus sign",
                    r.prefix
                );
            }
            if self.routes.iter().filter(|s| s.prefix == r.prefix).count() > 1 {
                bail!("routes: duplicate prefix '{}'", r.prefix);
            }
            if r.carriers.is_empty() {
                bail!("routes: prefix '{}' has no carriers", r.prefix);
            }
        }
        Ok(())
    }

    fn validate_numbers(&self) -> anyhow::Result<()> {
        for n in &self.numbers {
            let digits = n.number.bytes().all(|b| b.is_ascii_digit());
            if !digits || !(3..=15).contains(&n.number.len()) {
                bail!("numbers: '{}' must be 3 to 15 digits, without a plus sign", n.number);
            }
            if self.numbers.iter().filter(|m| m.number == n.number).count() > 1 {
                bail!("numbers: duplicate number '{}'", n.number);
            }
        }
        Ok(())
    }
}
