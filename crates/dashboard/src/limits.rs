//! `/settings/limits`: the limits of the account, and what is used of them.

use crate::error_page::PageError;
use crate::format;
use crate::layout::Layout;
use crate::page;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::account::Scope;
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::wording::limits;
use heliograph_service::identity::account_limits::{self, LimitUse};
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route("/settings/limits", get(show))
}

#[derive(Template)]
#[template(path = "limits.html")]
struct Page {
    layout: Layout,
    limits: Vec<LimitRow>,
}

struct LimitRow {
    name: &'static str,
    /// The amount in use; empty if it is not known.
    used: String,
    max: String,
    /// The share in use in percent, at most 100.
    percent: u64,
    overridden: bool,
}

async fn show(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
) -> Result<Response, PageError> {
    request.caller().require_scope(Scope::Read)?;
    let account = request.visitor.details.session.account;
    let streams = app.live_updates.open_streams(account);
    let all = account_limits::list(&app.context, account).await?;
    let layout = request.layout(&app, "limits", "Limits").await?;
    let page = Page { layout, limits: all.into_iter().map(|limit| row(limit, streams)).collect() };
    Ok(page::html(StatusCode::OK, &page.layout.nonce.clone(), page.render()))
}

fn row(limit: LimitUse, streams: usize) -> LimitRow {
    let LimitUse { limit, max, overridden, used } = limit;
    let used = match limit {
        AccountLimit::EventStreams => u64::try_from(streams).ok(),
        _ => used,
    };
    let percent = match (used, max) {
        (Some(used), Some(max)) => (used.saturating_mul(100) / u64::from(max.max(1))).min(100),
        _ => 0,
    };
    LimitRow {
        name: limits::account_limit(limit),
        used: used.map(count).unwrap_or_default(),
        max: max.map_or_else(|| "No limit".to_owned(), |max| count(max.into())),
        percent,
        overridden,
    }
}

fn count(n: u64) -> String {
    format::count(i64::try_from(n).unwrap_or(i64::MAX))
}
