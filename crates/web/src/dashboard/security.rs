//! `/settings/security`: password, second factor, and where a person is signed in.

use crate::app::App;
use crate::dashboard::form::Faults;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Shell};
use crate::dashboard::visit::{self, Posted, Visit};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::id::SessionId;
use heliograph_domain::recovery::RecoveryCode;
use heliograph_domain::totp::TotpSecret;
use heliograph_service::error::Error;
use heliograph_service::second_factor::{self, State as Factor};
use heliograph_service::{credentials, sessions};
use qrcode::QrCode;
use qrcode::render::svg;
use std::sync::Arc;

const HERE: &str = "/settings/security";

struct Session {
    id: String,
    agent: String,
    address: String,
    here: bool,
    since_iso: String,
    since: String,
    seen_iso: String,
    seen: String,
}

/// An app is being set up.
struct Setup {
    qr: String,
    secret: String,
}

#[derive(Template)]
#[template(path = "dashboard/security.html")]
struct Security {
    shell: Shell,
    has_password: bool,
    second_step: bool,
    codes_left: i64,
    setup: Option<Setup>,
    /// Fresh recovery codes, shown only now.
    codes: Vec<String>,
    faults: Faults,
    sessions: Vec<Session>,
}

/// What a page shows beside what is stored.
#[derive(Default)]
struct News {
    notice: Option<Notice>,
    codes: Vec<String>,
    faults: Faults,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(security))
        .route("/settings/security/password", post(password))
        .route("/settings/security/second-step", post(begin))
        .route("/settings/security/second-step/confirm", post(confirm))
        .route("/settings/security/second-step/off", post(off))
        .route("/settings/security/recovery-codes", post(renew_codes))
        .route("/settings/security/sessions/end", post(end))
        .route("/settings/security/sessions/others", post(end_others))
}

const TOLD: [(&str, &str); 4] = [
    ("password", "The password is changed. All other sessions have ended."),
    ("off", "The second step is off."),
    ("ended", "That session is over."),
    ("others", "All other sessions have ended."),
];

async fn security(
    State(app): State<Arc<App>>,
    visit: Visit,
    uri: Uri,
) -> Result<Response, Refusal> {
    let news = News { notice: visit::told(&uri, &TOLD), ..News::default() };
    show(&app, &visit, StatusCode::OK, news).await
}

async fn show(
    app: &App,
    visit: &Visit,
    status: StatusCode,
    news: News,
) -> Result<Response, Refusal> {
    let user = visit.visitor.signed.session.user;
    let (factor, has_password) = second_factor::state(&app.context, user).await?;
    let (second_step, codes_left, setup) = match &factor {
        Factor::Off => (false, 0, None),
        Factor::Begun(secret) => (false, 0, Some(setup(visit, secret)?)),
        Factor::On(left) => (true, *left, None),
    };
    let sessions = sessions::list(&app.context, &visit.visitor).await?;
    let News { notice, codes, faults } = news;
    let page = Security {
        shell: Shell { notice, ..visit.shell(app, "security", "Security").await? },
        has_password,
        second_step,
        codes_left,
        setup,
        codes,
        faults,
        sessions: sessions.into_iter().map(|s| session(s, visit)).collect(),
    };
    Ok(page::html(status, &page.shell.nonce.clone(), page.render()))
}

fn setup(visit: &Visit, secret: &TotpSecret) -> Result<Setup, Refusal> {
    let address = secret.address(&visit.visitor.signed.email);
    let code = QrCode::new(address.as_bytes()).map_err(|e| Error::Internal(e.to_string()))?;
    let qr = code.render::<svg::Color<'_>>().quiet_zone(false).build();
    // The picture stands in a page: without the line that only a file begins with.
    let qr = qr.split_once("?>").map_or(qr.as_str(), |(_, picture)| picture).to_owned();
    Ok(Setup { qr, secret: secret.reveal() })
}

fn session(s: heliograph_service::sessions::Session, visit: &Visit) -> Session {
    let (since_iso, seen_iso) = (s.created_at.to_string(), s.seen_at.to_string());
    let clock = |iso: &str| {
        let (day, time) = (iso.get(..10).unwrap_or_default(), iso.get(11..16).unwrap_or_default());
        format!("{day} {time} UTC")
    };
    let (since, seen) = (clock(&since_iso), clock(&seen_iso));
    let agent = browser(&s.agent);
    let (id, here) = (s.id.to_string(), s.id == visit.visitor.signed.session.id);
    Session { id, agent, address: s.address, here, since_iso, since, seen_iso, seen }
}

