//! The switches between live and test mode, and between accounts.

use crate::error_page::PageError;
use crate::page;
use crate::session::SessionForm;
use crate::state::DashboardState;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use axum::routing::post;
use heliograph_domain::account::Mode;
use heliograph_domain::id::AccountId;
use heliograph_service::identity::sessions;
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route("/mode", post(mode)).route("/account", post(account))
}

/// Switches between test and live mode.
async fn mode(
    State(app): State<Arc<DashboardState>>,
    headers: HeaderMap,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let mode = match posted.form.text("mode") {
        "live" => Mode::Live,
        "test" => Mode::Test,
        _ => return Err(PageError::invalid_form()),
    };
    let account = posted.request.visitor.details.session.account;
    sessions::switch_to(&app.context, &posted.request.visitor, account, mode).await?;
    Ok(page::redirect(&page_in_other_mode(&headers)))
}

/// Switches to another account of the user.
async fn account(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let account = posted.form.text("account").parse().map_err(|_| PageError::invalid_form())?;
    let mode = posted.request.mode();
    sessions::switch_to(&app.context, &posted.request.visitor, AccountId(account), mode).await?;
    Ok(page::redirect("/overview"))
}

/// Pages of single objects, which exist in one mode only: the list is shown instead.
const LISTS: [&str; 3] = ["/messages", "/settings/webhooks", "/optouts"];
/// Parameters that belong to what a page showed in the previous mode.
const DROPPED: [&str; 4] = ["mode", "done", "before", "after"];

/// Returns the page that submitted the form, as far as it exists in the other mode, or the start
/// page.
fn page_in_other_mode(headers: &HeaderMap) -> String {
    let referer = headers.get(header::REFERER).and_then(|value| value.to_str().ok());
    let uri: Option<Uri> = referer.and_then(|url| url.parse().ok());
    let Some(uri) = uri.filter(|uri| page::is_local_path(uri.path())) else {
        return "/".to_owned();
    };
    let path = uri.path();
    let is_below =
        |list: &&&str| path.strip_prefix(**list).is_some_and(|rest| rest.starts_with('/'));
    if let Some(list) = LISTS.iter().find(is_below) {
        return (*list).to_owned();
    }
    let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let kept = query.filter(|(name, _)| !DROPPED.contains(&name.as_ref()));
    let kept = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{kept}") }
}
