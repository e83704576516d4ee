//! Coming in and going out.

use crate::app::App;
use crate::dashboard::form::Faults;
use crate::dashboard::outside::{self, Outside, Stranger};
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Plain};
use crate::dashboard::visit::{self, Posted};
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::email;
use heliograph_domain::secret::Token;
use heliograph_service::error::Error;
use heliograph_service::one_time_links::Kind;
use heliograph_service::sign_in::{self, Door, Entered};
use heliograph_service::{one_time_links, sessions};
use std::sync::Arc;

/// Where the first link leads: a newcomer begins with a phone in hand.
const FIRST: &str = "/phone";

#[derive(Template)]
#[template(path = "dashboard/sign_in.html")]
struct SignIn {
    shell: Plain,
    next: String,
    email: String,
    email_error: String,
    password_error: String,
    sign_up: bool,
}

/// The second step.
#[derive(Template)]
#[template(path = "dashboard/code.html")]
struct Code {
    shell: Plain,
    action: String,
    next: String,
    email: String,
    code_error: String,
}

/// A link that signs in.
#[derive(Template)]
#[template(path = "dashboard/link.html")]
struct Link {
    shell: Plain,
    action: String,
    /// Who comes in by it.
    email: String,
    /// Who is signed in here now; empty when nobody is.
    here: String,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/sign-in", get(form).post(by_password))
        .route("/sign-in/{link}", get(link).post(by_link))
        .route("/sign-in/code/{way}", get(code).post(by_code))
        .route("/sign-out", post(sign_out))
}

/// What was done before this page is shown.
const TOLD: [(&str, &str); 2] = [
    ("out", "You are signed out."),
    ("reset", "Your password is set, and all sessions have ended. Sign in with it."),
];

async fn form(
    State(app): State<Arc<App>>,
    outside: Outside,
    uri: Uri,
) -> Result<Response, Refusal> {
    let next = outside::next(&uri);
    if outside.visitor(&app).await?.is_some() {
        return Ok(page::go(or_home(&next)));
    }
    let (notice, filled) = (visit::told(&uri, &TOLD), (next, String::new()));
    show(&app, &outside, (StatusCode::OK, notice), filled, &Faults::default())
}

fn show(
    app: &App,
    outside: &Outside,
    (status, notice): (StatusCode, Option<Notice>),
    (next, email): (String, String),
    faults: &Faults,
) -> Result<Response, Refusal> {
    let shell = outside.shell(app, "Sign in", notice)?;
    let nonce = shell.nonce.clone();
    let page = SignIn {
        shell,
        next,
        email,
        email_error: faults.of("email").to_owned(),
        password_error: faults.of("password").to_owned(),
        sign_up: app.context.settings().entrance.open,
    };
    Ok(outside.page(status, &nonce, &page))
}

async fn by_password(
    State(app): State<Arc<App>>,
    Stranger { outside, form }: Stranger,
) -> Result<Response, Refusal> {
    let (next, typed) = (outside::own(form.text("next")), form.text("email").to_owned());
    let mut faults = Faults::default();
    let email = email::parse(&typed);
    app.entrance.count(outside.peer.address, email.as_deref())?;
    if email.is_none() {
        faults.add("email", "Write an address like ann@example.com.");
    }
    if form.raw("password").is_empty() {
        faults.add("password", "Type your password.");
    }
    if let Some(email) = email.filter(|_| faults.is_empty()) {
        let pair = (email.as_str(), form.raw("password"));
        let passwords = &app.entrance.passwords;
        let (origin, invitation) = (outside.origin(), outside::invitation_of(&next));
        let comes = (&origin, invitation.as_ref());
        match sign_in::by_password(&app.context, passwords, pair, comes).await {
            Ok(Some(Door::In(entered))) => return Ok(enter(&outside, &next, &entered)),
            Ok(Some(Door::Code(way))) => return Ok(page::go(&to_code(&way, &next))),
            // Whatever is wrong, the words are the same.
            Ok(None) => {
                faults.add("password", "This address and this password do not belong together.")
            }
            Err(Error::Unauthenticated) => {
                faults.add("email", NO_ACCOUNT);
            }
            Err(other) => return Err(other.into()),
        }
    }
    show(&app, &outside, (StatusCode::UNPROCESSABLE_ENTITY, None), (next, typed), &faults)
}

/// On to where they wanted to go. Who has joined by signing in needs the page of the invitation no more.
fn enter(outside: &Outside, next: &str, entered: &Entered) -> Response {
    let next = if entered.joined { "/" } else { or_home(next) };
    outside.enter(next, &entered.session)
}

fn or_home(next: &str) -> &str {
    if next.is_empty() { "/" } else { next }
}

fn to_code(way: &Token, next: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("next", next);
    let path = one_time_links::path(Kind::SecondFactor, way);
    format!("{path}?{}", query.finish())
}

async fn code(
    State(app): State<Arc<App>>,
    outside: Outside,
    Path(way): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    show_code(&app, &outside, (&way, outside::next(&uri)), (StatusCode::OK, "")).await
}

