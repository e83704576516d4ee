//! `/operator/carriers`: live status of the carrier links, by node.

use crate::error_page::PageError;
use crate::format;
use crate::layout::Layout;
use crate::operator::OperatorRequest;
use crate::page;
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use heliograph_service::operations::carriers::{self, CarrierLink};
use std::sync::Arc;

pub(super) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route("/operator/carriers", get(show))
}

#[derive(Template)]
#[template(path = "carriers.html")]
struct Page {
    layout: Layout,
    carriers: Vec<CarrierRow>,
}

struct CarrierRow {
    id: i16,
    name: String,
    /// Class and text of the status badge.
    state: &'static str,
    state_text: &'static str,
    nodes: Vec<NodeRow>,
}

struct NodeRow {
    name: i32,
    bound: u16,
    wanted: u16,
    unanswered: u32,
    window: u32,
    /// The used share of the window, in percent.
    share: u32,
    rate_limit: &'static str,
    error: String,
    error_iso: String,
    error_at: String,
    gone: bool,
    iso: String,
    at: String,
}

async fn show(
    State(app): State<Arc<DashboardState>>,
    OperatorRequest(request): OperatorRequest,
) -> Result<Response, PageError> {
    let layout = request.layout(&app, "carriers", "Carriers").await?;
    let nonce = layout.nonce.clone();
    let carriers = carriers::all(&app.context).await?.into_iter().map(carrier).collect();
    Ok(page::html(StatusCode::OK, &nonce, Page { layout, carriers }.render()))
}

fn carrier(carrier: carriers::CarrierStatus) -> CarrierRow {
    let online = || carrier.links.iter().filter(|line| !line.stale);
    let (wanted, bound) = online().fold((0, 0), |(wanted, bound), line| {
        (wanted + line.status.binds, bound + line.status.bound)
    });
    let (state, state_text) = match (wanted, bound) {
        (0, _) => ("off", "Not configured"),
        (_, 0) => ("down", "Down"),
        (wanted, bound) if bound < wanted => ("pending", "Partially bound"),
        _ if online().any(|line| line.status.throttled) => ("pending", "Bound, throttled"),
        _ => ("bound", "Bound"),
    };
    let nodes = carrier.links.iter().map(node).collect();
    CarrierRow { id: carrier.id.0, name: carrier.name, state, state_text, nodes }
}

fn node(line: &CarrierLink) -> NodeRow {
    let status = &line.status;
    let (error, at) = status.last_error.clone().unzip();
    let (error_iso, error_at) = at.map(format::date_time).unwrap_or_default();
    let (iso, at) = format::date_time(line.at);
    NodeRow {
        name: line.node.0,
        bound: status.bound,
        wanted: status.binds,
        unanswered: status.unanswered,
        window: status.window,
        share: status.unanswered.saturating_mul(100) / status.window.max(1),
        rate_limit: if status.throttled { "Throttled by the SMSC" } else { "None" },
        error: error.unwrap_or_default(),
        error_iso,
        error_at,
        gone: line.stale,
        iso,
        at,
    }
}
