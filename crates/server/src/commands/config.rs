//! `heliograph config`.

use crate::{config, output};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(file: Option<&Path>, as_json: bool) -> anyhow::Result<ExitCode> {
    let read = config::read(file)?;
    match as_json {
        true => output::result(&config::json(&read)?.to_string()),
        false => output::result(config::toml(&read)?.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}
