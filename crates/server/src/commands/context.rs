//! The context that commands share.

use crate::config::Config;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::{Error, Result};

/// The context of a command: database and rules, configuration, output format.
pub(crate) struct CommandContext {
    pub(crate) context: Context,
    pub(crate) config: Config,
    pub(crate) json: bool,
}

/// Unwraps a lookup; turns `NotFound` into an error with this text.
pub(crate) fn or_not_found<T>(
    found: Result<T>,
    message: impl FnOnce() -> String,
) -> anyhow::Result<T> {
    found.map_err(|e| match e {
        Error::NotFound => anyhow::Error::msg(message()),
        e => e.into(),
    })
}
