//! `/operator/carriers`: how the lines to the carriers are, on all nodes.

use crate::app::App;
use crate::dashboard::figure;
use crate::dashboard::operator::Operator;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use heliograph_service::carriers::{self, Line};
use std::sync::Arc;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route("/operator/carriers", get(show))
}

#[derive(Template)]
#[template(path = "dashboard/carriers.html")]
struct Page {
    shell: Shell,
    carriers: Vec<Carrier>,
}

struct Carrier {
    id: i16,
    name: String,
    /// How its mark looks, and what it says.
    state: &'static str,
    state_text: &'static str,
    nodes: Vec<Node>,
}

struct Node {
    name: i32,
    bound: u16,
    wanted: u16,
    unanswered: u32,
    window: u32,
    /// How much of the window is in use, in percent.
    share: u32,
    pace: &'static str,
    error: String,
    error_iso: String,
    error_at: String,
    gone: bool,
    iso: String,
    at: String,
}

async fn show(State(app): State<Arc<App>>, Operator(visit): Operator) -> Result<Response, Refusal> {
    let shell = visit.shell(&app, "carriers", "Carriers").await?;
    let nonce = shell.nonce.clone();
    let carriers = carriers::all(&app.context).await?.into_iter().map(carrier).collect();
    Ok(page::html(StatusCode::OK, &nonce, Page { shell, carriers }.render()))
}

fn carrier(carrier: carriers::Carrier) -> Carrier {
    let there = || carrier.lines.iter().filter(|line| !line.gone);
    let (wanted, bound) = there().fold((0, 0), |(wanted, bound), line| {
        (wanted + line.status.binds, bound + line.status.bound)
    });
    let (state, state_text) = match (wanted, bound) {
        (0, _) => ("off", "No node serves it"),
        (_, 0) => ("down", "Down"),
        (wanted, bound) if bound < wanted => ("pending", "Partly bound"),
        _ if there().any(|line| line.status.throttled) => ("pending", "Bound, slowed down"),
        _ => ("bound", "Bound"),
    };
    let nodes = carrier.lines.iter().map(node).collect();
    Carrier { id: carrier.id.0, name: carrier.name, state, state_text, nodes }
}

fn node(line: &Line) -> Node {
    let status = &line.status;
    let (error, at) = status.last_error.clone().unzip();
    let (error_iso, error_at) = at.map(figure::instant).unwrap_or_default();
    let (iso, at) = figure::instant(line.at);
    Node {
        name: line.node.0,
        bound: status.bound,
        wanted: status.binds,
        unanswered: status.unanswered,
        window: status.window,
        share: status.unanswered.saturating_mul(100) / status.window.max(1),
        pace: if status.throttled { "The SMSC asks for a slower pace" } else { "Free" },
        error: error.unwrap_or_default(),
        error_iso,
        error_at,
        gone: line.gone,
        iso,
        at,
    }
}
