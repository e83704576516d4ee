//! `/operator/queue`: what waits, by carrier and lane.

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
use heliograph_domain::lease::Lane;
use heliograph_domain::time::Timestamp;
use heliograph_service::carriers::{self, COUNTED, Waiting};
use std::sync::Arc;
use std::time::Duration;

/// What is due for longer than this is late.
const LATE: Duration = Duration::from_secs(30);

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route("/operator/queue", get(show))
}

#[derive(Template)]
#[template(path = "dashboard/queue.html")]
struct Page {
    shell: Shell,
    tiles: [Tile; 3],
    lanes: Vec<Row>,
}

struct Tile {
    name: &'static str,
    value: String,
    note: &'static str,
}

struct Row {
    carrier: String,
    lane: String,
    waiting: String,
    later: String,
    age: String,
    late: bool,
}

async fn show(State(app): State<Arc<App>>, Operator(visit): Operator) -> Result<Response, Refusal> {
    let shell = visit.shell(&app, "queue", "Queue").await?;
    let nonce = shell.nonce.clone();
    let now = app.context.db.now();
    let queues = carriers::queues(&app.context).await?;
    let tiles = tiles(&queues, now);
    let some = queues.into_iter().filter(|(_, _, w)| w.due + w.later > 0);
    let lanes = some.map(|(name, lane, waiting)| row(name, lane, &waiting, now)).collect();
    Ok(page::html(StatusCode::OK, &nonce, Page { shell, tiles, lanes }.render()))
}

fn tiles(all: &[(String, Lane, Waiting)], now: Timestamp) -> [Tile; 3] {
    let sum = |of: fn(&Waiting) -> i64| {
        let counts = all.iter().map(|(.., waiting)| of(waiting));
        let text = figure::count(counts.clone().map(|n| n.min(COUNTED)).sum());
        if counts.into_iter().any(|n| n > COUNTED) { format!("{text}+") } else { text }
    };
    let oldest = all.iter().filter_map(|(.., waiting)| waiting.oldest).min();
    let age = oldest.map_or_else(|| "–".to_owned(), |at| figure::span(now.since(at)));
    [
        Tile { name: "Waiting", value: sum(|w| w.due), note: "due now" },
        Tile { name: "Oldest", value: age, note: "of what is due" },
        Tile { name: "For later", value: sum(|w| w.later), note: "put off, or scheduled" },
    ]
}

fn row(carrier: String, lane: Lane, waiting: &Waiting, now: Timestamp) -> Row {
    let age = waiting.oldest.map(|at| now.since(at));
    Row {
        carrier,
        lane: match lane {
            Lane::SINGLE => "Single messages".to_owned(),
            Lane(other) => format!("Lane {other}"),
        },
        waiting: counted(waiting.due),
        later: counted(waiting.later),
        age: age.map_or_else(|| "–".to_owned(), figure::span),
        late: age.is_some_and(|age| age > LATE),
    }
}

/// A count that ends somewhere.
fn counted(n: i64) -> String {
    if n > COUNTED { format!("{}+", figure::count(COUNTED)) } else { figure::count(n) }
}