/// What a person calls their browser. Most say that they are several: the first that is found here is it.
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
        _ if agent.is_empty() => "A program without a name".to_owned(),
        _ => agent.to_owned(),
    }
}

/// The page again, with what is wrong beside its field.
async fn wrong(
    app: &App,
    visit: &Visit,
    field: &'static str,
    why: &str,
) -> Result<Response, Refusal> {
    let mut news = News::default();
    news.faults.add(field, why);
    show(app, visit, StatusCode::UNPROCESSABLE_ENTITY, news).await
}

const WRONG_PASSWORD: &str = "This is not your password.";

/// Who sits at an open session must not guess the password there.
fn count(app: &App, visit: &Visit) -> Result<(), Refusal> {
    let name = format!("signed in {}", visit.visitor.signed.email);
    Ok(app.entrance.count(visit.peer.address, Some(&name))?)
}

async fn password(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    count(&app, visit)?;
    let address = visit.peer.address.to_string();
    let (who, pair) =
        ((&visit.visitor, address.as_str()), (form.raw("current"), form.raw("password")));
    match credentials::change(&app.context, &app.entrance.passwords, who, pair).await {
        Ok(Some(token)) => {
            let mut response = visit::done(HERE, "password");
            response.headers_mut().insert(header::SET_COOKIE, visit.peer.keep(&token));
            Ok(response)
        }
        Ok(None) => wrong(&app, visit, "current", WRONG_PASSWORD).await,
        Err(Error::Weak(why)) => wrong(&app, visit, "password", &why.to_string()).await,
        Err(other) => Err(other.into()),
    }
}

async fn begin(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    count(&app, visit)?;
    let (actor, passwords) = (visit.actor(), &app.entrance.passwords);
    match second_factor::begin(&app.context, passwords, &actor, form.raw("begin_password")).await {
        Ok(true) => Ok(page::go(HERE)),
        Ok(false) => wrong(&app, visit, "begin_password", WRONG_PASSWORD).await,
        Err(Error::Conflict(why)) => {
            let news = News { notice: Some(Notice::bad(why)), ..News::default() };
            show(&app, visit, StatusCode::CONFLICT, news).await
        }
        Err(other) => Err(other.into()),
    }
}

async fn confirm(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    count(&app, visit)?;
    match second_factor::confirm(&app.context, &visit.actor(), form.text("code")).await {
        Ok(Some(codes)) => fresh(&app, visit, &codes).await,
        Ok(None) => {
            let why = "This code is wrong or too old. Type the one that the app shows now.";
            wrong(&app, visit, "code", why).await
        }
        // Sent twice: it is on.
        Err(Error::Conflict(_)) => Ok(page::go(HERE)),
        Err(other) => Err(other.into()),
    }
}

async fn fresh(app: &App, visit: &Visit, codes: &[RecoveryCode]) -> Result<Response, Refusal> {
    let codes = codes.iter().map(RecoveryCode::reveal).collect();
    show(app, visit, StatusCode::OK, News { codes, ..News::default() }).await
}

async fn renew_codes(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    count(&app, visit)?;
    let (actor, passwords) = (visit.actor(), &app.entrance.passwords);
    let codes =
        second_factor::renew_codes(&app.context, passwords, &actor, form.raw("codes_password"));
    match codes.await? {
        Some(codes) => fresh(&app, visit, &codes).await,
        None => wrong(&app, visit, "codes_password", WRONG_PASSWORD).await,
    }
}

async fn off(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    count(&app, visit)?;
    let (actor, passwords) = (visit.actor(), &app.entrance.passwords);
    let typed = form.raw("off_password");
    match second_factor::end(&app.context, passwords, &actor, typed).await? {
        true => Ok(visit::done(HERE, "off")),
        false => wrong(&app, visit, "off_password", WRONG_PASSWORD).await,
    }
}

async fn end(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    let id: SessionId = form.text("id").parse().map_err(|_| Refusal::bad_form())?;
    match sessions::end(&app.context, &visit.actor(), id).await {
        Ok(()) | Err(Error::NotFound) => Ok(visit::done(HERE, "ended")),
        Err(other) => Err(other.into()),
    }
}

async fn end_others(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let visit = &posted.visit;
    sessions::end_others(&app.context, &visit.visitor, &visit.actor()).await?;
    Ok(visit::done(HERE, "others"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_called_as_people_call_them() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36";
        let edge =
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0";
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1";
        for (agent, called) in [
            (chrome, "Chrome on Linux"),
            (edge, "Edge on Windows"),
            (phone, "Safari on iPhone"),
            ("curl/8.5.0", "curl/8.5.0"),
            ("", "A program without a name"),
        ] {
            assert_eq!(browser(agent), called);
        }
    }
}
