//! `/settings/security`: password, two-factor authentication and sessions.

use crate::error_page::PageError;
use crate::form::FieldErrors;
use crate::format;
use crate::layout::{Layout, Notice};
use crate::page;
use crate::reasons;
use crate::session::{self, SessionForm, SessionRequest};
use crate::sign_in_throttle::{Attempt, AttemptOrigin};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::id::SessionId;
use heliograph_domain::recovery::RecoveryCode;
use heliograph_domain::totp::TotpSecret;
use heliograph_service::identity::confirmations;
use heliograph_service::identity::passwords::{self, PasswordChange};
use heliograph_service::identity::sessions;
use heliograph_service::identity::two_factor::{self, TwoFactorState};
use heliograph_service::kernel::error::Error;
use qrcode::QrCode;
use qrcode::render::svg;
use std::sync::Arc;

const HERE: &str = "/settings/security";

struct Session {
    id: String,
    agent: String,
    address: String,
    current: bool,
    created_iso: String,
    created: String,
    seen_iso: String,
    seen: String,
}

/// The setup of an authenticator app.
struct Setup {
    qr: String,
    secret: String,
}

#[derive(Template)]
#[template(path = "security.html")]
struct Security {
    layout: Layout,
    has_password: bool,
    two_factor: bool,
    codes_left: i64,
    setup: Option<Setup>,
    /// New recovery codes, shown only once.
    codes: Vec<String>,
    errors: FieldErrors,
    sessions: Vec<Session>,
}

/// One-time content of the page.
#[derive(Default)]
struct PageExtras {
    notice: Option<Notice>,
    codes: Vec<String>,
    errors: FieldErrors,
}

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route(HERE, get(security))
        .route("/settings/security/password", post(change_password))
        .route("/settings/security/two-factor", post(begin_two_factor))
        .route("/settings/security/two-factor/confirm", post(confirm_two_factor))
        .route("/settings/security/two-factor/disable", post(disable_two_factor))
        .route("/settings/security/recovery-codes", post(renew_codes))
        .route("/settings/security/confirmation", post(send_confirmation))
        .route("/settings/security/sessions/end", post(end_session))
        .route("/settings/security/sessions/others", post(end_other_sessions))
}

const NOTICES: [(&str, &str); 6] = [
    ("sent", "We sent a link to your email address. It expires in three days."),
    ("confirmed", "Email address confirmed. All other sessions were signed out."),
    ("password", "Password changed. All other sessions were signed out."),
    ("off", "Two-factor authentication disabled."),
    ("ended", "Session signed out."),
    ("others", "All other sessions were signed out."),
];

async fn security(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let extras =
        PageExtras { notice: session::notice_from(&uri, &NOTICES), ..PageExtras::default() };
    show(&app, &request, StatusCode::OK, extras).await
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    status: StatusCode,
    extras: PageExtras,
) -> Result<Response, PageError> {
    let (factor, has_password) = two_factor::state(&app.context, &request.visitor).await?;
    let (two_factor, codes_left, setup) = match &factor {
        TwoFactorState::Off => (false, 0, None),
        TwoFactorState::Pending(secret) => (false, 0, Some(setup(request, secret)?)),
        TwoFactorState::On(left) => (true, *left, None),
    };
    let sessions = sessions::list(&app.context, &request.visitor).await?;
    let PageExtras { mut notice, codes, errors } = extras;
    if notice.is_none() && codes.is_empty() && !two_factor {
        let required = request.visitor.lacks_two_factor(&app.context);
        notice = required.then(|| Notice::error(REQUIRED));
    }
    let page = Security {
        layout: Layout { notice, ..request.layout(app, "security", "Security").await? },
        has_password,
        two_factor,
        codes_left,
        setup,
        codes,
        errors,
        sessions: sessions.into_iter().map(|s| session(s, request)).collect(),
    };
    Ok(page::html(status, &page.layout.nonce.clone(), page.render()))
}

