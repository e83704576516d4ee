//! The access to the metrics: on the listener for requests, and on a listener of their own.

use crate::config::Config;
use anyhow::Context;
use heliograph_api::MetricsAccess;
use tokio::net::TcpListener;

/// Returns the rule for the listener for requests. Without a setting, only a node that no other
/// machine reaches shows its metrics there.
pub(crate) fn main_listener(config: &Config) -> anyhow::Result<MetricsAccess> {
    let public = !config.server.listen.ip().is_loopback() || config.server.behind_proxy;
    if config.telemetry.metrics_listen.is_some() {
        return Ok(MetricsAccess::Hidden);
    }
    let fallback = if public { MetricsAccess::Hidden } else { MetricsAccess::Open };
    Ok(token(config)?.unwrap_or(fallback))
}

/// Returns the rule for the listener of the metrics.
pub(crate) fn own_listener(config: &Config) -> anyhow::Result<MetricsAccess> {
    Ok(token(config)?.unwrap_or(MetricsAccess::Open))
}

fn token(config: &Config) -> anyhow::Result<Option<MetricsAccess>> {
    let Some(secret) = &config.telemetry.metrics_token else { return Ok(None) };
    let token = secret.reveal().context("telemetry.metrics_token")?;
    Ok(Some(MetricsAccess::token(&token)))
}

/// Binds the listener of the metrics, if they have one.
pub(crate) fn bind(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = config.telemetry.metrics_listen else { return Ok(None) };
    let listener = heliograph_http::bind(address);
    let what = || format!("telemetry.metrics_listen: failed to listen on {address}");
    listener.map(Some).with_context(what)
}
