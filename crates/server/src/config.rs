//! Loads the configuration from a TOML file and environment variables; an unknown key is an error.

mod secret;
mod sections;
mod show;
mod validation;

use anyhow::{Context, bail};
pub(crate) use sections::{
    CarrierKind, Config, LogFormat, NumberConfig, OptoutsConfig, SignUp, TelemetryConfig,
};
pub(crate) use show::{json, toml};
use std::collections::HashMap;
use std::path::Path;
use toml::{Table, Value};

/// The configuration file used without `--config`, if it exists.
const DEFAULT_FILE: &str = "heliograph.toml";
const ENV_PREFIX: &str = "HELIOGRAPH_";
/// The prefix of the variables that only tests read.
const TEST_PREFIX: &str = "HELIOGRAPH_TEST_";
/// The origin of a default value.
const DEFAULT: &str = "default";

/// The type of a key, which determines how its environment variable is parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
    /// A comma-separated list of strings.
    List,
}

/// The keys of all sections that occur once.
const KEYS: &[(&str, &str, Kind)] = &[
    ("server", "listen", Kind::Text),
    ("server", "public_url", Kind::Text),
    ("server", "tls_cert", Kind::Text),
    ("server", "tls_key", Kind::Text),
    ("server", "behind_proxy", Kind::Flag),
    ("server", "trusted_proxies", Kind::List),
    ("server", "data_dir", Kind::Text),
    ("database", "url", Kind::Text),
    ("database", "connections", Kind::Number),
    ("database", "sealing_key", Kind::Text),
    ("accounts", "sign_up", Kind::Text),
    ("accounts", "currency", Kind::Text),
    ("accounts", "operator_two_factor", Kind::Flag),
    ("limits", "max_in_flight", Kind::Number),
    ("limits", "requests_per_second", Kind::Number),
    ("limits", "event_streams", Kind::Number),
    ("limits", "webhook_endpoints", Kind::Number),
    ("limits", "test_messages_per_day", Kind::Number),
    ("limits", "invitations_per_day", Kind::Number),
    ("limits", "mails_per_day", Kind::Number),
    ("limits", "stored_rows", Kind::Number),
    ("rates", "default", Kind::Text),
    ("rates", "file", Kind::Text),
    ("optouts", "stop_reply", Kind::Text),
    ("optouts", "start_reply", Kind::Text),
    ("optouts", "help_reply", Kind::Text),
    ("webhooks", "timeout_seconds", Kind::Number),
    ("webhooks", "allow_private", Kind::List),
    ("webhooks", "ports", Kind::List),
    ("webhooks", "ca_file", Kind::Text),
    ("webhooks", "dns_servers", Kind::List),
    ("webhooks", "retention_days", Kind::Number),
    ("retention", "test_messages_days", Kind::Number),
    ("retention", "live_messages_days", Kind::Number),
    ("mail", "smtp_url", Kind::Text),
    ("mail", "from", Kind::Text),
    ("telemetry", "log", Kind::Text),
    ("telemetry", "format", Kind::Text),
    ("telemetry", "metrics_listen", Kind::Text),
    ("telemetry", "metrics_token", Kind::Text),
];
const CARRIER_KEYS: &[&str] = &[
    "name",
    "kind",
    "host",
    "port",
    "system_id",
    "password",
    "system_type",
    "window",
    "rate",
    "receipts",
    "status_map",
];
const ROUTE_KEYS: &[&str] = &["prefix", "carriers"];
const NUMBER_KEYS: &[&str] = &["number", "account"];

/// A configuration and the origin of each value.
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    /// The contents of the file.
    file_values: Table,
    file: String,
    /// The environment variable that sets a key, by section and key.
    variables: HashMap<(String, String), String>,
}