async fn show_code(
    app: &App,
    outside: &Outside,
    (way, next): (&str, String),
    (status, fault): (StatusCode, &str),
) -> Result<Response, Refusal> {
    let found = async {
        let way = Token::parse(way).ok_or(Error::NotFound)?;
        one_time_links::whose(&app.context, &way, Kind::SecondFactor).await
    };
    let email = match found.await {
        Ok(email) => email,
        Err(Error::NotFound) => return too_late(app, outside, next),
        Err(other) => return Err(other.into()),
    };
    let shell = outside.shell(app, "Second step", None)?;
    let (nonce, action) = (shell.nonce.clone(), format!("/sign-in/code/{way}"));
    let page = Code { shell, action, next, email, code_error: fault.to_owned() };
    Ok(outside.page(status, &nonce, &page))
}

/// The way to the second step is closed: the first one is to be taken again.
fn too_late(app: &App, outside: &Outside, next: String) -> Result<Response, Refusal> {
    let notice = Notice::bad("That took too long, or was done already. Sign in again.");
    let told = (StatusCode::NOT_FOUND, Some(notice));
    show(app, outside, told, (next, String::new()), &Faults::default())
}

async fn by_code(
    State(app): State<Arc<App>>,
    Path(way): Path<String>,
    Stranger { outside, form }: Stranger,
) -> Result<Response, Refusal> {
    let next = outside::own(form.text("next"));
    let Some(token) = Token::parse(&way) else { return too_late(&app, &outside, next) };
    // As many tries as for passwords, whoever's code it is.
    let email = match one_time_links::whose(&app.context, &token, Kind::SecondFactor).await {
        Ok(email) => email,
        Err(Error::NotFound) => return too_late(&app, &outside, next),
        Err(other) => return Err(other.into()),
    };
    app.entrance.count(outside.peer.address, Some(&format!("code {email}")))?;
    let typed = form.text("code");
    let (origin, invitation) = (outside.origin(), outside::invitation_of(&next));
    match sign_in::by_code(&app.context, &token, typed, (&origin, invitation.as_ref())).await {
        Ok(Some(entered)) => Ok(enter(&outside, &next, &entered)),
        Err(Error::NotFound) => too_late(&app, &outside, next),
        Err(other) => Err(other.into()),
        Ok(None) => {
            let fault = "This code is wrong, too old, or was used before. Type the one that the app shows now.";
            show_code(&app, &outside, (&way, next), (StatusCode::UNPROCESSABLE_ENTITY, fault)).await
        }
    }
}

/// Says whose link this is, and uses nothing up: whatever looks at links before people do, such as the preview of a
/// chat, does not come in by it. Where nobody is signed in the page goes on by itself.
async fn link(
    State(app): State<Arc<App>>,
    outside: Outside,
    Path(link): Path<String>,
) -> Result<Response, Refusal> {
    let found = async {
        let token = Token::parse(&link).ok_or(Error::NotFound)?;
        one_time_links::whose(&app.context, &token, Kind::SignIn).await
    };
    let found = found.await;
    let visitor = outside.visitor(&app).await?;
    let email = match (found, &visitor) {
        (Ok(email), _) => email,
        (Err(Error::NotFound), Some(_)) => return Ok(page::go("/")),
        (Err(Error::NotFound), None) => return no_link(&app, &outside, USED),
        (Err(other), _) => return Err(other.into()),
    };
    let shell = outside.shell(&app, "Sign in", None)?;
    let (nonce, action) = (shell.nonce.clone(), format!("/sign-in/{link}"));
    let here = visitor.map(|visitor| visitor.signed.email).unwrap_or_default();
    Ok(outside.page(StatusCode::OK, &nonce, &Link { shell, action, email, here }))
}

/// Uses up a link from the command line or the operator.
async fn by_link(
    State(app): State<Arc<App>>,
    Path(link): Path<String>,
    Stranger { outside, .. }: Stranger,
) -> Result<Response, Refusal> {
    let used = async {
        let link = Token::parse(&link).ok_or(Error::NotFound)?;
        one_time_links::sign_in(&app.context, &link, &outside.origin()).await
    };
    match used.await {
        Ok(token) => Ok(outside.enter(FIRST, &token)),
        Err(Error::NotFound) => no_link(&app, &outside, USED),
        Err(Error::Unauthenticated) => no_link(&app, &outside, NO_ACCOUNT),
        Err(other) => Err(other.into()),
    }
}

const USED: &str = "That link was used before, or its time is over. 'heliograph account link --email …' makes another.";
const NO_ACCOUNT: &str = "You do not belong to an account any more. Ask for an invitation.";

fn no_link(app: &App, outside: &Outside, words: &str) -> Result<Response, Refusal> {
    let told = (StatusCode::NOT_FOUND, Some(Notice::bad(words)));
    show(app, outside, told, Default::default(), &Faults::default())
}

async fn sign_out(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let session = posted.visit.visitor.signed.session.id;
    match sessions::end(&app.context, &posted.visit.actor(), session).await {
        Ok(()) | Err(Error::NotFound) => {}
        Err(other) => return Err(other.into()),
    }
    let mut response = visit::done("/sign-in", "out");
    response.headers_mut().insert(header::SET_COOKIE, posted.visit.peer.forget());
    Ok(response)
}
