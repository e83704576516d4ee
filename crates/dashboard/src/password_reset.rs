//! Resetting a forgotten password.

use crate::anonymous::{AnonymousForm, AnonymousRequest};
use crate::error_page::PageError;
use crate::form::FieldErrors;
use crate::layout::{AnonymousLayout, Notice};
use crate::session;
use crate::sign_in_throttle::Attempt;
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::email;
use heliograph_domain::secret::Token;
use heliograph_service::identity::password_resets;
use heliograph_service::kernel::error::Error;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "forgot_password.html")]
struct ForgotPassword {
    layout: AnonymousLayout,
    email: String,
    email_error: String,
    email_enabled: bool,
    sent: bool,
}

#[derive(Template)]
#[template(path = "reset_password.html")]
struct ResetPassword {
    layout: AnonymousLayout,
    action: String,
    email: String,
    password_error: String,
}

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route("/reset", get(forgot).post(request_reset))
        .route("/reset/{token}", get(choose).post(set_password))
}

async fn forgot(
    State(app): State<Arc<DashboardState>>,
    request: AnonymousRequest,
) -> Result<Response, PageError> {
    show_forgot(
        &app,
        &request,
        (StatusCode::OK, None),
        String::new(),
        (&FieldErrors::default(), false),
    )
}

fn show_forgot(
    app: &DashboardState,
    request: &AnonymousRequest,
    (status, notice): (StatusCode, Option<Notice>),
    email: String,
    (errors, sent): (&FieldErrors, bool),
) -> Result<Response, PageError> {
    let layout = request.layout(app, "Reset your password", notice)?;
    let nonce = layout.nonce.clone();
    let email_error = errors.get("email").to_owned();
    let email_enabled = app.context.settings().sign_up.mail_enabled;
    let page =
        ForgotPassword { layout, email, email_error, email_enabled, sent: sent && email_enabled };
    Ok(request.render(status, &nonce, &page))
}

/// Sends a reset link, after the response. The answer and its time are the same whether the address
/// is known or not, against user enumeration.
async fn request_reset(
    State(app): State<Arc<DashboardState>>,
    AnonymousForm { request, form }: AnonymousForm,
) -> Result<Response, PageError> {
    let typed = form.text("email").to_owned();
    let email = email::parse(&typed);
    let Some(email) = email else {
        app.sign_in_throttle.check_address(request.client.address)?;
        let mut errors = FieldErrors::default();
        errors.add("email", "Enter a valid email address, such as ann@example.com.");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return show_forgot(&app, &request, (status, None), typed, (&errors, false));
    };
    let known = request.throttle(&app, Attempt::Reset, &email).await?;
    let (context, origin, recipient) = (app.context.clone(), request.origin(), email.clone());
    app.after_response
        .run(async move { password_resets::request(&context, &recipient, &origin, known).await })?;
    show_forgot(&app, &request, (StatusCode::OK, None), email, (&FieldErrors::default(), true))
}

async fn choose(
    State(app): State<Arc<DashboardState>>,
    request: AnonymousRequest,
    Path(token): Path<String>,
) -> Result<Response, PageError> {
    show(&app, &request, &token, (StatusCode::OK, String::new())).await
}

async fn show(
    app: &DashboardState,
    request: &AnonymousRequest,
    token: &str,
    (status, password_error): (StatusCode, String),
) -> Result<Response, PageError> {
    let found = async {
        let token = Token::parse(token).ok_or(Error::NotFound)?;
        password_resets::email_of(&app.context, &token).await
    };
    let email = match found.await {
        Ok(email) => email,
        Err(Error::NotFound) => return expired(app, request),
        Err(other) => return Err(other.into()),
    };
    let layout = request.layout(app, "Choose a new password", None)?;
    let (nonce, action) = (layout.nonce.clone(), format!("/reset/{token}"));
    let page = ResetPassword { layout, action, email, password_error };
    Ok(request.render(status, &nonce, &page))
}

fn expired(app: &DashboardState, request: &AnonymousRequest) -> Result<Response, PageError> {
    let notice = Notice::error("This link was already used or has expired. Request a new one.");
    let error = (StatusCode::NOT_FOUND, Some(notice));
    show_forgot(app, request, error, String::new(), (&FieldErrors::default(), false))
}

async fn set_password(
    State(app): State<Arc<DashboardState>>,
    Path(token): Path<String>,
    AnonymousForm { request, form }: AnonymousForm,
) -> Result<Response, PageError> {
    app.sign_in_throttle.check_address(request.client.address)?;
    let done = async {
        let token = Token::parse(&token).ok_or(Error::NotFound)?;
        password_resets::complete(
            &app.context,
            &app.sign_in_throttle.passwords,
            &token,
            form.raw("password"),
            &request.origin(),
        )
        .await
    };
    match done.await {
        Ok(email) => {
            // The person can sign in from here whatever others try at the same time.
            let mut response = session::redirect_with_notice("/sign-in", "reset");
            request.remember_device(&app, &mut response, &email).await?;
            Ok(response)
        }
        Err(Error::NotFound) => expired(&app, &request),
        Err(Error::WeakPassword(why)) => {
            let error = (StatusCode::UNPROCESSABLE_ENTITY, why.to_string());
            show(&app, &request, &token, error).await
        }
        Err(other) => Err(other.into()),
    }
}
