//! Accepting an invitation.

use crate::app::App;
use crate::dashboard::csrf;
use crate::dashboard::outside::{Outside, Stranger};
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Plain;
use crate::dashboard::visit::Posted;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::secret::Token;
use heliograph_service::error::Error;
use heliograph_service::{people, sessions};
use std::sync::Arc;

/// Who opens the link of an invitation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Guest {
    /// The person who is invited, signed in.
    Here,
    /// Somebody else, signed in.
    Other,
    /// Nobody, and the person who is invited can sign in.
    Known,
    /// Nobody, and the person who is invited is new.
    New,
}

#[derive(Template)]
#[template(path = "dashboard/join.html")]
struct Join {
    shell: Plain,
    path: String,
    account: String,
    email: String,
    role: &'static str,
    guest: Guest,
    password_error: String,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/join/{token}", get(invitation).post(join))
        .route("/join/{token}/anew", post(join_anew))
}

async fn invitation(
    State(app): State<Arc<App>>,
    outside: Outside,
    Path(token): Path<String>,
) -> Result<Response, Refusal> {
    show(&app, &outside, &token, (StatusCode::OK, String::new())).await
}

fn over() -> Refusal {
    let text = "This invitation was used or taken back, or its week is over. Ask for another.";
    Refusal::gone(text)
}

async fn show(
    app: &App,
    outside: &Outside,
    token: &str,
    (status, fault): (StatusCode, String),
) -> Result<Response, Refusal> {
    let secret = Token::parse(token).ok_or_else(over)?;
    let found = people::invited(&app.context, &secret).await;
    let (invitation, account, known) = match found {
        Err(Error::NotFound) => return Err(over()),
        other => other?,
    };
    let visitor = outside.visitor(app).await?;
    let guest = match &visitor {
        Some(v) if v.signed.email == invitation.email => Guest::Here,
        Some(_) => Guest::Other,
        None if known => Guest::Known,
        None => Guest::New,
    };
    let mut shell = outside.shell(app, "Join", None)?;
    if let Some(session) = outside.peer.token(&outside.headers).filter(|_| guest == Guest::Here) {
        // This form goes into the session.
        shell.csrf = csrf::field(&session, &app.context.random()?);
    }
    let (nonce, path) = (shell.nonce.clone(), format!("/join/{token}"));
    let (email, role) = (invitation.email, invitation.role.name());
    let page = Join { shell, path, account, email, role, guest, password_error: fault };
    Ok(outside.page(status, &nonce, &page))
}

async fn join(
    State(app): State<Arc<App>>,
    Path(token): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let token = Token::parse(&token).ok_or_else(over)?;
    let (visit, cx) = (&posted.visit, &app.context);
    match people::join(cx, &visit.visitor, &visit.peer.address.to_string(), &token).await {
        Ok(account) => {
            sessions::look_at(cx, &visit.visitor, account, visit.mode()).await?;
            Ok(page::go("/"))
        }
        Err(Error::NotFound) => Err(over()),
        Err(other) => Err(other.into()),
    }
}

async fn join_anew(
    State(app): State<Arc<App>>,
    Path(token): Path<String>,
    Stranger { outside, form }: Stranger,
) -> Result<Response, Refusal> {
    app.entrance.count(outside.peer.address, None)?;
    let secret = Token::parse(&token).ok_or_else(over)?;
    let pair = (&secret, form.raw("password"));
    let passwords = &app.entrance.passwords;
    match people::join_anew(&app.context, passwords, pair, &outside.origin()).await {
        Ok(session) => Ok(outside.enter("/", &session)),
        Err(Error::NotFound) => Err(over()),
        Err(Error::Weak(why)) => {
            let told = (StatusCode::UNPROCESSABLE_ENTITY, why.to_string());
            show(&app, &outside, &token, told).await
        }
        Err(other) => Err(other.into()),
    }
}
