//! A new password for who forgot theirs.

use crate::app::App;
use crate::dashboard::form::Faults;
use crate::dashboard::outside::{Outside, Stranger};
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Plain};
use crate::dashboard::visit;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::email;
use heliograph_domain::secret::Token;
use heliograph_service::error::Error;
use heliograph_service::resets;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "dashboard/forgot.html")]
struct Forgot {
    shell: Plain,
    email: String,
    email_error: String,
    mail: bool,
    sent: bool,
}

#[derive(Template)]
#[template(path = "dashboard/reset.html")]
struct Reset {
    shell: Plain,
    action: String,
    email: String,
    password_error: String,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/reset", get(forgot).post(ask))
        .route("/reset/{token}", get(choose).post(set))
}

async fn forgot(State(app): State<Arc<App>>, outside: Outside) -> Result<Response, Refusal> {
    show_forgot(&app, &outside, (StatusCode::OK, None), String::new(), (&Faults::default(), false))
}

fn show_forgot(
    app: &App,
    outside: &Outside,
    (status, notice): (StatusCode, Option<Notice>),
    email: String,
    (faults, sent): (&Faults, bool),
) -> Result<Response, Refusal> {
    let shell = outside.shell(app, "Forgot the password?", notice)?;
    let nonce = shell.nonce.clone();
    let email_error = faults.of("email").to_owned();
    let mail = app.context.settings().entrance.mail;
    let page = Forgot { shell, email, email_error, mail, sent: sent && mail };
    Ok(outside.page(status, &nonce, &page))
}

/// Who asks is told the same, whether somebody has the address or not.
async fn ask(
    State(app): State<Arc<App>>,
    Stranger { outside, form }: Stranger,
) -> Result<Response, Refusal> {
    let typed = form.text("email").to_owned();
    let email = email::parse(&typed);
    app.entrance.count(outside.peer.address, email.as_deref())?;
    let Some(email) = email else {
        let mut faults = Faults::default();
        faults.add("email", "Write an address like ann@example.com.");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return show_forgot(&app, &outside, (status, None), typed, (&faults, false));
    };
    resets::ask(&app.context, &email, &outside.origin()).await?;
    show_forgot(&app, &outside, (StatusCode::OK, None), email, (&Faults::default(), true))
}

async fn choose(
    State(app): State<Arc<App>>,
    outside: Outside,
    Path(token): Path<String>,
) -> Result<Response, Refusal> {
    show(&app, &outside, &token, (StatusCode::OK, String::new())).await
}

async fn show(
    app: &App,
    outside: &Outside,
    token: &str,
    (status, fault): (StatusCode, String),
) -> Result<Response, Refusal> {
    let found = async {
        let token = Token::parse(token).ok_or(Error::NotFound)?;
        resets::whose(&app.context, &token).await
    };
    let email = match found.await {
        Ok(email) => email,
        Err(Error::NotFound) => return used_up(app, outside),
        Err(other) => return Err(other.into()),
    };
    let shell = outside.shell(app, "Choose a password", None)?;
    let (nonce, action) = (shell.nonce.clone(), format!("/reset/{token}"));
    let page = Reset { shell, action, email, password_error: fault };
    Ok(outside.page(status, &nonce, &page))
}

fn used_up(app: &App, outside: &Outside) -> Result<Response, Refusal> {
    let notice = Notice::bad("That link was used before, or its time is over. Ask for another.");
    let told = (StatusCode::NOT_FOUND, Some(notice));
    show_forgot(app, outside, told, String::new(), (&Faults::default(), false))
}

async fn set(
    State(app): State<Arc<App>>,
    Path(token): Path<String>,
    Stranger { outside, form }: Stranger,
) -> Result<Response, Refusal> {
    app.entrance.count(outside.peer.address, None)?;
    let done = async {
        let token = Token::parse(&token).ok_or(Error::NotFound)?;
        let pair = (&token, form.raw("password"));
        resets::set(&app.context, &app.entrance.passwords, pair, &outside.origin()).await
    };
    match done.await {
        Ok(()) => Ok(visit::done("/sign-in", "reset")),
        Err(Error::NotFound) => used_up(&app, &outside),
        Err(Error::Weak(why)) => {
            let told = (StatusCode::UNPROCESSABLE_ENTITY, why.to_string());
            show(&app, &outside, &token, told).await
        }
        Err(other) => Err(other.into()),
    }
}
