//! Secrets in the configuration: given inline, in a file or in an environment variable.

use anyhow::{Context, bail};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;
use toml::Value;
use url::Url;

/// The text shown in place of a secret.
const MASK: &str = "***";

/// A value that is never printed: inline, or the name of the file or environment variable that
/// holds it.
#[derive(Clone)]
pub(crate) enum ConfigSecret {
    Plain(String),
    File(PathBuf),
    Env(String),
}

impl Default for ConfigSecret {
    fn default() -> Self {
        Self::Plain(String::new())
    }
}

impl fmt::Debug for ConfigSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Error messages must not show the invalid value: it may be the secret.
impl<'de> Deserialize<'de> for ConfigSecret {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let wrong =
            || D::Error::custom("must be a string, { file = \"PATH\" } or { env = \"NAME\" }");
        let table = match Value::deserialize(d).map_err(|_| wrong())? {
            Value::String(text) => return Ok(Self::Plain(text)),
            Value::Table(table) if table.len() == 1 => table,
            _ => return Err(wrong()),
        };
        match table.into_iter().next() {
            Some((key, Value::String(path))) if key == "file" => Ok(Self::File(path.into())),
            Some((key, Value::String(name))) if key == "env" => Ok(Self::Env(name)),
            _ => Err(wrong()),
        }
    }
}

/// The form shown by `heliograph config`: the location of a secret is not secret.
impl Serialize for ConfigSecret {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(text) => s.serialize_str(if text.is_empty() { "" } else { MASK }),
            Self::File(path) => s.collect_map([("file", path.display().to_string())]),
            Self::Env(name) => s.collect_map([("env", name)]),
        }
    }
}

impl ConfigSecret {
    /// Returns the secret value.
    pub(crate) fn reveal(&self) -> anyhow::Result<String> {
        match self {
            Self::Plain(text) => Ok(text.clone()),
            Self::File(path) => {
                let text = std::fs::read_to_string(path);
                let text = text
                    .with_context(|| format!("failed to read the secret in {}", path.display()))?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            // The original error would show the value.
            Self::Env(name) => match std::env::var(name) {
                Ok(text) => Ok(text),
                Err(std::env::VarError::NotPresent) => {
                    bail!("failed to read the secret in ${name}: the variable is not set")
                }
                Err(_) => {
                    bail!("failed to read the secret in ${name}: the value is not valid UTF-8")
                }
            },
        }
    }

    /// Serializes a URL with its password masked.
    pub(crate) fn show_url<S: Serializer>(url: &Option<Self>, s: S) -> Result<S::Ok, S::Error> {
        match url {
            Some(Self::Plain(url)) => s.serialize_str(&masked(url)),
            other => other.serialize(s),
        }
    }
}

/// Masks the password of a URL, including a `password` query parameter.
pub(crate) fn masked(text: &str) -> String {
    if text.starts_with("sqlite:") {
        return text.to_owned();
    }
    let Ok(mut url) = Url::parse(text) else { return MASK.to_owned() };
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return MASK.to_owned();
    }
    let parameters: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if parameters.iter().any(|(name, _)| name == "password") {
        let shown = parameters.iter().map(|(name, value)| match name.as_str() {
            "password" => (name.as_str(), MASK),
            _ => (name.as_str(), value.as_str()),
        });
        url.query_pairs_mut().clear().extend_pairs(shown);
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_of_a_url_is_masked() {
        for (url, shown) in [
            ("sqlite:data/heliograph.db", "sqlite:data/heliograph.db"),
            ("postgres://ann@db/x", "postgres://ann@db/x"),
            ("postgres://ann:hunter2@db:5432/x", "postgres://ann:***@db:5432/x"),
            (
                "postgres://ann:hun%20ter2@db/x?sslmode=disable",
                "postgres://ann:***@db/x?sslmode=disable",
            ),
            ("postgres://db/x?user=ann&password=hunter2", "postgres://db/x?user=ann&password=***"),
            ("postgres://ann:hunter2@[x/", "***"),
            ("host=db password=hunter2", "***"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
