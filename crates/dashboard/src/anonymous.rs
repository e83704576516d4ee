//! Requests and forms of pages that need no session.

use crate::client::ClientInfo;
use crate::csrf;
use crate::error_page::PageError;
use crate::form::Form;
use crate::layout::{AnonymousLayout, Notice};
use crate::page;
use crate::session;
use crate::sign_in_throttle::{Attempt, AttemptOrigin};
use crate::state::DashboardState;
use askama::Template;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::secret::Token;
use heliograph_service::identity::known_devices;
use heliograph_service::identity::sessions::{self, AuthenticatedUser, SessionOrigin};
use heliograph_service::identity::sign_in::{self, FailedSignIn};
use heliograph_service::kernel::error::Error;
use std::sync::Arc;

/// A request for a page that needs no session.
#[derive(Clone, Debug)]
pub(crate) struct AnonymousRequest {
    /// The connection the request came from.
    pub(crate) client: ClientInfo,
    /// The headers of the request.
    pub(crate) headers: HeaderMap,
    /// The secret that CSRF tokens of this browser are derived from.
    token: Token,
    /// Whether the browser already has a cookie with this secret.
    has_cookie: bool,
}

impl AnonymousRequest {
    /// Returns address and user agent, for the session list.
    pub(crate) fn origin(&self) -> SessionOrigin {
        self.client.origin(&self.headers)
    }

    /// Returns the signed-in user, if the request has a valid session.
    pub(crate) async fn visitor(
        &self,
        app: &DashboardState,
    ) -> Result<Option<AuthenticatedUser>, PageError> {
        let Some(token) = self.client.cookies().session_token(&self.headers) else {
            return Ok(None);
        };
        match sessions::authenticate(&app.context, &token).await {
            Ok(visitor) => Ok(Some(visitor)),
            Err(Error::Unauthenticated) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// Returns the layout of a page.
    pub(crate) fn layout(
        &self,
        app: &DashboardState,
        title: &str,
        notice: Option<Notice>,
    ) -> Result<AnonymousLayout, PageError> {
        let nonce = URL_SAFE_NO_PAD.encode(app.context.random::<18>()?);
        let csrf = csrf::field(&self.token, &app.context.random()?);
        Ok(AnonymousLayout { csrf, notice, ..AnonymousLayout::new(title, nonce) })
    }

    /// Renders a page, and sets the cookie that its forms need.
    pub(crate) fn render(&self, status: StatusCode, nonce: &str, page: &impl Template) -> Response {
        let mut response = page::html(status, nonce, page.render());
        if !self.has_cookie {
            response
                .headers_mut()
                .append(header::SET_COOKIE, self.client.cookies().form(&self.token));
        }
        response
    }

    /// Redirects to a page and sets the cookie of a new session. The session that the browser had
    /// ends, and the browser becomes a known device of the user.
    pub(crate) async fn redirect_signed_in(
        &self,
        app: &DashboardState,
        path: &str,
        session: &Token,
    ) -> Result<Response, PageError> {
        let (cx, cookies) = (&app.context, self.client.cookies());
        if let Some(previous) = cookies.session_token(&self.headers) {
            sessions::end_previous(cx, &previous).await?;
        }
        let email = sessions::authenticate(cx, session).await?.details.email;
        let mut response = page::redirect(path);
        response.headers_mut().append(header::SET_COOKIE, cookies.session(session));
        self.remember_device(app, &mut response, &email).await?;
        Ok(response)
    }

    /// Makes the browser a known device of the person with this email address.
    pub(crate) async fn remember_device(
        &self,
        app: &DashboardState,
        response: &mut Response,
        email: &str,
    ) -> Result<(), PageError> {
        let mark = known_devices::remember(&app.context, email).await?;
        let cookie = self.client.cookies().known_device(&mark);
        response.headers_mut().append(header::SET_COOKIE, cookie);
        Ok(())
    }

    /// Records a wrong password after the response.
    pub(crate) fn record_failure(
        &self,
        app: &DashboardState,
        failed: FailedSignIn,
    ) -> Result<(), PageError> {
        let (context, origin) = (app.context.clone(), self.origin());
        let work = async move { sign_in::record_failure(&context, failed, &origin).await };
        Ok(app.after_response.run(work)?)
    }

    /// Counts an attempt at the person with this email address. Returns whether the browser is a
    /// known device of the person.
    pub(crate) async fn throttle(
        &self,
        app: &DashboardState,
        what: Attempt,
        email: &str,
    ) -> Result<bool, PageError> {
        let device = match self.client.cookies().device(&self.headers) {
            Some(cookie) => known_devices::recognize(&app.context, email, cookie).await?,
            None => None,
        };
        let from = AttemptOrigin { address: self.client.address, device: device.as_deref() };
        app.sign_in_throttle.check(what, email, from)?;
        Ok(device.is_some())
    }
}

impl FromRequestParts<Arc<DashboardState>> for AnonymousRequest {
    type Rejection = PageError;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<DashboardState>,
    ) -> Result<Self, PageError> {
        let Ok(client) = ClientInfo::from_request_parts(parts, app).await;
        let headers = parts.headers.clone();
        let token = client.cookies().form_token(&headers);
        let has_cookie = token.is_some();
        let token = token.map_or_else(|| app.context.token(), Ok)?;
        Ok(Self { client, headers, token, has_cookie })
    }
}

/// A form submitted without a session, with a valid CSRF token.
#[derive(Clone, Debug)]
pub(crate) struct AnonymousForm {
    /// The request.
    pub(crate) request: AnonymousRequest,
    /// The fields.
    pub(crate) form: Form,
}

impl FromRequest<Arc<DashboardState>> for AnonymousForm {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &Arc<DashboardState>) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let request = AnonymousRequest::from_request_parts(&mut parts, app).await?;
        let form = Form::read(&session::read_body(&parts.headers, body).await?)?;
        match request.has_cookie && csrf::is_good(&request.token, form.raw("csrf")) {
            true => Ok(Self { request, form }),
            false => Err(PageError::csrf_failed()),
        }
    }
}

/// Returns the local path in the query parameter `next`, or an empty string.
pub(crate) fn next_path(uri: &Uri) -> String {
    let query = uri.query().unwrap_or_default();
    let next = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "next");
    local_path(next.as_ref().map_or("", |(_, path)| path))
}

/// Returns a path if it is local, otherwise an empty string.
pub(crate) fn local_path(path: &str) -> String {
    if page::is_local_path(path) { path.to_owned() } else { String::new() }
}

/// Returns the token of an invitation from the path of its page.
pub(crate) fn invitation_token(path: &str) -> Option<Token> {
    Token::parse(path.strip_prefix("/join/")?)
}
