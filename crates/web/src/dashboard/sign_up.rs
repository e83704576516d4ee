//! Opening an account.

use crate::app::App;
use crate::dashboard::form::Faults;
use crate::dashboard::outside::{Outside, Stranger};
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Plain};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::email;
use heliograph_service::error::Error;
use heliograph_service::sign_in::{self, Door};
use heliograph_service::sign_up;
use std::sync::Arc;

/// Where a newcomer begins: with a phone in hand.
const FIRST: &str = "/phone";

#[derive(Template)]
#[template(path = "dashboard/sign_up.html")]
struct SignUp {
    shell: Plain,
    email: String,
    email_error: String,
    password_error: String,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/sign-up", get(form).post(open))
}

async fn form(State(app): State<Arc<App>>, outside: Outside) -> Result<Response, Refusal> {
    refuse_closed(&app)?;
    let notice = outside.visitor(&app).await?.map(|visitor| {
        let email = visitor.signed.email;
        Notice::good(format!(
            "You are signed in as {email}. This makes another account, for another address."
        ))
    });
    show(&app, &outside, (StatusCode::OK, notice), String::new(), &Faults::default())
}

/// Behind a closed door nothing is shown of it.
fn refuse_closed(app: &App) -> Result<(), Refusal> {
    match app.context.settings().entrance.open {
        true => Ok(()),
        false => Err(Refusal::not_found()),
    }
}

fn show(
    app: &App,
    outside: &Outside,
    (status, notice): (StatusCode, Option<Notice>),
    email: String,
    faults: &Faults,
) -> Result<Response, Refusal> {
    let shell = outside.shell(app, "Make an account", notice)?;
    let nonce = shell.nonce.clone();
    let page = SignUp {
        shell,
        email,
        email_error: faults.of("email").to_owned(),
        password_error: faults.of("password").to_owned(),
    };
    Ok(outside.page(status, &nonce, &page))
}

async fn open(
    State(app): State<Arc<App>>,
    Stranger { outside, form }: Stranger,
) -> Result<Response, Refusal> {
    refuse_closed(&app)?;
    let typed = form.text("email").to_owned();
    let email = email::parse(&typed);
    app.entrance.count(outside.peer.address, None)?;
    let mut faults = Faults::default();
    if email.is_none() {
        faults.add("email", "Write an address like ann@example.com.");
    }
    let (passwords, origin) = (&app.entrance.passwords, outside.origin());
    let pair = (email.as_deref().unwrap_or_default(), form.raw("password"));
    let opened = match faults.is_empty() {
        true => sign_up::open(&app.context, passwords, pair, &origin).await,
        false => Ok(None),
    };
    match opened {
        Ok(Some(token)) => return Ok(outside.enter(FIRST, &token)),
        // The same form, sent twice, leads to the same place.
        Ok(None) if faults.is_empty() => {
            app.entrance.count(outside.peer.address, email.as_deref())?;
            match sign_in::by_password(&app.context, passwords, pair, (&origin, None)).await {
                Ok(Some(Door::In(entered))) => return Ok(outside.enter(FIRST, &entered.session)),
                // Also for who belongs to no account any more: signing in tells them.
                Ok(_) | Err(Error::Unauthenticated) => faults.add(
                    "email",
                    "Somebody has signed up with this address. Sign in, or ask for a new password.",
                ),
                Err(other) => return Err(other.into()),
            }
        }
        Ok(None) => {}
        Err(Error::Weak(why)) => faults.add("password", why.to_string()),
        Err(other) => return Err(other.into()),
    }
    show(&app, &outside, (StatusCode::UNPROCESSABLE_ENTITY, None), typed, &faults)
}