impl LoadedConfig {
    /// Returns the origin of a key: a variable, the file or the default.
    fn origin(&self, section: &str, key: &str) -> &str {
        match self.variables.get(&(section.to_owned(), key.to_owned())) {
            Some(variable) => variable,
            None if self.file_values.get(section).is_some_and(|s| s.get(key).is_some()) => {
                &self.file
            }
            None => DEFAULT,
        }
    }

    /// Returns the origin of a key in the n-th table of a list.
    fn origin_in(&self, list: &str, n: usize, key: &str) -> &str {
        let entry = self.file_values.get(list).and_then(|l| l.get(n));
        if entry.is_some_and(|e| e.get(key).is_some()) { &self.file } else { DEFAULT }
    }
}

/// Loads the effective configuration: `file` (or `heliograph.toml`, if it exists), overridden by
/// the environment.
pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Config> {
    Ok(load_with_origins(file)?.config)
}

/// Parses the text of a configuration file.
#[cfg(test)]
pub(crate) fn read_text(text: &str) -> anyhow::Result<Config> {
    Ok(parse(text, "heliograph.toml", std::iter::empty())?.config)
}

/// Loads the effective configuration with the origin of each value.
pub(crate) fn load_with_origins(file: Option<&Path>) -> anyhow::Result<LoadedConfig> {
    let text = match file {
        Some(f) => {
            std::fs::read_to_string(f).with_context(|| format!("failed to read {}", f.display()))?
        }
        None => match std::fs::read_to_string(DEFAULT_FILE) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            other => other.with_context(|| format!("failed to read {DEFAULT_FILE}"))?,
        },
    };
    let file = file.unwrap_or(Path::new(DEFAULT_FILE)).display().to_string();
    let mut name = file.clone();
    let variables = environment()?;
    for (variable, _) in &variables {
        name = format!("{name}, {variable}");
    }
    parse(&text, &file, variables.into_iter()).with_context(|| name)
}

/// Rejects a variable of ours with one underscore instead of two, which would be ignored silently.
fn reject_single_underscore(variable: &str) -> anyhow::Result<()> {
    for (section, key, _) in KEYS {
        let expected = variable_of(section, key);
        if variable == expected.replace("__", "_") {
            bail!("unknown environment variable '{variable}'; did you mean '{expected}'?");
        }
    }
    Ok(())
}

/// Returns a warning for each environment variable that has our prefix and no meaning. Other programs
/// may have variables with this prefix, so that it is not an error.
pub(crate) fn unknown_variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter_map(|name| unknown_variable(&name)).collect()
}

fn unknown_variable(name: &str) -> Option<String> {
    // Those of the tests, and those that `environment` has read or refused.
    if !name.starts_with(ENV_PREFIX) || name.contains("__") || name.starts_with(TEST_PREFIX) {
        return None;
    }
    let variables = KEYS.iter().map(|(section, key, _)| variable_of(section, key));
    let nearest = variables.min_by_key(|known| strsim::levenshtein(known, name))?;
    Some(format!("The environment variable {name} has no effect. Did you mean {nearest}?"))
}

/// Returns the environment variable of a key.
fn variable_of(section: &str, key: &str) -> String {
    format!("{ENV_PREFIX}{}__{}", section.to_uppercase(), key.to_uppercase())
}

/// Returns the environment variables of the form `HELIOGRAPH_SECTION__KEY`.
fn environment() -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        reject_single_underscore(&name)?;
        if name.starts_with(ENV_PREFIX) && name.contains("__") {
            let Ok(value) = value.into_string() else { bail!("{name} is not valid UTF-8") };
            found.push((name, value));
        }
    }
    Ok(found)
}

fn parse(
    text: &str,
    file: &str,
    variables: impl Iterator<Item = (String, String)>,
) -> anyhow::Result<LoadedConfig> {
    let file_values: Table = text.parse().map_err(|e| syntax_error(text, &e))?;
    check_names(&file_values)?;
    let (mut table, mut origins) = (file_values.clone(), HashMap::new());
    for (variable, value) in variables {
        if let Some(key) = overlay(&mut table, &variable, value)? {
            origins.insert(key, variable);
        }
    }
    let config: Config = Value::Table(table).try_into()?;
    config.validate()?;
    Ok(LoadedConfig { config, file_values, file: file.to_owned(), variables: origins })
}

