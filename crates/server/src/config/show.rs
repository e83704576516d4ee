//! Prints the effective configuration, with the origin of each value, as valid TOML or as JSON.

use crate::config::{CARRIER_KEYS, KEYS, LoadedConfig, NUMBER_KEYS, ROUTE_KEYS};
use serde_json::json;
use toml::{Table, Value};

/// The lists of tables, with their keys in the order of `config.default.toml`.
const LISTS: &[(&str, &[&str])] =
    &[("carriers", CARRIER_KEYS), ("routes", ROUTE_KEYS), ("numbers", NUMBER_KEYS)];

/// One key with its value and origin.
struct Setting<'a> {
    key: &'a str,
    /// `None` when the key has no value.
    value: Option<&'a Value>,
    origin: &'a str,
}

/// Returns the effective values, with secrets masked.
fn values(loaded: &LoadedConfig) -> anyhow::Result<Table> {
    let mut table = Table::try_from(&loaded.config)?;
    let database = table.get_mut("database").and_then(Value::as_table_mut);
    if let Some(database) = database.filter(|_| loaded.config.database.url.is_none()) {
        database.insert("url".to_owned(), Value::String(loaded.config.database_url()?));
    }
    Ok(table)
}

/// Returns the settings of a section that occurs once.
fn section<'a>(loaded: &'a LoadedConfig, table: &'a Table, name: &'a str) -> Vec<Setting<'a>> {
    let keys = KEYS.iter().filter(|(section, ..)| *section == name);
    let line = |key: &'a str| Setting {
        key,
        value: table.get(name).and_then(|s| s.get(key)),
        origin: loaded.origin(name, key),
    };
    keys.map(|(_, key, _)| line(key)).collect()
}

/// Returns the settings of each table of a list.
fn list<'a>(
    loaded: &'a LoadedConfig,
    table: &'a Table,
    name: &str,
    keys: &'a [&'a str],
) -> Vec<Vec<Setting<'a>>> {
    let all = table.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let one = |(n, entry): (usize, &'a Value)| {
        let line = |key: &&'a str| Setting {
            key,
            value: entry.get(key),
            origin: loaded.origin_in(name, n, key),
        };
        keys.iter().map(line).collect()
    };
    all.iter().enumerate().map(one).collect()
}

fn sections() -> Vec<&'static str> {
    let mut all: Vec<&str> = KEYS.iter().map(|(section, ..)| *section).collect();
    all.dedup();
    all
}

/// Renders the effective configuration as TOML, each value with its origin as a comment.
pub(crate) fn toml(loaded: &LoadedConfig) -> anyhow::Result<String> {
    let table = values(loaded)?;
    let mut text =
        String::from("# Effective configuration; the comment after each value is its origin.\n");
    for name in sections() {
        text += &format!("\n[{name}]\n{}", lines(&section(loaded, &table, name)));
    }
    for (name, keys) in LISTS {
        for entry in list(loaded, &table, name, keys) {
            text += &format!("\n[[{name}]]\n{}", lines(&entry));
        }
    }
    Ok(text)
}

fn lines(all: &[Setting<'_>]) -> String {
    let line = |l: &Setting<'_>| match l.value {
        Some(value) => format!("{:<39} # {}\n", format!("{} = {value}", l.key), l.origin),
        None => format!("# {} =   # no default\n", l.key),
    };
    all.iter().map(line).collect()
}

/// Renders the effective configuration as JSON: each key maps to its value and its origin.
pub(crate) fn json(loaded: &LoadedConfig) -> anyhow::Result<serde_json::Value> {
    let table = values(loaded)?;
    let mut all = serde_json::Map::new();
    for name in sections() {
        all.insert(name.to_owned(), object(&section(loaded, &table, name)));
    }
    for (name, keys) in LISTS {
        let entries = list(loaded, &table, name, keys).iter().map(|entry| object(entry)).collect();
        all.insert((*name).to_owned(), entries);
    }
    Ok(all.into())
}

fn object(all: &[Setting<'_>]) -> serde_json::Value {
    let pair =
        |l: &Setting<'_>| (l.key.to_owned(), json!({ "value": l.value, "origin": l.origin }));
    serde_json::Value::Object(all.iter().map(pair).collect())
}