fn setup(request: &SessionRequest, secret: &TotpSecret) -> Result<Setup, PageError> {
    let address = secret.otpauth_url(&request.visitor.details.email);
    let code = QrCode::new(address.as_bytes()).map_err(|e| Error::Internal(e.to_string()))?;
    let qr = code.render::<svg::Color<'_>>().quiet_zone(false).build();
    // Inline SVG must not have an XML declaration.
    let qr = qr.split_once("?>").map_or(qr.as_str(), |(_, svg)| svg).to_owned();
    Ok(Setup { qr, secret: secret.reveal() })
}

fn session(
    s: heliograph_service::identity::sessions::Session,
    request: &SessionRequest,
) -> Session {
    let (created_iso, created) = format::date_time(s.created_at);
    let (seen_iso, seen) = format::date_time(s.seen_at);
    let agent = browser(&s.agent);
    let (id, current) = (s.id.to_string(), s.id == request.visitor.details.session.id);
    Session { id, agent, address: s.address, current, created_iso, created, seen_iso, seen }
}

/// Returns browser and system from a user agent. Most user agents name several browsers; the first
/// match here is the right one.
fn browser(agent: &str) -> String {
    const BROWSERS: [(&str, &str); 6] = [
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chromium/", "Chromium"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 6] = [
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Mac OS", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |all: [(&'static str, &'static str); 6]| {
        all.into_iter().find(|(mark, _)| agent.contains(mark))
    };
    match (find(BROWSERS), find(SYSTEMS)) {
        (Some((_, browser)), Some((_, system))) => format!("{browser} on {system}"),
        _ if agent.is_empty() => "Unknown client".to_owned(),
        _ => agent.to_owned(),
    }
}

/// Shows the page again with an error of a field.
async fn show_error(
    app: &DashboardState,
    request: &SessionRequest,
    field: &'static str,
    message: &str,
) -> Result<Response, PageError> {
    let mut extras = PageExtras::default();
    extras.errors.add(field, message);
    show(app, request, StatusCode::UNPROCESSABLE_ENTITY, extras).await
}

const REQUIRED: &str = "You need two-factor authentication here. Enable it to continue.";
const WRONG_PASSWORD: &str = "Incorrect password.";

/// Applies the rate limit for passwords and codes typed within a session.
fn check_rate_limit(app: &DashboardState, request: &SessionRequest) -> Result<(), PageError> {
    let from = AttemptOrigin { address: request.client.address, device: None };
    let email = &request.visitor.details.email;
    Ok(app.sign_in_throttle.check(Attempt::InSession, email, from)?)
}

async fn change_password(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    check_rate_limit(&app, request)?;
    let address = request.client.address.to_string();
    let hashing = &app.sign_in_throttle.passwords;
    let change = PasswordChange { old: form.raw("current"), new: form.raw("password") };
    match passwords::change(&app.context, hashing, &request.visitor, &address, change).await {
        Ok(Some(token)) => {
            let mut response = session::redirect_with_notice(HERE, "password");
            response
                .headers_mut()
                .insert(header::SET_COOKIE, request.client.cookies().session(&token));
            Ok(response)
        }
        Ok(None) => show_error(&app, request, "current", WRONG_PASSWORD).await,
        Err(Error::WeakPassword(why)) => {
            show_error(&app, request, "password", &why.to_string()).await
        }
        Err(other) => Err(other.into()),
    }
}

async fn begin_two_factor(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    check_rate_limit(&app, request)?;
    let (who, passwords) = (&request.visitor, &app.sign_in_throttle.passwords);
    match two_factor::begin_setup(&app.context, passwords, who, form.raw("begin_password")).await {
        Ok(true) => Ok(page::redirect(HERE)),
        Ok(false) => show_error(&app, request, "begin_password", WRONG_PASSWORD).await,
        Err(Error::Conflict(reason)) => {
            let notice = Some(Notice::error(reasons::conflict(&reason)));
            let extras = PageExtras { notice, ..PageExtras::default() };
            show(&app, request, StatusCode::CONFLICT, extras).await
        }
        Err(other) => Err(other.into()),
    }
}