/// Describes a TOML syntax error and its line number. The original error would print the line
/// itself, which may contain a secret.
fn syntax_error(text: &str, e: &toml::de::Error) -> anyhow::Error {
    let before = e.span().and_then(|at| text.get(..at.start)).unwrap_or_default();
    anyhow::anyhow!("line {}: {}", before.matches('\n').count() + 1, e.message())
}

fn check_names(table: &Table) -> anyhow::Result<()> {
    let mut sections: Vec<&str> = KEYS.iter().map(|(s, ..)| *s).collect();
    sections.dedup();
    sections.extend(["carriers", "routes", "numbers"]);
    for (section, value) in table {
        check_known(section, &sections, "section")?;
        let keys: Vec<&str> = match section.as_str() {
            "carriers" => CARRIER_KEYS.to_vec(),
            "routes" => ROUTE_KEYS.to_vec(),
            "numbers" => NUMBER_KEYS.to_vec(),
            s => KEYS.iter().filter(|(section, ..)| *section == s).map(|(_, k, _)| *k).collect(),
        };
        let tables: Vec<&Value> = value.as_array().map_or(vec![value], |a| a.iter().collect());
        for key in tables.iter().filter_map(|v| v.as_table()).flat_map(Table::keys) {
            check_known(key, &keys, &format!("key in [{section}]"))?;
        }
    }
    Ok(())
}

/// Rejects an unknown name and suggests the nearest known one.
fn check_known(name: &str, names: &[&str], what: &str) -> anyhow::Result<()> {
    if names.contains(&name) {
        return Ok(());
    }
    let nearest = names.iter().min_by_key(|n| strsim::levenshtein(n, name)).copied().unwrap_or("");
    bail!("unknown {what} '{name}'; did you mean '{nearest}'?")
}

