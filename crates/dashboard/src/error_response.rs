//! Renders the errors of pages: a redirect to sign-in, or a page that explains the error.

use crate::error_page::PageError;
use crate::layout::{AnonymousLayout, Layout};
use crate::page;
use crate::session::SessionRequest;
use crate::sign_in_throttle::TooManyAttempts;
use crate::state::DashboardState;
use askama::Template;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "error.html")]
struct Page {
    layout: AnonymousLayout,
    text: String,
}

/// The same page inside of the layout, with the navigation.
#[derive(Template)]
#[template(path = "error_signed_in.html")]
struct SignedInPage {
    layout: Layout,
    text: String,
}

/// Middleware that renders the errors of page handlers.
pub(crate) async fn render(
    State(app): State<Arc<DashboardState>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut response = next.run(Request::from_parts(parts.clone(), body)).await;
    match response.extensions_mut().remove::<PageError>() {
        None => response,
        Some(error) => respond(&app, &mut parts, error).await,
    }
}

/// Returns the page for a path that does not exist.
pub async fn not_found(app: &Arc<DashboardState>, mut request: Parts) -> Response {
    respond(app, &mut request, PageError::not_found()).await
}

/// Returns the page for a request whose method the path does not support, such as opening the
/// address of a form.
pub async fn method_not_allowed(app: &Arc<DashboardState>, mut request: Parts) -> Response {
    respond(app, &mut request, PageError::method_not_allowed()).await
}

/// Returns the response for an error: a redirect to sign-in, or an error page.
async fn respond(app: &Arc<DashboardState>, request: &mut Parts, error: PageError) -> Response {
    match error {
        PageError::SignInRequired(next) => {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("next", &next);
            page::redirect(&format!("/sign-in?{}", query.finish()))
        }
        PageError::TwoFactorRequired => page::redirect("/settings/security"),
        PageError::OtherMode(path) => page::redirect(&path),
        PageError::RateLimited(many) => {
            let seconds = many.seconds();
            let (count, unit) = match seconds {
                1 => (1, "second"),
                2..=120 => (seconds, "seconds"),
                _ => (seconds.div_ceil(60), "minutes"),
            };
            let text = format!("Wait {count} {unit}, then go back and try again.");
            let status = TooManyAttempts::STATUS;
            let response = error_page(app, request, (status, "Too many attempts", text)).await;
            retry_after(response, seconds)
        }
        PageError::Message { status, title, text } => {
            let response = error_page(app, request, (status, title, text)).await;
            match status {
                StatusCode::SERVICE_UNAVAILABLE => retry_after(response, 2),
                _ => response,
            }
        }
    }
}

/// Renders an error page; users who are signed in keep their navigation.
async fn error_page(
    app: &Arc<DashboardState>,
    request: &mut Parts,
    (status, title, text): (StatusCode, &str, String),
) -> Response {
    if let Some(layout) = signed_in_layout(app, request, title).await {
        let nonce = layout.nonce.clone();
        return page::html(status, &nonce, SignedInPage { layout, text }.render());
    }
    let nonce = app.context.random::<18>().map(|r| URL_SAFE_NO_PAD.encode(r));
    let layout = AnonymousLayout::new(title, nonce.unwrap_or_default());
    let (nonce, page) = (layout.nonce.clone(), Page { layout, text });
    page::html(status, &nonce, page.render())
}

/// Returns the layout for the user of the request; `None` without a session, or when the error
/// prevents reading it.
async fn signed_in_layout(
    app: &Arc<DashboardState>,
    request: &mut Parts,
    title: &str,
) -> Option<Layout> {
    let session = SessionRequest::from_request_parts(request, app).await.ok()?;
    session.layout(app, "", title).await.ok()
}

fn retry_after(mut response: Response, seconds: u64) -> Response {
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}
