//! The overview: what becomes of an account's messages, at a glance.

use crate::app::App;
use crate::dashboard::figure;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
use crate::dashboard::visit::Visit;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::message::FailureCode;
use heliograph_service::accounts::{self, FirstSteps};
use heliograph_service::stats::{self, Figures, Overview, Range, Slot};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/overview", get(overview))
}

#[derive(Template)]
#[template(path = "dashboard/overview.html")]
struct Page {
    shell: Shell,
    /// The address of this page, which is read again when something changed.
    here: String,
    /// Each with its name in the address.
    ranges: [(&'static str, &'static str); 4],
    range: &'static str,
    steps: Vec<Step>,
    steps_done: usize,
    /// Whether anything happened.
    any: bool,
    /// What is drawn, as JSON.
    chart: String,
    times_chart: String,
    table_head: [&'static str; 8],
    table: Vec<Row>,
    tiles: [Tile; 4],
    failures: Vec<Failure>,
}

/// One of the first steps.
struct Step {
    done: bool,
    title: &'static str,
    text: &'static str,
    href: &'static str,
    action: &'static str,
}

struct Row {
    label: String,
    cells: [String; 8],
}

struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

struct Failure {
    text: &'static str,
    count: String,
    /// Of the most frequent reason, in percent.
    share: i64,
}

async fn overview(
    State(app): State<Arc<App>>,
    visit: Visit,
    uri: Uri,
) -> Result<Response, Refusal> {
    let caller = visit.caller();
    let range = range(&uri);
    let seen = stats::overview(&app.context, &caller, range).await?;
    let shell = visit.shell(&app, "overview", "Overview").await?;
    let steps = steps(accounts::first_steps(&app.context, &caller).await?, shell.test);
    let nonce = shell.nonce.clone();
    let page = Page {
        here: format!("/overview?range={}", range.name()),
        ranges: Range::ALL.map(|r| (r.name(), label(r))),
        range: range.name(),
        steps_done: steps.iter().filter(|s| s.done).count(),
        steps,
        any: seen.total != Figures::default(),
        chart: chart(&seen),
        times_chart: times_chart(&seen),
        table_head: [
            "Accepted",
            "Sent",
            "Delivered",
            "Failed",
            "Cancelled",
            "Received",
            "Opted out",
            "Spent",
        ],
        table: seen.slots.iter().map(|slot| row(range, slot)).collect(),
        tiles: tiles(&shell, &seen, &caller.currency),
        failures: failures(&seen.failures),
        shell,
    };
    Ok(page::html(StatusCode::OK, &nonce, page.render()))
}

/// The range that the address asks for, or the usual one.
fn range(uri: &Uri) -> Range {
    let query = uri.query().unwrap_or_default();
    let asked = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "range");
    asked.and_then(|(_, value)| Range::from_name(&value)).unwrap_or_default()
}

const fn label(range: Range) -> &'static str {
    match range {
        Range::Hours24 => "24 hours",
        Range::Days7 => "7 days",
        Range::Days30 => "30 days",
        Range::Days90 => "90 days",
    }
}

/// The first steps, until all are done.
fn steps(done: FirstSteps, test: bool) -> Vec<Step> {
    let (text, href, action) = match test {
        true => ("By one line of curl, or from the phone page.", "/phone", "Open the phone"),
        false => ("By one line of curl, or from a page.", "/send", "Write one"),
    };
    let steps = vec![
        Step {
            done: done.key,
            title: "Make an API key",
            text: "A program signs in with it. A test key costs nothing.",
            href: "/settings/api-keys",
            action: "Make one",
        },
        Step { done: done.message, title: "Send a message", text, href, action },
        Step {
            done: done.webhook,
            title: "Hear what became of it",
            text: "Register a webhook, and press Test.",
            href: "/settings/webhooks",
            action: "Add an endpoint",
        },
    ];
    if steps.iter().all(|s| s.done) { Vec::new() } else { steps }
}

/// What ended in each slot, by how it did.
fn chart(seen: &Overview) -> String {
    let values =
        |of: fn(&Figures) -> i64| seen.slots.iter().map(|s| of(&s.figures)).collect::<Vec<_>>();
    let series = |name: &str, kind: &str, of: fn(&Figures) -> i64| json!({ "name": name, "kind": kind, "values": values(of) });
    let mut all = vec![
        series("Delivered", "delivered", |f| f.delivered),
        series("Failed", "failed", |f| f.failed),
    ];
    if seen.total.cancelled > 0 {
        all.push(series("Cancelled", "cancelled", |f| f.cancelled));
    }
    json!({ "times": times(seen), "stacked": true, "unit": "", "series": all }).to_string()
}

fn times_chart(seen: &Overview) -> String {
    let millis = |median: Duration| u64::try_from(median.as_millis()).unwrap_or(u64::MAX);
    let values: Vec<_> = seen.slots.iter().map(|s| s.median.map(millis)).collect();
    let series = [json!({ "name": "Median", "kind": "time", "values": values })];
    json!({ "times": times(seen), "stacked": false, "unit": "ms", "series": series }).to_string()
}

/// In seconds.
fn times(seen: &Overview) -> Vec<i64> {
    seen.slots.iter().map(|s| s.begin.millis() / 1_000).collect()
}

fn row(range: Range, slot: &Slot) -> Row {
    let (_, instant) = figure::instant(slot.begin);
    let end =
        if range == Range::Hours24 { instant.len() - " UTC".len() } else { "2026-11-21".len() };
    let label = instant.get(..end).unwrap_or_default().to_owned();
    let f = &slot.figures;
    let [accepted, sent, delivered, failed, cancelled, inbound, opted_out] =
        [f.accepted, f.sent, f.delivered, f.failed, f.cancelled, f.inbound, f.opted_out]
            .map(figure::count);
    let spent = f.spent.to_string();
    Row { label, cells: [accepted, sent, delivered, failed, cancelled, inbound, opted_out, spent] }
}

fn tiles(shell: &Shell, seen: &Overview, currency: &str) -> [Tile; 4] {
    let total = &seen.total;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let received = format!("{} opted out", figure::count(total.opted_out));
    let note = |text: &str| text.to_owned();
    let spent = format!("{} {currency}", total.spent);
    let accepted = match shell.test {
        true => note("in test mode: free"),
        false => format!("{spent} spent"),
    };
    [
        Tile { name: "Accepted", value: figure::count(total.accepted), note: accepted },
        Tile {
            name: "Delivery rate",
            value: or_none(total.delivery_rate().map(figure::share)),
            note: note("of those that have ended"),
        },
        Tile {
            name: "Median time",
            value: or_none(seen.median.map(figure::span)),
            note: note("from accept to handset"),
        },
        Tile { name: "Received", value: figure::count(total.inbound), note: received },
    ]
}

fn failures(all: &[(FailureCode, i64)]) -> Vec<Failure> {
    let most = all.first().map_or(1, |(_, n)| *n).max(1);
    let failure = |(code, n): &(FailureCode, i64)| Failure {
        text: code.detail().trim_end_matches('.'),
        count: figure::count(*n),
        share: (n * 100 / most).max(1),
    };
    all.iter().map(failure).collect()
}
