//! Where a person looks: which account, and which of test and live mode.

use crate::app::App;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::Posted;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use heliograph_domain::account::Mode;
use heliograph_domain::id::AccountId;
use heliograph_service::sessions;
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/mode", post(mode)).route("/account", post(account))
}

/// Switches between test and live mode.
async fn mode(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let mode = match posted.form.text("mode") {
        "live" => Mode::Live,
        "test" => Mode::Test,
        _ => return Err(Refusal::bad_form()),
    };
    let account = posted.visit.visitor.signed.session.account;
    sessions::look_at(&app.context, &posted.visit.visitor, account, mode).await?;
    Ok(page::go(back(&posted)))
}

/// Switches to another account of the same person.
async fn account(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let account = posted.form.text("account").parse().map_err(|_| Refusal::bad_form())?;
    let mode = posted.visit.mode();
    sessions::look_at(&app.context, &posted.visit.visitor, AccountId(account), mode).await?;
    Ok(page::go("/overview"))
}

/// To the page from which the form was sent, if it says so.
fn back(posted: &Posted) -> &str {
    Some(posted.form.text("next")).filter(|next| page::is_own(next)).unwrap_or("/")
}
