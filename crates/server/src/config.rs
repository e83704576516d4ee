//! The configuration: a TOML file, then the environment; an unknown key is an error.

mod secret;
mod sections;
mod show;

use anyhow::{Context, bail};
pub(crate) use sections::{CarrierKind, Config, LogFormat, SignUp, Telemetry};
pub(crate) use show::{json, toml};
use std::collections::HashMap;
use std::path::Path;
use toml::{Table, Value};

/// Read when no other file is named, if it is there.
const DEFAULT_FILE: &str = "heliograph.toml";
const ENV_PREFIX: &str = "HELIOGRAPH_";
/// The origin of what nobody said.
const DEFAULT: &str = "default";

/// What a key holds, which tells how its environment variable is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
    /// Several texts, with commas between them.
    List,
}

/// Every key of a section that stands once.
const KEYS: &[(&str, &str, Kind)] = &[
    ("server", "listen", Kind::Text),
    ("server", "public_url", Kind::Text),
    ("server", "tls_cert", Kind::Text),
    ("server", "tls_key", Kind::Text),
    ("server", "behind_proxy", Kind::Flag),
    ("server", "data_dir", Kind::Text),
    ("database", "url", Kind::Text),
    ("database", "connections", Kind::Number),
    ("database", "sealing_key", Kind::Text),
    ("accounts", "sign_up", Kind::Text),
    ("accounts", "currency", Kind::Text),
    ("limits", "requests_per_second", Kind::Number),
    ("limits", "max_in_flight", Kind::Number),
    ("rates", "default", Kind::Text),
    ("rates", "file", Kind::Text),
    ("optouts", "stop_reply", Kind::Text),
    ("optouts", "start_reply", Kind::Text),
    ("optouts", "help_reply", Kind::Text),
    ("webhooks", "timeout_seconds", Kind::Number),
    ("webhooks", "allow_private", Kind::List),
    ("webhooks", "retention_days", Kind::Number),
    ("mail", "smtp_url", Kind::Text),
    ("mail", "from", Kind::Text),
    ("telemetry", "log", Kind::Text),
    ("telemetry", "format", Kind::Text),
];
const CARRIER_KEYS: &[&str] =
    &["name", "kind", "host", "port", "system_id", "password", "system_type", "window", "rate"];
const ROUTE_KEYS: &[&str] = &["prefix", "carriers"];
const NUMBER_KEYS: &[&str] = &["number", "account"];

/// A configuration, and where each value comes from.
pub(crate) struct Read {
    pub(crate) config: Config,
    /// What the file says, as it stands there.
    written: Table,
    file: String,
    /// By section and key, the variable that says it.
    variables: HashMap<(String, String), String>,
}

impl Read {
    /// Where the value of a key comes from.
    fn origin(&self, section: &str, key: &str) -> &str {
        match self.variables.get(&(section.to_owned(), key.to_owned())) {
            Some(variable) => variable,
            None if self.written.get(section).is_some_and(|s| s.get(key).is_some()) => &self.file,
            None => DEFAULT,
        }
    }

    /// The same for a key of the n-th table of a list.
    fn origin_in(&self, list: &str, n: usize, key: &str) -> &str {
        let entry = self.written.get(list).and_then(|l| l.get(n));
        if entry.is_some_and(|e| e.get(key).is_some()) { &self.file } else { DEFAULT }
    }
}

/// The effective configuration: `file` (or `heliograph.toml`, if it is there), then the environment.
pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Config> {
    Ok(read(file)?.config)
}

/// The same, with where each value comes from.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Read> {
    let text = match file {
        Some(f) => {
            std::fs::read_to_string(f).with_context(|| format!("{} can't be read", f.display()))?
        }
        None => match std::fs::read_to_string(DEFAULT_FILE) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            other => other.with_context(|| format!("{DEFAULT_FILE} can't be read"))?,
        },
    };
    let file = file.unwrap_or(Path::new(DEFAULT_FILE)).display().to_string();
    let mut name = file.clone();
    let variables = ours()?;
    for (variable, _) in &variables {
        name = format!("{name}, {variable}");
    }
    parse(&text, &file, variables.into_iter()).with_context(|| name)
}

/// Refuses a variable that is one of ours but for an underline: it would be passed over in silence.
fn misspelt(variable: &str) -> anyhow::Result<()> {
    for (section, key, _) in KEYS {
        let right = format!("{ENV_PREFIX}{}__{}", section.to_uppercase(), key.to_uppercase());
        if variable == right.replace("__", "_") {
            bail!("there is no environment variable called '{variable}'; did you mean '{right}'?");
        }
    }
    Ok(())
}

/// The variables that may be meant for us: our name, then a section, then a key.
fn ours() -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        misspelt(&name)?;
        if name.starts_with(ENV_PREFIX) && name.contains("__") {
            let Ok(value) = value.into_string() else { bail!("{name} is no text") };
            found.push((name, value));
        }
    }
    Ok(found)
}

fn parse(
    text: &str,
    file: &str,
    variables: impl Iterator<Item = (String, String)>,
) -> anyhow::Result<Read> {
    let written: Table = text.parse().map_err(|e| unreadable(text, &e))?;
    check_names(&written)?;
    let (mut table, mut said) = (written.clone(), HashMap::new());
    for (variable, value) in variables {
        if let Some(place) = overlay(&mut table, &variable, value)? {
            said.insert(place, variable);
        }
    }
    let config: Config = Value::Table(table).try_into()?;
    config.validate()?;
    Ok(Read { config, written, file: file.to_owned(), variables: said })
}