/// Overrides a value of the file with the variable `HELIOGRAPH_SECTION__KEY` and returns its
/// section and key. Lists of tables cannot be set this way.
fn overlay(
    table: &mut Table,
    variable: &str,
    value: String,
) -> anyhow::Result<Option<(String, String)>> {
    let path = variable.trim_start_matches(ENV_PREFIX).to_ascii_lowercase();
    // Variables of other programs may have our prefix; ours have a section.
    let Some((section, key)) = path.split_once("__") else { return Ok(None) };
    let Some((_, _, kind)) = KEYS.iter().find(|(s, k, _)| *s == section && *k == key) else {
        let all: Vec<String> = KEYS.iter().map(|(s, k, _)| variable_of(s, k)).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        check_known(variable, &all, "environment variable")?;
        return Ok(None);
    };
    let value = match kind {
        Kind::Text => Value::String(value),
        Kind::Number => Value::Integer(
            value.parse().with_context(|| format!("{variable} must be a whole number"))?,
        ),
        Kind::List => {
            let all = value.split(',').map(str::trim).filter(|v| !v.is_empty());
            Value::Array(all.map(|v| Value::String(v.to_owned())).collect())
        }
        Kind::Flag => Value::Boolean(
            value.parse().with_context(|| format!("{variable} must be true or false"))?,
        ),
    };
    let section_table = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Some(section_table) = section_table.as_table_mut() {
        section_table.insert(key.to_owned(), value);
    }
    Ok(Some((section.to_owned(), key.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let variables = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        parse(text, "x.toml", variables).map(|r| r.config).map_err(|e| format!("{e:#}"))
    }

    #[test]
    fn config_default_toml_matches_the_defaults() {
        let text = std::fs::read_to_string("../../config.default.toml").unwrap();
        let from_file = read(&text, &[]).unwrap();
        assert_eq!(format!("{from_file:?}"), format!("{:?}", Config::default()));
        for (section, key, _) in KEYS {
            assert!(
                text.contains(&format!("{key} = ")),
                "{section}.{key} is not in config.default.toml"
            );
        }
        for key in CARRIER_KEYS.iter().chain(ROUTE_KEYS).chain(NUMBER_KEYS) {
            assert!(text.contains(&format!("# {key} = ")), "{key} is not in config.default.toml");
        }
    }

    #[test]
    fn texts_that_could_not_be_sent_are_rejected() {
        let long = "x".repeat(1_531);
        for key in ["stop_reply", "start_reply", "help_reply"] {
            let error = read(&format!("[optouts]\n{key} = '{long}'"), &[]).unwrap_err();
            let expected = format!("optouts.{key}: The text needs 11 parts, but at most 10");
            assert!(error.contains(&expected), "{error}");
            assert!(read(&format!("[optouts]\n{key} = '{}'", &long[1..]), &[]).is_ok());
        }
        let carrier = "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = 'p'\n";
        for (key, longest) in [("system_id", 15), ("system_type", 12)] {
            let with = |text: &str| read(&format!("{carrier}{key} = \"{text}\""), &[]);
            assert!(with(&long[..longest]).is_ok());
            for text in [&long[..=longest], "a\\u0000"] {
                let error = with(text).unwrap_err();
                assert!(error.contains(&format!("the {key} of 'a' must have at most")), "{error}");
            }
        }
    }

    #[test]
    fn receipts_of_a_carrier_are_read() {
        use heliograph_domain::carrier::ReceiptPolicy;
        let carrier = "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = 'p'\n";
        for (line, policy) in [
            ("", ReceiptPolicy::All),
            ("receipts = 'first'", ReceiptPolicy::First),
            ("receipts = 'last'", ReceiptPolicy::Last),
            ("receipts = 'none'", ReceiptPolicy::None),
        ] {
            let config = read(&format!("{carrier}{line}"), &[]).unwrap();
            assert_eq!(config.carriers[0].receipts(), policy);
        }
        assert!(read(&format!("{carrier}receipts = 'some'"), &[]).is_err());
    }

    #[test]
    fn environment_variables_override_the_file() {
        let text = "[server]\nlisten = '127.0.0.1:1'\n[database]\nconnections = 3";
        let vars = [
            ("HELIOGRAPH_SERVER__LISTEN", "127.0.0.1:2"),
            ("HELIOGRAPH_DATABASE__CONNECTIONS", "4"),
        ];
        let config = read(text, &vars).unwrap();
        assert_eq!((config.server.listen.port(), config.database.connections), (2, 4));
    }

    #[test]
    fn invalid_values_and_unknown_names_are_rejected_with_a_hint() {
        for (text, vars, hint) in [
            ("[sever]", [("A", "b")], "did you mean 'server'?"),
            ("[server]\nlistn = '1'", [("A", "b")], "did you mean 'listen'?"),
            ("[[carriers]]\nnam = 'a'", [("A", "b")], "did you mean 'name'?"),
            ("", [("HELIOGRAPH_SERVER__LISTN", "1")], "did you mean 'HELIOGRAPH_SERVER__LISTEN'?"),
            ("", [("HELIOGRAPH_DATABASE__CONNECTIONS", "many")], "must be a whole number"),
            ("[rates]\ndefault = '1,5'", [("A", "b")], "is not a valid amount"),
            ("[database]\nconnections = 1", [("A", "b")], "from 2 to 1000"),
            ("[[carriers]]\nname = ''\nkind = 'simulated'", [("A", "b")], "needs a name"),
            (
                "[[routes]]\nprefix = '44'\ncarriers = ['a']\n[[routes]]\nprefix = '44'\ncarriers = ['b']",
                [("A", "b")],
                "duplicate prefix",
            ),
            (
                "[webhooks]\nallow_private = ['127.0.0.1']",
                [("A", "b")],
                "10.1.2.3/32 for one address",
            ),
            ("[webhooks]\nallow_private = ['10.1.2.3/8']", [("A", "b")], "use 10.0.0.0/8"),
            ("[webhooks]\nports = ['http']", [("A", "b")], "use a port such as 443"),
            ("[retention]\ntest_messages_days = 33", [("A", "b")], "0, or from 34 to 36500"),
            ("[server]\ntrusted_proxies = ['10.1.2.3/8']", [("A", "b")], "use 10.0.0.0/8"),
            ("[server]\ntrusted_proxies = ['proxy']", [("A", "b")], "use an address, or CIDR"),
            ("[telemetry]\nmetrics_token = 'short'", [("A", "b")], "at least 16 characters"),
            ("[accounts]\ncurrency = 'euro'", [("A", "b")], "three capital letters"),
            (
                "[[carriers]]\nname = 'a'\nkind = 'simulated'\nstatus_map = { '97' = 'temporary' }",
                [("A", "b")],
                "hexadecimal command_status, such as \"0x61\"",
            ),
            (
                "[[carriers]]\nname = 'a'\nkind = 'simulated'\nstatus_map = { '0x04' = 'temporary' }",
                [("A", "b")],
                "the meaning of '0x04' is fixed",
            ),
            (
                "[[carriers]]\nname = 'a'\nkind = 'simulated'\nstatus_map = { '0x61' = 'later' }",
                [("A", "b")],
                "expected one of",
            ),
            ("[[routes]]\nprefix = '+44'\ncarriers = ['a']", [("A", "b")], "only digits"),
            ("[limits]\nmax_in_flight = 0", [("A", "b")], "from 1 to 1000000"),
        ] {
            let error = read(text, &vars).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn status_map_of_a_carrier_is_read_and_shown() {
        use heliograph_carrier::smpp::status::{StatusMap, StatusMeaning};
        let text = "[[carriers]]\nname = 'a'\nkind = 'simulated'\n\
                    status_map = { '0x61' = 'temporary', '0x0000040B' = 'permanent', '0x58' = 'throttled' }";
        let loaded = parse(text, "x.toml", std::iter::empty()).unwrap();
        let expected = StatusMap::from([
            (0x61, StatusMeaning::Temporary),
            (0x40B, StatusMeaning::Permanent),
            (0x58, StatusMeaning::Throttled),
        ]);
        assert_eq!(loaded.config.carriers[0].status_map().unwrap(), expected);
        let shown = read(&toml(&loaded).unwrap(), &[]).unwrap();
        assert_eq!(shown.carriers[0].status_map().unwrap(), expected);
    }

    #[test]
    fn a_single_underscore_is_rejected() {
        let error = reject_single_underscore("HELIOGRAPH_DATABASE_URL").unwrap_err().to_string();
        assert!(error.contains("did you mean 'HELIOGRAPH_DATABASE__URL'?"), "{error}");
        for others in ["HELIOGRAPH_DATABASE__URL", "HELIOGRAPH_HOME", "DATABASE_URL"] {
            reject_single_underscore(others).unwrap();
        }
    }

    #[test]
    fn unknown_variables_are_named_with_the_nearest_known_one() {
        let warning = unknown_variable("HELIOGRAPH_LISTEN").unwrap();
        assert!(warning.ends_with("Did you mean HELIOGRAPH_SERVER__LISTEN?"), "{warning}");
        for other in ["HELIOGRAPH_SERVER__LISTEN", "HELIOGRAPH_TEST_ENGINE", "PATH"] {
            assert_eq!(unknown_variable(other), None);
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let text = "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = 'hunter2'";
        let config = read(text, &[]).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert_eq!(config.carriers[0].password.reveal().unwrap(), "hunter2");
    }
}
