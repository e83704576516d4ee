//! The `heliograph config` command.

use crate::{config, output};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(file: Option<&Path>, as_json: bool) -> anyhow::Result<ExitCode> {
    let loaded = config::load_with_origins(file)?;
    match as_json {
        true => output::stdout(&config::json(&loaded)?.to_string()),
        false => output::stdout(config::toml(&loaded)?.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}
