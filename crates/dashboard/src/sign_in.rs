//! Signing in (by password, two-factor authentication code or magic link) and signing out.

use crate::anonymous::{self, AnonymousForm, AnonymousRequest};
use crate::error_page::PageError;
use crate::form::FieldErrors;
use crate::layout::{AnonymousLayout, Notice};
use crate::page;
use crate::session::{self, SessionForm};
use crate::sign_in_throttle::{Attempt, TooManyAttempts};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::email;
use heliograph_domain::secret::Token;
use heliograph_service::identity::magic_links;
use heliograph_service::identity::magic_links::MagicLinkKind;
use heliograph_service::identity::passwords::Credentials;
use heliograph_service::identity::sessions;
use heliograph_service::identity::sign_in::{
    self, CodeStep, PasswordStep, SignInContext, SignedIn,
};
use heliograph_service::kernel::error::Error;
use std::sync::Arc;

/// The first page after signing in by magic link.
const FIRST_PAGE: &str = "/phone";

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    layout: AnonymousLayout,
    next: String,
    email: String,
    email_error: String,
    password_error: String,
    sign_up: bool,
}

/// The page for the two-factor authentication code.
#[derive(Template)]
#[template(path = "two_factor.html")]
struct TwoFactor {
    layout: AnonymousLayout,
    action: String,
    next: String,
    email: String,
    code_error: String,
}

/// The page of a magic link.
#[derive(Template)]
#[template(path = "magic_link.html")]
struct MagicLink {
    layout: AnonymousLayout,
    action: String,
    /// The email address of the user whom the link signs in.
    email: String,
    /// The email address of the current session; empty without one.
    signed_in_as: String,
}

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route("/sign-in", get(form).post(by_password))
        .route("/sign-in/{link}", get(magic_link).post(by_magic_link))
        .route("/sign-in/code/{link}", get(two_factor).post(by_code))
        .route("/sign-out", post(sign_out))
}

/// Notices of previous actions.
const NOTICES: [(&str, &str); 2] = [
    ("out", "You are signed out."),
    (
        "reset",
        "Your password was changed and all sessions were signed out. Sign in with your new password.",
    ),
];

async fn form(
    State(app): State<Arc<DashboardState>>,
    request: AnonymousRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let next = anonymous::next_path(&uri);
    if request.visitor(&app).await?.is_some() {
        return Ok(page::redirect(or_start(&next)));
    }
    let (notice, filled) = (session::notice_from(&uri, &NOTICES), (next, String::new()));
    show(&app, &request, (StatusCode::OK, notice), filled, &FieldErrors::default())
}

fn show(
    app: &DashboardState,
    request: &AnonymousRequest,
    (status, notice): (StatusCode, Option<Notice>),
    (next, email): (String, String),
    errors: &FieldErrors,
) -> Result<Response, PageError> {
    let layout = request.layout(app, "Sign in", notice)?;
    let nonce = layout.nonce.clone();
    let page = SignIn {
        layout,
        next,
        email,
        email_error: errors.get("email").to_owned(),
        password_error: errors.get("password").to_owned(),
        sign_up: app.context.settings().sign_up.enabled,
    };
    Ok(request.render(status, &nonce, &page))
}

