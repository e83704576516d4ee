//! `heliograph check`.

use crate::commands::arguments::Desk;
use crate::output;
use serde_json::json;
use std::process::ExitCode;

pub(crate) async fn run(desk: &Desk) -> anyhow::Result<ExitCode> {
    let violations = heliograph_service::check::violations(&desk.context).await?;
    if desk.json {
        output::result(&json!({ "violations": violations }).to_string());
    } else {
        violations.iter().for_each(|v| output::result(v));
    }
    if violations.is_empty() {
        output::talk("every invariant holds");
        return Ok(ExitCode::SUCCESS);
    }
    output::talk(&format!("{} violations", violations.len()));
    Ok(ExitCode::FAILURE)
}
