//! Assesses a configuration before the service goes live: combinations that would lose money or
//! expose the service are refused by name, risky ones are warned about.

use crate::config::{CarrierKind, Config, SignUp};
use crate::rates;
use heliograph_domain::rate::Rates;

/// The findings about a configuration.
#[derive(Debug, Default)]
pub(crate) struct Assessment {
    /// The reasons why the service does not start.
    pub(crate) errors: Vec<String>,
    /// The risks that the operator should remove or accept.
    pub(crate) warnings: Vec<String>,
}

/// Assesses a configuration.
pub(crate) fn assess(config: &Config) -> anyhow::Result<Assessment> {
    let mut found = Assessment::default();
    let file = config.rates.file.as_deref();
    let rates = rates::load(config.rates.default, file, &config.accounts.currency)?;
    if config.carriers.iter().any(|carrier| carrier.kind == CarrierKind::Smpp) {
        assess_live(config, &rates, &mut found);
    }
    assess_network(config, &mut found);
    assess_mail(config, &mut found);
    Ok(found)
}

/// Assesses the risks of an installation whose messages reach real phones and cost money.
fn assess_live(config: &Config, rates: &Rates, found: &mut Assessment) {
    let open = config.accounts.sign_up == SignUp::Open;
    if open && rates.has_free() {
        found.errors.push(
            "accounts.sign_up is open, and some live messages are free (a price of 0 in rates.default or rates.file): \
             any stranger could send at your expense. Set prices above 0, or accounts.sign_up = \"closed\"."
                .to_owned(),
        );
    }
    if rates.is_empty() {
        found.warnings.push(
            "There are no prices, so every live message is refused (destination_not_allowed). Set rates.default or \
             rates.file."
                .to_owned(),
        );
    }
    if open && config.mail.smtp_url.is_none() {
        found.warnings.push(
            "accounts.sign_up is open without a mail server, so email addresses of new accounts are never verified. \
             Configure [mail], or set accounts.sign_up = \"closed\" and create accounts with 'heliograph account create'."
                .to_owned(),
        );
    }
    if config.limits.requests_per_second == 0 {
        found.warnings.push(
            "limits.requests_per_second is 0, so one API key can use the whole capacity. Set a limit.".to_owned(),
        );
    }
    if config.database.sealing_key.is_none() {
        found.warnings.push(format!(
            "The sealing key is stored next to the database, in {}: anyone who copies the directory can decrypt all \
             secrets. Set database.sealing_key = {{ file = \"PATH\" }}, and keep a copy outside of your backups.",
            config.server.data_dir
        ));
    }
}

fn assess_network(config: &Config, found: &mut Assessment) {
    for range in config.webhooks.allow_private.iter().filter(|range| range.prefix_len() < 8) {
        found.warnings.push(format!(
            "webhooks.allow_private contains {range}, which is most of the internet or more: webhooks could reach \
             services inside your network. Name only the networks of your own receivers."
        ));
    }
    let proxies = config.server.proxies().iter().filter(|range| !range.addr().is_loopback());
    for range in proxies.filter(|range| range.prefix_len() < 8) {
        found.warnings.push(format!(
            "server.trusted_proxies contains {range}, which is most of the internet or more: clients there could \
             forge their address. Name only your own proxies."
        ));
    }
    let metrics = config.telemetry.metrics_listen.filter(|address| !address.ip().is_loopback());
    if let Some(address) = metrics.filter(|_| config.telemetry.metrics_token.is_none()) {
        found.warnings.push(format!(
            "telemetry.metrics_listen is {address} without telemetry.metrics_token: everybody who reaches the address \
             can read names of carriers and volumes. Set a token, or use an address of a private network."
        ));
    }
}

fn assess_mail(config: &Config, found: &mut Assessment) {
    if config.mail.smtp_url.is_some() && config.server.public_url.is_none() {
        found.errors.push(
            "[mail] is configured without server.public_url, so links in mails would point to the listen address. Set \
             server.public_url to the address that browsers use, such as https://sms.example.com."
                .to_owned(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const CARRIER: &str = "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = 'p'\n";

    fn findings(text: &str) -> (String, String) {
        let found = assess(&config::read_text(text).unwrap()).unwrap();
        (found.errors.join("\n"), found.warnings.join("\n"))
    }

    #[test]
    fn a_trial_without_a_carrier_has_no_findings() {
        assert_eq!(findings(""), (String::new(), String::new()));
        let simulated = CARRIER.replace("smpp", "simulated");
        assert_eq!(findings(&simulated), (String::new(), String::new()));
    }

    #[test]
    fn free_messages_and_open_sign_up_are_refused_together() {
        let free = format!("{CARRIER}[rates]\ndefault = '0'");
        let closed = format!("{free}\n[accounts]\nsign_up = 'closed'");
        let priced = format!("{CARRIER}[rates]\ndefault = '0.01'");
        for (text, refused) in [(free, true), (closed, false), (priced, false)] {
            let (errors, _) = findings(&text);
            assert_eq!(errors.contains("any stranger could send"), refused, "{text}");
        }
    }

    #[test]
    fn each_risk_has_a_warning() {
        let risky = format!(
            "{CARRIER}[limits]\nrequests_per_second = 0\n[webhooks]\nallow_private = ['0.0.0.0/0']\n\
             [server]\nbehind_proxy = true\ntrusted_proxies = ['::/0']\n\
             [telemetry]\nmetrics_listen = '0.0.0.0:9000'"
        );
        let (errors, warnings) = findings(&risky);
        assert_eq!(errors, "");
        for about in [
            "no prices",
            "mail server",
            "requests_per_second",
            "sealing key",
            "0.0.0.0/0",
            "trusted_proxies contains ::/0",
            "metrics_listen is 0.0.0.0:9000",
        ] {
            assert!(warnings.contains(about), "{about} is missing: {warnings}");
        }
        let safe = format!(
            "{CARRIER}[accounts]\nsign_up = 'closed'\n[rates]\ndefault = '0.01'\n\
             [database]\nsealing_key = {{ env = 'KEY' }}"
        );
        assert_eq!(findings(&safe), (String::new(), String::new()));
    }

    #[test]
    fn mail_needs_a_public_url() {
        let mail = "[mail]\nsmtp_url = 'smtps://u:p@h'\nfrom = 'a@example.com'\n";
        assert!(findings(mail).0.contains("server.public_url"));
        let with_url = format!("{mail}[server]\npublic_url = 'https://sms.example.com'");
        assert_eq!(findings(&with_url).0, "");
    }
}
