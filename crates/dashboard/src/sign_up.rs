//! Creating an account.

use crate::anonymous::{AnonymousForm, AnonymousRequest};
use crate::error_page::PageError;
use crate::form::FieldErrors;
use crate::layout::{AnonymousLayout, Notice};
use crate::sign_in_throttle::Attempt;
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::email;
use heliograph_service::identity::passwords::Credentials;
use heliograph_service::identity::sign_in::{self, PasswordStep, SignInContext};
use heliograph_service::identity::sign_up;
use heliograph_service::kernel::error::Error;
use std::sync::Arc;

const TAKEN: &str =
    "An account with this email address already exists. Sign in, or reset your password.";
/// The first page after signing up.
const FIRST_PAGE: &str = "/phone";

#[derive(Template)]
#[template(path = "sign_up.html")]
struct SignUp {
    layout: AnonymousLayout,
    email: String,
    email_error: String,
    password_error: String,
}

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route("/sign-up", get(form).post(create))
}

async fn form(
    State(app): State<Arc<DashboardState>>,
    request: AnonymousRequest,
) -> Result<Response, PageError> {
    require_sign_up(&app)?;
    let notice = request.visitor(&app).await?.map(|visitor| {
        let email = visitor.details.email;
        Notice::success(format!(
            "You are signed in as {email}. This form creates a new account for a different email address."
        ))
    });
    show(&app, &request, (StatusCode::OK, notice), String::new(), &FieldErrors::default())
}

/// Returns 404 when sign-up is disabled.
fn require_sign_up(app: &DashboardState) -> Result<(), PageError> {
    match app.context.settings().sign_up.enabled {
        true => Ok(()),
        false => Err(PageError::not_found()),
    }
}

fn show(
    app: &DashboardState,
    request: &AnonymousRequest,
    (status, notice): (StatusCode, Option<Notice>),
    email: String,
    errors: &FieldErrors,
) -> Result<Response, PageError> {
    let layout = request.layout(app, "Create account", notice)?;
    let nonce = layout.nonce.clone();
    let page = SignUp {
        layout,
        email,
        email_error: errors.get("email").to_owned(),
        password_error: errors.get("password").to_owned(),
    };
    Ok(request.render(status, &nonce, &page))
}

async fn create(
    State(app): State<Arc<DashboardState>>,
    AnonymousForm { request, form }: AnonymousForm,
) -> Result<Response, PageError> {
    require_sign_up(&app)?;
    let typed_email = form.text("email").to_owned();
    let email = email::parse(&typed_email);
    app.sign_in_throttle.check_address(request.client.address)?;
    let mut errors = FieldErrors::default();
    if email.is_none() {
        errors.add("email", "Enter a valid email address, such as ann@example.com.");
    }
    let (passwords, origin) = (&app.sign_in_throttle.passwords, request.origin());
    let credentials =
        Credentials { email: email.as_deref().unwrap_or_default(), password: form.raw("password") };
    let opened = match errors.is_empty() {
        true => sign_up::create_account(&app.context, passwords, credentials, &origin).await,
        false => Ok(None),
    };
    match opened {
        Ok(Some(token)) => return request.redirect_signed_in(&app, FIRST_PAGE, &token).await,
        // A form submitted twice signs in the second time.
        Ok(None) if errors.is_empty() => {
            request.throttle(&app, Attempt::Password, credentials.email).await?;
            let from = SignInContext { origin: &origin, invitation: None };
            match sign_in::by_password(&app.context, passwords, credentials, from).await {
                Ok(PasswordStep::SignedIn(entered)) => {
                    return request.redirect_signed_in(&app, FIRST_PAGE, &entered.session).await;
                }
                // The same for users without an account: they see the reason when they sign in.
                Ok(PasswordStep::Wrong(failed)) => {
                    request.record_failure(&app, failed)?;
                    errors.add("email", TAKEN);
                }
                Ok(PasswordStep::TwoFactor(_)) | Err(Error::Unauthenticated) => {
                    errors.add("email", TAKEN);
                }
                Err(other) => return Err(other.into()),
            }
        }
        Ok(None) => {}
        Err(Error::WeakPassword(why)) => errors.add("password", why.to_string()),
        Err(other) => return Err(other.into()),
    }
    show(&app, &request, (StatusCode::UNPROCESSABLE_ENTITY, None), typed_email, &errors)
}
