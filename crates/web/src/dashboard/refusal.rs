//! Why a page is not shown: the way to sign in, or a page that says what is wrong.

use crate::app::App;
use crate::dashboard::page;
use crate::dashboard::shell::Plain;
use crate::entrance::TooMany;
use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_service::error::Error;
use std::sync::Arc;

/// What a person gets instead of a page.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// They have to sign in, and then go on there.
    SignIn(String),
    /// They have tried too often.
    Later(TooMany),
    /// They read what is wrong.
    Told {
        /// The status of the answer.
        status: StatusCode,
        /// What is wrong, in few words.
        title: &'static str,
        /// What to do about it.
        text: String,
    },
}

impl Refusal {
    fn told(status: StatusCode, title: &'static str, text: &str) -> Self {
        Self::Told { status, title, text: text.to_owned() }
    }

    pub(crate) fn not_found() -> Self {
        let text = "There is no such page, or it is not yours. Look whether you are in the right account, and in the \
                    right one of test and live mode.";
        Self::told(StatusCode::NOT_FOUND, "Nothing here", text)
    }

    /// A link that works no more.
    pub(crate) fn gone(text: &str) -> Self {
        Self::told(StatusCode::NOT_FOUND, "Nothing here any more", text)
    }

    pub(crate) fn only_a_form() -> Self {
        let text = "This address only takes what a form sends. Choose a page from the dashboard.";
        Self::told(StatusCode::METHOD_NOT_ALLOWED, "There is no page here", text)
    }

    pub(crate) fn bad_form() -> Self {
        let text = "This form could not be read. Go back, reload the page, and send it again.";
        Self::told(StatusCode::BAD_REQUEST, "That form was not whole", text)
    }

    pub(crate) fn too_long() -> Self {
        let text = "This form is longer than anything that fits in it. Go back and shorten it.";
        Self::too_long_because(text)
    }

    /// More than fits, and how much does.
    pub(crate) fn too_long_because(text: &str) -> Self {
        Self::told(StatusCode::PAYLOAD_TOO_LARGE, "That is too long", text)
    }

    pub(crate) fn foreign() -> Self {
        let text = "This form did not come from a page of your session, so nothing was done. Go back, reload the page, \
                    and send it again.";
        Self::told(StatusCode::FORBIDDEN, "Nothing was done", text)
    }

    pub(crate) fn elsewhere() -> Self {
        let text = "The page that you sent this from showed another account, or the other one of test and live mode: \
                    you switched since, perhaps in another tab. Nothing was done. Go back, reload the page, look where \
                    you are, and send it again.";
        Self::told(StatusCode::CONFLICT, "You are somewhere else now", text)
    }

    pub(crate) fn forbidden() -> Self {
        let text = "Your role in this account does not allow that. An owner or an admin of the account can do it, or \
                    give you another role.";
        Self::told(StatusCode::FORBIDDEN, "Not with your role", text)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Unauthenticated => Self::SignIn("/".to_owned()),
            Error::NotFound => Self::not_found(),
            Error::Scope(_) => Self::forbidden(),
            Error::BadTarget(_)
            | Error::Weak(_)
            | Error::InsufficientBalance
            | Error::RecipientOptedOut
            | Error::Conflict(_)
            | Error::NotCancellable(_)
            | Error::DestinationNotAllowed
            | Error::TooManyParts { .. }
            | Error::IdempotencyKeyReused => {
                Self::told(StatusCode::CONFLICT, "That did not work", &error.to_string())
            }
            Error::RequestInFlight | Error::Overloaded(_) | Error::Unsure(_) => {
                tracing::warn!(%error, "a page has to wait");
                let text = "The service is busy, or its database is away for a moment. Try again in a few seconds.";
                Self::told(StatusCode::SERVICE_UNAVAILABLE, "Not just now", text)
            }
            Error::Internal(_) => {
                tracing::error!(%error, "a page failed");
                let text = "Something went wrong on our side; the log of the service says what.";
                Self::told(StatusCode::INTERNAL_SERVER_ERROR, "That went wrong", text)
            }
        }
    }
}

impl From<TooMany> for Refusal {
    fn from(many: TooMany) -> Self {
        Self::Later(many)
    }
}

/// It is rendered further out, where there is randomness for its nonce.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[derive(Template)]
#[template(path = "dashboard/refused.html")]
struct Page {
    shell: Plain,
    text: String,
}

/// Renders refusals.
pub(crate) async fn render(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<Refusal>() {
        None => response,
        Some(refusal) => rendered(&app, refusal),
    }
}

/// A refusal as a person sees it.
pub(crate) fn rendered(app: &App, refusal: Refusal) -> Response {
    match refusal {
        Refusal::SignIn(next) => {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("next", &next);
            page::go(&format!("/sign-in?{}", query.finish()))
        }
        Refusal::Later(many) => {
            let seconds = many.seconds();
            let text = format!(
                "There were too many tries. Wait {seconds} seconds, go back, and try again."
            );
            let response = told(app, TooMany::STATUS, "Not so fast", text);
            retry_after(response, seconds)
        }
        Refusal::Told { status, title, text } => {
            let response = told(app, status, title, text);
            match status {
                StatusCode::SERVICE_UNAVAILABLE => retry_after(response, 2),
                _ => response,
            }
        }
    }
}

fn told(app: &App, status: StatusCode, title: &str, text: String) -> Response {
    let nonce = app.context.random::<18>().map(|r| URL_SAFE_NO_PAD.encode(r));
    let shell = Plain::new(title, nonce.unwrap_or_default());
    let (nonce, page) = (shell.nonce.clone(), Page { shell, text });
    page::html(status, &nonce, page.render())
}

fn retry_after(mut response: Response, seconds: u64) -> Response {
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}
