//! The page of an invitation link.

use crate::anonymous::{AnonymousForm, AnonymousRequest};
use crate::csrf;
use crate::error_page::PageError;
use crate::layout::AnonymousLayout;
use crate::page;
use crate::session::SessionForm;
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::secret::Token;
use heliograph_service::identity::members;
use heliograph_service::identity::sessions;
use heliograph_service::kernel::error::Error;
use std::sync::Arc;

/// The person who opens an invitation link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpenedBy {
    /// The invited user, signed in.
    Invitee,
    /// Another user, signed in.
    OtherUser,
    /// No session; the invited person has a user account.
    SignedOut,
    /// No session; the invited person has no user account.
    NewUser,
}

#[derive(Template)]
#[template(path = "join.html")]
struct Join {
    layout: AnonymousLayout,
    path: String,
    account: String,
    email: String,
    role: &'static str,
    opened_by: OpenedBy,
    password_error: String,
}

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route("/join/{token}", get(invitation).post(join))
        .route("/join/{token}/sign-up", post(sign_up))
}

async fn invitation(
    State(app): State<Arc<DashboardState>>,
    request: AnonymousRequest,
    Path(token): Path<String>,
) -> Result<Response, PageError> {
    show(&app, &request, &token, (StatusCode::OK, String::new())).await
}

fn expired() -> PageError {
    let text = "This invitation was already used, was revoked, or has expired. Ask for a new one.";
    PageError::link_expired(text)
}

async fn show(
    app: &DashboardState,
    request: &AnonymousRequest,
    token: &str,
    (status, password_error): (StatusCode, String),
) -> Result<Response, PageError> {
    let secret = Token::parse(token).ok_or_else(expired)?;
    let found = members::find_invitation(&app.context, &secret).await;
    let (invitation, account, known) = match found {
        Err(Error::NotFound) => return Err(expired()),
        other => other?,
    };
    let signed_in = request.visitor(app).await?;
    let opened_by = match &signed_in {
        Some(v) if v.details.email == invitation.email => OpenedBy::Invitee,
        Some(_) => OpenedBy::OtherUser,
        None if known => OpenedBy::SignedOut,
        None => OpenedBy::NewUser,
    };
    let mut layout = request.layout(app, "Join account", None)?;
    if let Some(session) = request
        .client
        .cookies()
        .session_token(&request.headers)
        .filter(|_| opened_by == OpenedBy::Invitee)
    {
        // The invitee submits this form within the session.
        layout.csrf = csrf::field(&session, &app.context.random()?);
    }
    let (nonce, path) = (layout.nonce.clone(), format!("/join/{token}"));
    let (email, role) = (invitation.email, invitation.role.name());
    let page = Join { layout, path, account, email, role, opened_by, password_error };
    Ok(request.render(status, &nonce, &page))
}

async fn join(
    State(app): State<Arc<DashboardState>>,
    Path(token): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let token = Token::parse(&token).ok_or_else(expired)?;
    let (request, cx) = (&posted.request, &app.context);
    match members::accept_invitation(
        cx,
        &request.visitor,
        &request.client.address.to_string(),
        &token,
    )
    .await
    {
        Ok(account) => {
            sessions::switch_to(cx, &request.visitor, account, request.mode()).await?;
            Ok(page::redirect("/"))
        }
        Err(Error::NotFound) => Err(expired()),
        Err(other) => Err(other.into()),
    }
}

async fn sign_up(
    State(app): State<Arc<DashboardState>>,
    Path(token): Path<String>,
    AnonymousForm { request, form }: AnonymousForm,
) -> Result<Response, PageError> {
    app.sign_in_throttle.check_address(request.client.address)?;
    let secret = Token::parse(&token).ok_or_else(expired)?;
    let password = form.raw("password");
    let origin = request.origin();
    let passwords = &app.sign_in_throttle.passwords;
    match members::sign_up_by_invitation(&app.context, passwords, &secret, password, &origin).await
    {
        Ok(session) => request.redirect_signed_in(&app, "/", &session).await,
        Err(Error::NotFound) => Err(expired()),
        Err(Error::WeakPassword(why)) => {
            let error = (StatusCode::UNPROCESSABLE_ENTITY, why.to_string());
            show(&app, &request, &token, error).await
        }
        Err(other) => Err(other.into()),
    }
}
