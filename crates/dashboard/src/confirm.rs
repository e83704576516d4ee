//! The page of a link that confirms an email address.

use crate::anonymous::AnonymousRequest;
use crate::csrf;
use crate::error_page::PageError;
use crate::layout::AnonymousLayout;
use crate::session::{self, SessionForm};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::secret::Token;
use heliograph_service::identity::confirmations;
use heliograph_service::kernel::error::Error;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "confirm.html")]
struct Confirm {
    layout: AnonymousLayout,
    path: String,
    email: String,
    /// The email address of the current session; empty without one.
    signed_in_as: String,
}

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route("/confirm/{token}", get(show).post(confirm))
}

fn expired() -> PageError {
    let text =
        "This link was already used or has expired. Sign in, and send another one under Security.";
    PageError::link_expired(text)
}

/// Shows the page. Only its button confirms the address, in a session of the person: the link alone
/// does not show that its reader has set up the account.
async fn show(
    State(app): State<Arc<DashboardState>>,
    request: AnonymousRequest,
    Path(token): Path<String>,
) -> Result<Response, PageError> {
    let secret = Token::parse(&token).ok_or_else(expired)?;
    let email = match confirmations::email_of(&app.context, &secret).await {
        Err(Error::NotFound) => return Err(expired()),
        other => other?,
    };
    let visitor = request.visitor(&app).await?;
    let signed_in_as = visitor.map(|visitor| visitor.details.email).unwrap_or_default();
    let mut layout = request.layout(&app, "Confirm your email address", None)?;
    if let Some(session) = request.client.cookies().session_token(&request.headers) {
        // The form is submitted within the session.
        layout.csrf = csrf::field(&session, &app.context.random()?);
    }
    let (nonce, path) = (layout.nonce.clone(), format!("/confirm/{token}"));
    let page = Confirm { layout, path, email, signed_in_as };
    Ok(request.render(StatusCode::OK, &nonce, &page))
}

async fn confirm(
    State(app): State<Arc<DashboardState>>,
    Path(token): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let token = Token::parse(&token).ok_or_else(expired)?;
    let request = &posted.request;
    match confirmations::confirm(&app.context, &request.visitor, &request.actor(), &token).await {
        Ok(()) => Ok(session::redirect_with_notice("/settings/security", "confirmed")),
        Err(Error::NotFound) => Err(expired()),
        Err(other) => Err(other.into()),
    }
}
