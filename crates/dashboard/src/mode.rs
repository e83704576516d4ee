//! The switches between live and test mode, and between accounts.

use crate::error_page::PageError;
use crate::page;
use crate::session::SessionForm;
use crate::state::DashboardState;
use axum::Router;
use axum::extract::State;
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
    posted: SessionForm,
) -> Result<Response, PageError> {
    let mode = match posted.form.text("mode") {
        "live" => Mode::Live,
        "test" => Mode::Test,
        _ => return Err(PageError::invalid_form()),
    };
    let account = posted.request.visitor.details.session.account;
    sessions::switch_to(&app.context, &posted.request.visitor, account, mode).await?;
    Ok(page::redirect(return_path(&posted)))
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

/// Returns the path of the page that submitted the form, or the start page.
fn return_path(posted: &SessionForm) -> &str {
    Some(posted.form.text("next")).filter(|next| page::is_local_path(next)).unwrap_or("/")
}
