//! The `heliograph check` command.

use crate::commands::context::CommandContext;
use crate::output;
use serde_json::json;
use std::process::ExitCode;

pub(crate) async fn run(command: &CommandContext) -> anyhow::Result<ExitCode> {
    let violations = heliograph_service::operations::check::violations(&command.context).await?;
    if command.json {
        output::stdout(&json!({ "violations": violations }).to_string());
    } else {
        violations.iter().for_each(|v| output::stdout(v));
    }
    if violations.is_empty() {
        output::stderr("No violations found");
        return Ok(ExitCode::SUCCESS);
    }
    output::stderr(&format!("Violations found: {}", violations.len()));
    Ok(ExitCode::FAILURE)
}
