//! The `heliograph config` command.

use crate::commands::cli::ConfigArgs;
use crate::safety::{self, Assessment};
use crate::{config, data_dir, output};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(
    file: Option<&Path>,
    as_json: bool,
    args: ConfigArgs,
) -> anyhow::Result<ExitCode> {
    let loaded = config::load_with_origins(file)?;
    if args.check {
        let mut found = safety::assess(&loaded.config)?;
        found.warnings.extend(config::unknown_variables());
        found.warnings.extend(data_dir::warning(&loaded.config));
        return Ok(report(&found, as_json));
    }
    match as_json {
        true => output::stdout(&config::json(&loaded)?.to_string()),
        false => output::stdout(config::toml(&loaded)?.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the findings about a configuration.
fn report(found: &Assessment, as_json: bool) -> ExitCode {
    let Assessment { errors, warnings } = found;
    if as_json {
        output::stdout(&json!({ "errors": errors, "warnings": warnings }).to_string());
    } else {
        errors.iter().for_each(|e| output::stdout(&format!("error: {e}")));
        warnings.iter().for_each(|w| output::stdout(&format!("warning: {w}")));
    }
    match (errors.len(), warnings.len()) {
        (0, 0) => output::stderr("No problems found"),
        (0, n) => {
            output::stderr(&format!("The service starts with this configuration. Warnings: {n}"))
        }
        (n, _) => output::stderr(&format!(
            "The service does not start with this configuration. Errors: {n}"
        )),
    }
    if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
