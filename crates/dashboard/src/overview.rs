//! The overview: statistics of the account's messages.

use crate::error_page::PageError;
use crate::format;
use crate::layout::Layout;
use crate::page;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::message::FailureCode;
use heliograph_domain::wording::failures::failure_reason;
use heliograph_service::identity::accounts::{self, FirstSteps};
use heliograph_service::operations::stats::{
    self, StatsOverview, StatsRange, StatsSlot, StatsTotals,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route("/overview", get(overview))
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    layout: Layout,
    /// The URL of this page, for live updates.
    here: String,
    /// The periods, with their query values.
    ranges: [(&'static str, &'static str); 4],
    range: &'static str,
    steps: Vec<Step>,
    steps_done: usize,
    /// Whether there was any activity.
    any: bool,
    /// The data of the chart, as JSON.
    chart: String,
    times_chart: String,
    /// The series of the chart, with the names of their colors.
    legend: Vec<(&'static str, &'static str)>,
    /// Whether any message was delivered, so that there are times to delivery.
    any_times: bool,
    table_head: [&'static str; 9],
    table: Vec<Row>,
    tiles: [Tile; 4],
    failures: Vec<Failure>,
}

/// A step of “Get started”.
struct Step {
    done: bool,
    title: &'static str,
    text: &'static str,
    /// Where to do it; empty when the role does not allow it.
    href: &'static str,
    action: &'static str,
}

struct Row {
    /// The beginning: in RFC 3339, and as text.
    iso: String,
    label: String,
    cells: [String; 9],
}

struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

struct Failure {
    text: &'static str,
    count: String,
    /// The count relative to the most frequent reason, in percent.
    share: i64,
}

async fn overview(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let caller = request.caller();
    let range = range(&uri);
    let stats = stats::overview(&app.context, &caller, range).await?;
    let layout = request.layout(&app, "overview", "Overview").await?;
    let steps = steps(accounts::first_steps(&app.context, &caller).await?, &layout);
    let nonce = layout.nonce.clone();
    let page = Page {
        here: format!("/overview?range={}", range.name()),
        ranges: StatsRange::ALL.map(|r| (r.name(), label(r))),
        range: range.name(),
        steps_done: steps.iter().filter(|s| s.done).count(),
        steps,
        any: stats.total != StatsTotals::default(),
        chart: chart(&stats),
        legend: legend(&stats),
        any_times: stats.slots.iter().any(|slot| slot.median.is_some()),
        times_chart: times_chart(&stats),
        table_head: [
            "Accepted",
            "Sent",
            "Delivered",
            "Failed",
            "Cancelled",
            "Received",
            "Opted out",
            "Spent",
            "Median time",
        ],
        table: stats.slots.iter().map(|slot| row(range, slot)).collect(),
        tiles: tiles(&layout, &stats, &caller.currency),
        failures: failures(&stats.failures),
        layout,
    };
    Ok(page::html(StatusCode::OK, &nonce, page.render()))
}

/// Returns the period in the query, or the default.
fn range(uri: &Uri) -> StatsRange {
    let query = uri.query().unwrap_or_default();
    let value = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "range");
    value.and_then(|(_, value)| StatsRange::from_name(&value)).unwrap_or_default()
}

const fn label(range: StatsRange) -> &'static str {
    match range {
        StatsRange::Hours24 => "24 hours",
        StatsRange::Days7 => "7 days",
        StatsRange::Days30 => "30 days",
        StatsRange::Days90 => "90 days",
    }
}

/// Returns the steps of “Get started”, or none when all are done.
fn steps(done: FirstSteps, layout: &Layout) -> Vec<Step> {
    let allowed = |can: bool, href| if can { href } else { "" };
    let (text, href, action) = match layout.test_mode {
        true => ("Use the API, or send one from the Phone page.", "/phone", "Open Phone page"),
        false => ("Use the API, or send one from the dashboard.", "/send", "Send message"),
    };
    let steps = vec![
        Step {
            done: done.key,
            title: "Create an API key",
            text: "Your app uses it to authenticate. Test keys are free to use.",
            href: allowed(layout.can_manage, "/settings/api-keys"),
            action: "Create key",
        },
        Step {
            done: done.message,
            title: "Send a message",
            text,
            href: allowed(layout.can_send, href),
            action,
        },
        Step {
            done: done.webhook,
            title: "Set up a webhook",
            text: "Receive delivery receipts and replies on your server.",
            href: allowed(layout.can_manage, "/settings/webhooks"),
            action: "Add endpoint",
        },
    ];
    if steps.iter().all(|s| s.done) { Vec::new() } else { steps }
}