async fn by_password(
    State(app): State<Arc<DashboardState>>,
    AnonymousForm { request, form }: AnonymousForm,
) -> Result<Response, PageError> {
    let (next, typed_email) =
        (anonymous::local_path(form.text("next")), form.text("email").to_owned());
    let mut errors = FieldErrors::default();
    let email = email::parse(&typed_email);
    match &email {
        Some(email) => drop(request.throttle(&app, Attempt::Password, email).await?),
        None => app.sign_in_throttle.check_address(request.client.address)?,
    }
    if email.is_none() {
        errors.add("email", "Enter a valid email address, such as ann@example.com.");
    }
    if form.raw("password").is_empty() {
        errors.add("password", "Enter your password.");
    }
    if let Some(email) = email.filter(|_| errors.is_empty()) {
        let credentials = Credentials { email: &email, password: form.raw("password") };
        let passwords = &app.sign_in_throttle.passwords;
        let (origin, invitation) = (request.origin(), anonymous::invitation_token(&next));
        let from = SignInContext { origin: &origin, invitation: invitation.as_ref() };
        match sign_in::by_password(&app.context, passwords, credentials, from).await {
            Ok(PasswordStep::SignedIn(entered)) => {
                return redirect_to_next(&app, &request, &next, &entered).await;
            }
            Ok(PasswordStep::TwoFactor(way)) => {
                return Ok(page::redirect(&two_factor_path(&way, &next)));
            }
            // The same text for all reasons, and the same time, against user enumeration.
            Ok(PasswordStep::Wrong(failed)) => {
                request.record_failure(&app, failed)?;
                errors.add("password", "Incorrect email or password.");
            }
            Err(Error::Unauthenticated) => {
                errors.add("email", NO_ACCOUNT);
            }
            Err(other) => return Err(other.into()),
        }
    }
    show(&app, &request, (StatusCode::UNPROCESSABLE_ENTITY, None), (next, typed_email), &errors)
}

/// Redirects to the requested page. A user who joined by signing in skips the page of the
/// invitation.
async fn redirect_to_next(
    app: &DashboardState,
    request: &AnonymousRequest,
    next: &str,
    entered: &SignedIn,
) -> Result<Response, PageError> {
    let next = if entered.joined { "/" } else { or_start(next) };
    request.redirect_signed_in(app, next, &entered.session).await
}

fn or_start(next: &str) -> &str {
    if next.is_empty() { "/" } else { next }
}

fn two_factor_path(token: &Token, next: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("next", next);
    let path = magic_links::path(MagicLinkKind::TwoFactor, token);
    format!("{path}?{}", query.finish())
}

async fn two_factor(
    State(app): State<Arc<DashboardState>>,
    request: AnonymousRequest,
    Path(link): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    show_two_factor(&app, &request, (&link, anonymous::next_path(&uri)), (StatusCode::OK, "")).await
}

async fn show_two_factor(
    app: &DashboardState,
    request: &AnonymousRequest,
    (link, next): (&str, String),
    (status, error): (StatusCode, &str),
) -> Result<Response, PageError> {
    let found = async {
        let token = Token::parse(link).ok_or(Error::NotFound)?;
        magic_links::email_of(&app.context, &token, MagicLinkKind::TwoFactor).await
    };
    let email = match found.await {
        Ok(email) => email,
        Err(Error::NotFound) => return expired(app, request, next),
        Err(other) => return Err(other.into()),
    };
    let layout = request.layout(app, "Two-factor authentication", None)?;
    let (nonce, action) = (layout.nonce.clone(), format!("/sign-in/code/{link}"));
    let page = TwoFactor { layout, action, next, email, code_error: error.to_owned() };
    Ok(request.render(status, &nonce, &page))
}

/// Shows the sign-in page again when the link to the two-factor page is used or expired.
fn expired(
    app: &DashboardState,
    request: &AnonymousRequest,
    next: String,
) -> Result<Response, PageError> {
    let notice = Notice::error("This sign-in attempt has expired. Sign in again.");
    let error = (StatusCode::NOT_FOUND, Some(notice));
    show(app, request, error, (next, String::new()), &FieldErrors::default())
}