async fn confirm_two_factor(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    check_rate_limit(&app, request)?;
    let (who, actor) = (&request.visitor, request.actor());
    match two_factor::confirm_setup(&app.context, who, &actor, form.text("code")).await {
        Ok(Some(codes)) => {
            end_others_if_wanted(&app, &posted).await?;
            show_codes(&app, request, &codes).await
        }
        Ok(None) => {
            let why = "Incorrect code. Enter the current code from your authenticator app.";
            show_error(&app, request, "code", why).await
        }
        // A form submitted twice: already enabled.
        Err(Error::Conflict(_)) => Ok(page::redirect(HERE)),
        Err(other) => Err(other.into()),
    }
}

async fn show_codes(
    app: &DashboardState,
    request: &SessionRequest,
    codes: &[RecoveryCode],
) -> Result<Response, PageError> {
    let codes = codes.iter().map(RecoveryCode::reveal).collect();
    show(app, request, StatusCode::OK, PageExtras { codes, ..PageExtras::default() }).await
}

async fn renew_codes(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    check_rate_limit(&app, request)?;
    let (actor, passwords) = (request.actor(), &app.sign_in_throttle.passwords);
    let codes = two_factor::regenerate_recovery_codes(
        &app.context,
        passwords,
        &actor,
        form.raw("codes_password"),
    );
    match codes.await? {
        Some(codes) => {
            end_others_if_wanted(&app, &posted).await?;
            show_codes(&app, request, &codes).await
        }
        None => show_error(&app, request, "codes_password", WRONG_PASSWORD).await,
    }
}

async fn disable_two_factor(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    check_rate_limit(&app, request)?;
    let (actor, passwords) = (request.actor(), &app.sign_in_throttle.passwords);
    let typed = form.raw("off_password");
    match two_factor::disable(&app.context, passwords, &actor, typed).await? {
        true => {
            end_others_if_wanted(&app, &posted).await?;
            Ok(session::redirect_with_notice(HERE, "off"))
        }
        false => show_error(&app, request, "off_password", WRONG_PASSWORD).await,
    }
}

/// Ends the other sessions of the user if the form says so.
async fn end_others_if_wanted(app: &DashboardState, posted: &SessionForm) -> Result<(), PageError> {
    let SessionForm { request, form } = posted;
    if form.text("end_others") == "yes" {
        sessions::end_others(&app.context, &request.visitor, &request.actor()).await?;
    }
    Ok(())
}

/// Sends the link that confirms the email address again.
async fn send_confirmation(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let request = &posted.request;
    if confirmations::send_again(&app.context, &request.visitor).await? {
        return Ok(session::redirect_with_notice(HERE, "sent"));
    }
    let text =
        "We sent you several links today already. Check your spam folder, or try again tomorrow.";
    let extras = PageExtras { notice: Some(Notice::error(text)), ..PageExtras::default() };
    show(&app, request, StatusCode::TOO_MANY_REQUESTS, extras).await
}

async fn end_session(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    let id: SessionId = form.text("id").parse().map_err(|_| PageError::invalid_form())?;
    match sessions::end(&app.context, &request.actor(), id).await {
        Ok(()) | Err(Error::NotFound) => Ok(session::redirect_with_notice(HERE, "ended")),
        Err(other) => Err(other.into()),
    }
}

async fn end_other_sessions(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let request = &posted.request;
    sessions::end_others(&app.context, &request.visitor, &request.actor()).await?;
    Ok(session::redirect_with_notice(HERE, "others"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_agents_are_shortened() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36";
        let edge =
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0";
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1";
        for (agent, name) in [
            (chrome, "Chrome on Linux"),
            (edge, "Edge on Windows"),
            (phone, "Safari on iPhone"),
            ("curl/8.5.0", "curl/8.5.0"),
            ("", "Unknown client"),
        ] {
            assert_eq!(browser(agent), name);
        }
    }
}
