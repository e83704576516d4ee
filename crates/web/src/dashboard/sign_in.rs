//! Coming in and going out.

use crate::app::App;
use crate::dashboard::page;
use crate::dashboard::peer::Peer;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Plain};
use crate::dashboard::visit::{self, Posted};
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::secret::Token;
use heliograph_service::error::Error;
use heliograph_service::{one_time_links, sessions};
use std::sync::Arc;

/// Where the first link leads: a newcomer begins with a phone in hand.
const FIRST: &str = "/phone";

#[derive(Template)]
#[template(path = "dashboard/sign_in.html")]
struct SignIn {
    shell: Plain,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/sign-in", get(sign_in))
        .route("/sign-in/{link}", get(by_link).head(StatusCode::NO_CONTENT))
        .route("/sign-out", post(sign_out))
}

async fn sign_in(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Refusal> {
    let nonce = URL_SAFE_NO_PAD.encode(app.context.random::<18>()?);
    let notice = visit::told(&uri, &[("out", "You are signed out.")]);
    let shell = Plain { notice, ..Plain::new("Sign in", nonce) };
    Ok(page::html(StatusCode::OK, &shell.nonce.clone(), SignIn { shell }.render()))
}

/// Uses up a link from the command line. (A HEAD, by which some programs look at a link first, does not.)
async fn by_link(
    State(app): State<Arc<App>>,
    peer: Peer,
    Path(link): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let used = async {
        let link = Token::parse(&link).ok_or(Error::NotFound)?;
        one_time_links::sign_in(&app.context, &link, &peer.origin(&headers)).await
    };
    match used.await {
        Ok(token) => {
            let mut response = page::go(FIRST);
            response.headers_mut().insert(header::SET_COOKIE, peer.keep(&token));
            Ok(response)
        }
        Err(Error::NotFound) => {
            let nonce = URL_SAFE_NO_PAD.encode(app.context.random::<18>()?);
            let words = "That link was used before, or its time is over. 'heliograph account link --email …' makes another.";
            let shell = Plain { notice: Some(Notice::bad(words)), ..Plain::new("Sign in", nonce) };
            let nonce = shell.nonce.clone();
            Ok(page::html(StatusCode::NOT_FOUND, &nonce, SignIn { shell }.render()))
        }
        Err(other) => Err(other.into()),
    }
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
