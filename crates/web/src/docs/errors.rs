//! The pages under `/docs/errors`: one for each code of a problem, from its table.

use crate::docs::markup::{Html, json, line, markdown};
use crate::docs::reference::{operations, problems};
use crate::error::Problem;
use crate::error::code::Code;
use crate::error::fault::FaultCode;
use askama::Template;
use serde_json::Value;

/// The request in the examples.
const REQUEST_ID: &str = "01a1fd13fdac71b5af6aef0fb5c1bcea";

/// The list of all.
#[derive(Template)]
#[template(path = "docs/errors.html")]
struct List {
    rows: Vec<Row>,
}

struct Row {
    status: u16,
    name: &'static str,
    title: &'static str,
}

/// The page of one.
#[derive(Template)]
#[template(path = "docs/error.html")]
struct Page {
    row: Row,
    meaning: Html,
    remedy: Html,
    example: Html,
    faults: Vec<(&'static str, Html)>,
    /// The operations that can fail so: id and summary.
    operations: Vec<(String, String)>,
}

fn row(code: Code) -> Row {
    let entry = code.entry();
    Row { status: entry.status.as_u16(), name: entry.name, title: entry.title }
}

/// Renders the list.
pub(crate) fn list() -> askama::Result<String> {
    List { rows: Code::ALL.iter().map(|c| row(*c)).collect() }.render()
}

/// Renders the page of a code.
pub(crate) fn page(document: &Value, code: Code) -> askama::Result<String> {
    let entry = code.entry();
    let sample: Value =
        serde_json::from_slice(&Problem::sample(code).json(REQUEST_ID)).unwrap_or_default();
    let faults = FaultCode::ALL.iter().map(|f| (f.name(), line(f.meaning())));
    let fails = |told: &Value| problems(document, told).iter().any(|p| p.name == entry.name);
    let text = |told: &Value, field| {
        told.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let all = operations(document, "paths").into_iter().filter(|(_, _, told)| fails(told));
    Page {
        row: row(code),
        meaning: markdown(entry.meaning),
        remedy: markdown(entry.remedy),
        example: json(&sample),
        faults: if code == Code::InvalidRequest { faults.collect() } else { Vec::new() },
        operations: all
            .map(|(_, _, told)| (text(told, "operationId"), text(told, "summary")))
            .collect(),
    }
    .render()
}