async fn by_code(
    State(app): State<Arc<DashboardState>>,
    Path(link): Path<String>,
    AnonymousForm { request, form }: AnonymousForm,
) -> Result<Response, PageError> {
    let next = anonymous::local_path(form.text("next"));
    let Some(token) = Token::parse(&link) else { return expired(&app, &request, next) };
    let email = match magic_links::email_of(&app.context, &token, MagicLinkKind::TwoFactor).await {
        Ok(email) => email,
        Err(Error::NotFound) => return expired(&app, &request, next),
        Err(other) => return Err(other.into()),
    };
    request.throttle(&app, Attempt::Code, &email).await?;
    let typed = form.text("code");
    let (origin, invitation) = (request.origin(), anonymous::invitation_token(&next));
    let from = SignInContext { origin: &origin, invitation: invitation.as_ref() };
    match sign_in::by_code(&app.context, &token, typed, from).await {
        Ok(CodeStep::SignedIn(entered)) => redirect_to_next(&app, &request, &next, &entered).await,
        Ok(CodeStep::Wait(delay)) => Err(TooManyAttempts(delay).into()),
        Err(Error::NotFound) => expired(&app, &request, next),
        Err(other) => Err(other.into()),
        Ok(CodeStep::Wrong) => {
            let error = "Incorrect code. Enter the current code from your authenticator app.";
            show_two_factor(
                &app,
                &request,
                (&link, next),
                (StatusCode::UNPROCESSABLE_ENTITY, error),
            )
            .await
        }
    }
}

/// Shows the page of a magic link without consuming the link: only its button does, so that link
/// previews of chats and mail scanners, some of which run scripts, do not use it up.
async fn magic_link(
    State(app): State<Arc<DashboardState>>,
    request: AnonymousRequest,
    Path(link): Path<String>,
) -> Result<Response, PageError> {
    let found = async {
        let token = Token::parse(&link).ok_or(Error::NotFound)?;
        magic_links::email_of(&app.context, &token, MagicLinkKind::SignIn).await
    };
    let found = found.await;
    let visitor = request.visitor(&app).await?;
    let email = match (found, &visitor) {
        (Ok(email), _) => email,
        (Err(Error::NotFound), Some(_)) => return Ok(page::redirect("/")),
        (Err(Error::NotFound), None) => return show_link_error(&app, &request, LINK_EXPIRED),
        (Err(other), _) => return Err(other.into()),
    };
    let layout = request.layout(&app, "Sign in", None)?;
    let (nonce, action) = (layout.nonce.clone(), format!("/sign-in/{link}"));
    let signed_in_as = visitor.map(|visitor| visitor.details.email).unwrap_or_default();
    Ok(request.render(StatusCode::OK, &nonce, &MagicLink { layout, action, email, signed_in_as }))
}

/// Signs in by a magic link, and consumes it.
async fn by_magic_link(
    State(app): State<Arc<DashboardState>>,
    Path(link): Path<String>,
    AnonymousForm { request, .. }: AnonymousForm,
) -> Result<Response, PageError> {
    let used = async {
        let link = Token::parse(&link).ok_or(Error::NotFound)?;
        magic_links::sign_in(&app.context, &link, &request.origin()).await
    };
    match used.await {
        Ok(token) => request.redirect_signed_in(&app, FIRST_PAGE, &token).await,
        Err(Error::NotFound) => show_link_error(&app, &request, LINK_EXPIRED),
        Err(Error::Unauthenticated) => show_link_error(&app, &request, NO_ACCOUNT),
        Err(other) => Err(other.into()),
    }
}

const LINK_EXPIRED: &str = "This link was already used or has expired. Create a new one with \
                            'heliograph account link --email …'.";
const NO_ACCOUNT: &str = "You no longer have access to any account. Ask for an invitation.";

fn show_link_error(
    app: &DashboardState,
    request: &AnonymousRequest,
    text: &str,
) -> Result<Response, PageError> {
    let error = (StatusCode::NOT_FOUND, Some(Notice::error(text)));
    show(app, request, error, Default::default(), &FieldErrors::default())
}

async fn sign_out(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let session = posted.request.visitor.details.session.id;
    match sessions::end(&app.context, &posted.request.actor(), session).await {
        Ok(()) | Err(Error::NotFound) => {}
        Err(other) => return Err(other.into()),
    }
    let mut response = session::redirect_with_notice("/sign-in", "out");
    response
        .headers_mut()
        .insert(header::SET_COOKIE, posted.request.client.cookies().clear_session());
    Ok(response)
}
