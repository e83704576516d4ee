//! `/operator/queue`: waiting messages, by carrier and lane.

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
use heliograph_domain::lease::Lane;
use heliograph_domain::time::Timestamp;
use heliograph_service::operations::carriers::{self, COUNT_LIMIT, LaneBacklog};
use std::sync::Arc;
use std::time::Duration;

/// Messages due for longer than this are late.
const LATE: Duration = Duration::from_secs(30);

pub(super) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route("/operator/queue", get(show))
}

#[derive(Template)]
#[template(path = "queue.html")]
struct Page {
    layout: Layout,
    tiles: [Tile; 3],
    lanes: Vec<LaneRow>,
}

struct Tile {
    name: &'static str,
    value: String,
    note: &'static str,
}

struct LaneRow {
    carrier: String,
    lane: String,
    waiting: String,
    scheduled: String,
    age: String,
    late: bool,
}

async fn show(
    State(app): State<Arc<DashboardState>>,
    OperatorRequest(request): OperatorRequest,
) -> Result<Response, PageError> {
    let layout = request.layout(&app, "queue", "Queue").await?;
    let nonce = layout.nonce.clone();
    let now = app.context.db.now();
    let queues = carriers::queues(&app.context).await?;
    let tiles = tiles(&queues, now);
    let busy = queues.into_iter().filter(|(_, _, w)| w.due + w.later > 0);
    let lanes = busy.map(|(name, lane, waiting)| row(name, lane, &waiting, now)).collect();
    Ok(page::html(StatusCode::OK, &nonce, Page { layout, tiles, lanes }.render()))
}

fn tiles(all: &[(String, Lane, LaneBacklog)], now: Timestamp) -> [Tile; 3] {
    let sum = |of: fn(&LaneBacklog) -> i64| {
        let counts = all.iter().map(|(.., waiting)| of(waiting));
        let text = format::count(counts.clone().map(|n| n.min(COUNT_LIMIT)).sum());
        if counts.into_iter().any(|n| n > COUNT_LIMIT) { format!("{text}+") } else { text }
    };
    let oldest = all.iter().filter_map(|(.., waiting)| waiting.oldest).min();
    let age = oldest.map_or_else(|| "–".to_owned(), |at| format::duration(now.since(at)));
    [
        Tile { name: "Waiting", value: sum(|w| w.due), note: "due now" },
        Tile { name: "Oldest", value: age, note: "longest wait" },
        Tile { name: "Scheduled", value: sum(|w| w.later), note: "retries and scheduled messages" },
    ]
}

fn row(carrier: String, lane: Lane, waiting: &LaneBacklog, now: Timestamp) -> LaneRow {
    let age = waiting.oldest.map(|at| now.since(at));
    LaneRow {
        carrier,
        lane: match lane {
            Lane::SINGLE => "Single messages".to_owned(),
            Lane(other) => format!("Lane {other}"),
        },
        waiting: counted(waiting.due),
        scheduled: counted(waiting.later),
        age: age.map_or_else(|| "–".to_owned(), format::duration),
        late: age.is_some_and(|age| age > LATE),
    }
}

/// Formats a count, which is capped at [`COUNT_LIMIT`].
fn counted(n: i64) -> String {
    if n > COUNT_LIMIT { format!("{}+", format::count(COUNT_LIMIT)) } else { format::count(n) }
}