/// Returns the chart of messages by final status.
fn chart(stats: &StatsOverview) -> String {
    let values =
        |of: fn(&StatsTotals) -> i64| stats.slots.iter().map(|s| of(&s.totals)).collect::<Vec<_>>();
    let series = |name: &str, kind: &str, of: fn(&StatsTotals) -> i64| json!({ "name": name, "kind": kind, "values": values(of) });
    let mut all = vec![
        series("Delivered", "delivered", |f| f.delivered),
        series("Failed", "failed", |f| f.failed),
    ];
    if stats.total.cancelled > 0 {
        all.push(series("Cancelled", "cancelled", |f| f.cancelled));
    }
    json!({ "times": times(stats), "stacked": true, "unit": "", "series": all }).to_string()
}

fn legend(stats: &StatsOverview) -> Vec<(&'static str, &'static str)> {
    let mut all = vec![("Delivered", "delivered"), ("Failed", "failed")];
    if stats.total.cancelled > 0 {
        all.push(("Cancelled", "cancelled"));
    }
    all
}

fn times_chart(stats: &StatsOverview) -> String {
    let millis = |median: Duration| u64::try_from(median.as_millis()).unwrap_or(u64::MAX);
    let values: Vec<_> = stats.slots.iter().map(|s| s.median.map(millis)).collect();
    let series = [json!({ "name": "Median", "kind": "time", "values": values })];
    json!({ "times": times(stats), "stacked": false, "unit": "ms", "series": series }).to_string()
}

/// Returns the start of each slot, in Unix seconds.
fn times(stats: &StatsOverview) -> Vec<i64> {
    stats.slots.iter().map(|s| s.begin.millis() / 1_000).collect()
}

fn row(range: StatsRange, slot: &StatsSlot) -> Row {
    let (iso, instant) = format::date_time(slot.begin);
    // The day of a slot is the day in UTC; a browser would show the day before.
    let iso = if range == StatsRange::Hours24 { iso } else { String::new() };
    let end = if range == StatsRange::Hours24 {
        instant.len() - " UTC".len()
    } else {
        "2026-11-21".len()
    };
    let label = instant.get(..end).unwrap_or_default().to_owned();
    let f = &slot.totals;
    let [accepted, sent, delivered, failed, cancelled, inbound, opted_out] =
        [f.accepted, f.sent, f.delivered, f.failed, f.cancelled, f.inbound, f.opted_out]
            .map(format::count);
    let spent = f.spent.to_string();
    let median = slot.median.map_or_else(|| "–".to_owned(), format::duration);
    let cells = [accepted, sent, delivered, failed, cancelled, inbound, opted_out, spent, median];
    Row { iso, label, cells }
}

fn tiles(layout: &Layout, stats: &StatsOverview, currency: &str) -> [Tile; 4] {
    let total = &stats.total;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let opted_out = format!("{} opted out", format::count(total.opted_out));
    let note = |text: &str| text.to_owned();
    let spent = format::money(total.spent, currency);
    let accepted = match layout.test_mode {
        true => note("free in test mode"),
        false => format!("{spent} spent"),
    };
    [
        Tile { name: "Accepted", value: format::count(total.accepted), note: accepted },
        Tile {
            name: "Delivery rate",
            value: or_dash(total.delivery_rate().map(format::percent)),
            note: note("of completed messages"),
        },
        Tile {
            name: "Median delivery time",
            value: or_dash(stats.median.map(format::duration)),
            note: note("from accepted to delivered"),
        },
        Tile { name: "Received", value: format::count(total.inbound), note: opted_out },
    ]
}

fn failures(all: &[(FailureCode, i64)]) -> Vec<Failure> {
    let most = all.first().map_or(1, |(_, n)| *n).max(1);
    let failure = |(code, n): &(FailureCode, i64)| Failure {
        text: failure_reason(*code).trim_end_matches('.'),
        count: format::count(*n),
        share: (n * 100 / most).max(1),
    };
    all.iter().map(failure).collect()
}