/// What is wrong with a file, and in which line. The error itself would show the line, and with it a secret.
fn unreadable(text: &str, e: &toml::de::Error) -> anyhow::Error {
    let before = e.span().and_then(|at| text.get(..at.start)).unwrap_or_default();
    anyhow::anyhow!("line {}: {}", before.matches('\n').count() + 1, e.message())
}

fn check_names(table: &Table) -> anyhow::Result<()> {
    let mut sections: Vec<&str> = KEYS.iter().map(|(s, ..)| *s).collect();
    sections.dedup();
    sections.extend(["carriers", "routes", "numbers"]);
    for (section, value) in table {
        known(section, &sections, "section")?;
        let keys: Vec<&str> = match section.as_str() {
            "carriers" => CARRIER_KEYS.to_vec(),
            "routes" => ROUTE_KEYS.to_vec(),
            "numbers" => NUMBER_KEYS.to_vec(),
            s => KEYS.iter().filter(|(section, ..)| *section == s).map(|(_, k, _)| *k).collect(),
        };
        let tables: Vec<&Value> = value.as_array().map_or(vec![value], |a| a.iter().collect());
        for key in tables.iter().filter_map(|v| v.as_table()).flat_map(Table::keys) {
            known(key, &keys, &format!("key in [{section}]"))?;
        }
    }
    Ok(())
}

/// Refuses a name that nobody knows, and says which one was probably meant.
fn known(name: &str, names: &[&str], what: &str) -> anyhow::Result<()> {
    if names.contains(&name) {
        return Ok(());
    }
    let nearest = names.iter().min_by_key(|n| strsim::levenshtein(n, name)).copied().unwrap_or("");
    bail!("there is no {what} called '{name}'; did you mean '{nearest}'?")
}

/// Puts `HELIOGRAPH_SECTION__KEY` over what the file says. Lists of tables can't be given this way.
/// Which key it is: section and name.
fn overlay(
    table: &mut Table,
    variable: &str,
    value: String,
) -> anyhow::Result<Option<(String, String)>> {
    let path = variable.trim_start_matches(ENV_PREFIX).to_ascii_lowercase();
    // Other programs' variables may begin with our name; ours have a section.
    let Some((section, key)) = path.split_once("__") else { return Ok(None) };
    let Some((_, _, kind)) = KEYS.iter().find(|(s, k, _)| *s == section && *k == key) else {
        let all: Vec<String> = KEYS
            .iter()
            .map(|(s, k, _)| format!("{ENV_PREFIX}{}__{}", s.to_uppercase(), k.to_uppercase()))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        known(variable, &all, "environment variable")?;
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
    let place = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Some(place) = place.as_table_mut() {
        place.insert(key.to_owned(), value);
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
    fn the_default_file_is_the_default() {
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
    fn the_environment_wins() {
        let text = "[server]\nlisten = '127.0.0.1:1'\n[database]\nconnections = 3";
        let vars = [
            ("HELIOGRAPH_SERVER__LISTEN", "127.0.0.1:2"),
            ("HELIOGRAPH_DATABASE__CONNECTIONS", "4"),
        ];
        let config = read(text, &vars).unwrap();
        assert_eq!((config.server.listen.port(), config.database.connections), (2, 4));
    }

    #[test]
    fn unknown_names_are_errors_that_help() {
        for (text, vars, hint) in [
            ("[sever]", [("A", "b")], "did you mean 'server'?"),
            ("[server]\nlistn = '1'", [("A", "b")], "did you mean 'listen'?"),
            ("[[carriers]]\nnam = 'a'", [("A", "b")], "did you mean 'name'?"),
            ("", [("HELIOGRAPH_SERVER__LISTN", "1")], "did you mean 'HELIOGRAPH_SERVER__LISTEN'?"),
            ("", [("HELIOGRAPH_DATABASE__CONNECTIONS", "many")], "must be a whole number"),
            ("[rates]\ndefault = '1,5'", [("A", "b")], "is no amount"),
            ("[database]\nconnections = 1", [("A", "b")], "from 2 to 1000"),
            ("[[carriers]]\nname = ''\nkind = 'simulated'", [("A", "b")], "needs a name"),
            (
                "[[routes]]\nprefix = '44'\ncarriers = ['a']\n[[routes]]\nprefix = '44'\ncarriers = ['b']",
                [("A", "b")],
                "stands there twice",
            ),
            (
                "[webhooks]\nallow_private = ['127.0.0.1']",
                [("A", "b")],
                "10.1.2.3/32 for one address",
            ),
            ("[webhooks]\nallow_private = ['10.1.2.3/8']", [("A", "b")], "write 10.0.0.0/8"),
            ("[accounts]\ncurrency = 'euro'", [("A", "b")], "three capital letters"),
            ("[[routes]]\nprefix = '+44'\ncarriers = ['a']", [("A", "b")], "must be digits"),
            ("[limits]\nmax_in_flight = 0", [("A", "b")], "from 1 to 1000000"),
        ] {
            let error = read(text, &vars).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn one_underline_is_not_two() {
        let error = misspelt("HELIOGRAPH_DATABASE_URL").unwrap_err().to_string();
        assert!(error.contains("did you mean 'HELIOGRAPH_DATABASE__URL'?"), "{error}");
        for others in ["HELIOGRAPH_DATABASE__URL", "HELIOGRAPH_HOME", "DATABASE_URL"] {
            misspelt(others).unwrap();
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
