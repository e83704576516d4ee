//! The effective configuration, as TOML that can be read again and as JSON: every key, its value, and from where.

use crate::config::{CARRIER_KEYS, KEYS, NUMBER_KEYS, ROUTE_KEYS, Read};
use serde_json::json;
use toml::{Table, Value};

/// The lists of tables, with their keys in the order of `config.default.toml`.
const LISTS: &[(&str, &[&str])] =
    &[("carriers", CARRIER_KEYS), ("routes", ROUTE_KEYS), ("numbers", NUMBER_KEYS)];

/// One key.
struct Line<'a> {
    key: &'a str,
    /// `None` when nothing stands there.
    value: Option<&'a Value>,
    origin: &'a str,
}

/// The effective values, with secrets masked.
fn values(read: &Read) -> anyhow::Result<Table> {
    let mut table = Table::try_from(&read.config)?;
    let database = table.get_mut("database").and_then(Value::as_table_mut);
    if let Some(database) = database.filter(|_| read.config.database.url.is_none()) {
        database.insert("url".to_owned(), Value::String(read.config.database_url()?));
    }
    Ok(table)
}

/// The keys of a section that stands once.
fn section<'a>(read: &'a Read, table: &'a Table, name: &'a str) -> Vec<Line<'a>> {
    let keys = KEYS.iter().filter(|(section, ..)| *section == name);
    let line = |key: &'a str| Line {
        key,
        value: table.get(name).and_then(|s| s.get(key)),
        origin: read.origin(name, key),
    };
    keys.map(|(_, key, _)| line(key)).collect()
}

/// The tables of a list, each with its keys.
fn list<'a>(
    read: &'a Read,
    table: &'a Table,
    name: &str,
    keys: &'a [&'a str],
) -> Vec<Vec<Line<'a>>> {
    let all = table.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let one = |(n, entry): (usize, &'a Value)| {
        let line = |key: &&'a str| Line {
            key,
            value: entry.get(key),
            origin: read.origin_in(name, n, key),
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

/// The effective configuration as TOML, each value with its origin as a comment.
pub(crate) fn toml(read: &Read) -> anyhow::Result<String> {
    let table = values(read)?;
    let mut text =
        String::from("# The effective configuration. Behind each value: where it comes from.\n");
    for name in sections() {
        text += &format!("\n[{name}]\n{}", lines(&section(read, &table, name)));
    }
    for (name, keys) in LISTS {
        for entry in list(read, &table, name, keys) {
            text += &format!("\n[[{name}]]\n{}", lines(&entry));
        }
    }
    Ok(text)
}

fn lines(all: &[Line<'_>]) -> String {
    let line = |l: &Line<'_>| match l.value {
        Some(value) => format!("{:<39} # {}\n", format!("{} = {value}", l.key), l.origin),
        None => format!("# {} =   # nothing by default\n", l.key),
    };
    all.iter().map(line).collect()
}

/// The same for scripts: what stands in the file's place of each key is its value and its origin.
pub(crate) fn json(read: &Read) -> anyhow::Result<serde_json::Value> {
    let table = values(read)?;
    let mut all = serde_json::Map::new();
    for name in sections() {
        all.insert(name.to_owned(), object(&section(read, &table, name)));
    }
    for (name, keys) in LISTS {
        let entries = list(read, &table, name, keys).iter().map(|entry| object(entry)).collect();
        all.insert((*name).to_owned(), entries);
    }
    Ok(all.into())
}

fn object(all: &[Line<'_>]) -> serde_json::Value {
    let pair = |l: &Line<'_>| (l.key.to_owned(), json!({ "value": l.value, "origin": l.origin }));
    serde_json::Value::Object(all.iter().map(pair).collect())
}
