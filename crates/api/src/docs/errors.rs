//! The pages under `/docs/errors`: an overview, and a page for each problem code.

use crate::docs::markup::{Html, json_html, markdown, markdown_inline};
use crate::docs::reference::{operations, problems};
use crate::error::Problem;
use crate::error::code::ProblemCode;
use crate::error::fault::FaultCode;
use askama::Template;
use serde_json::Value;

/// The request id in the examples.
const REQUEST_ID: &str = "01a1fd13fdac71b5af6aef0fb5c1bcea";

/// The overview of all codes.
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

/// The page of one code.
#[derive(Template)]
#[template(path = "docs/error.html")]
struct Page {
    row: Row,
    meaning: Html,
    remedy: Html,
    example: Html,
    faults: Vec<(&'static str, Html)>,
    /// The operations that return this code: id and summary.
    operations: Vec<(String, String)>,
}

fn row(code: ProblemCode) -> Row {
    let info = code.info();
    Row { status: info.status.as_u16(), name: info.name, title: info.title }
}

/// Renders the overview.
pub(crate) fn list() -> askama::Result<String> {
    List { rows: ProblemCode::ALL.iter().map(|c| row(*c)).collect() }.render()
}

/// Renders the page of a code.
pub(crate) fn page(document: &Value, code: ProblemCode) -> askama::Result<String> {
    let info = code.info();
    let sample: Value =
        serde_json::from_slice(&Problem::sample(code).json(REQUEST_ID)).unwrap_or_default();
    let faults = FaultCode::ALL.iter().map(|f| (f.name(), markdown_inline(f.meaning())));
    let fails =
        |operation: &Value| problems(document, operation).iter().any(|p| p.name == info.name);
    let text = |operation: &Value, field| {
        operation.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let all =
        operations(document, "paths").into_iter().filter(|(_, _, operation)| fails(operation));
    Page {
        row: row(code),
        meaning: markdown(info.meaning),
        remedy: markdown(info.remedy),
        example: json_html(&sample),
        faults: if code == ProblemCode::InvalidRequest { faults.collect() } else { Vec::new() },
        operations: all
            .map(|(_, _, operation)| (text(operation, "operationId"), text(operation, "summary")))
            .collect(),
    }
    .render()
}
