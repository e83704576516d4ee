//! Outside: somebody who is not signed in looks at a page, or sends a form from it.

use crate::app::App;
use crate::dashboard::csrf;
use crate::dashboard::form::Form;
use crate::dashboard::page;
use crate::dashboard::peer::Peer;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Plain};
use crate::dashboard::visit;
use askama::Template;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::secret::Token;
use heliograph_service::error::Error;
use heliograph_service::sessions::{self, Origin, Visitor};
use std::sync::Arc;

/// Somebody whom we do not know, or who does not need to be known here.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    /// From where.
    pub(crate) peer: Peer,
    /// The headers they sent.
    pub(crate) headers: HeaderMap,
    /// What ties their forms to their browser, and whether the browser has it already.
    token: Token,
    kept: bool,
}

impl Outside {
    /// Whence they sign in.
    pub(crate) fn origin(&self) -> Origin {
        self.peer.origin(&self.headers)
    }

    /// Who is signed in all the same, if anybody is.
    pub(crate) async fn visitor(&self, app: &App) -> Result<Option<Visitor>, Refusal> {
        let Some(token) = self.peer.token(&self.headers) else { return Ok(None) };
        match sessions::recognise(&app.context, &token).await {
            Ok(visitor) => Ok(Some(visitor)),
            Err(Error::Unauthenticated) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// What stands around a page for them.
    pub(crate) fn shell(
        &self,
        app: &App,
        title: &str,
        notice: Option<Notice>,
    ) -> Result<Plain, Refusal> {
        let nonce = URL_SAFE_NO_PAD.encode(app.context.random::<18>()?);
        let csrf = csrf::field(&self.token, &app.context.random()?);
        Ok(Plain { csrf, notice, ..Plain::new(title, nonce) })
    }

    /// A page whose forms can come back.
    pub(crate) fn page(&self, status: StatusCode, nonce: &str, page: &impl Template) -> Response {
        let mut response = page::html(status, nonce, page.render());
        if !self.kept {
            response.headers_mut().append(header::SET_COOKIE, self.peer.keep_form(&self.token));
        }
        response
    }

    /// Sends them in, with the secret of their session.
    pub(crate) fn enter(&self, path: &str, session: &Token) -> Response {
        let mut response = page::go(path);
        response.headers_mut().append(header::SET_COOKIE, self.peer.keep(session));
        response
    }
}

impl FromRequestParts<Arc<App>> for Outside {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        let Ok(peer) = Peer::from_request_parts(parts, app).await;
        let headers = parts.headers.clone();
        let token = peer.form_token(&headers);
        let kept = token.is_some();
        let token = token.map_or_else(|| app.context.token(), Ok)?;
        Ok(Self { peer, headers, token, kept })
    }
}

/// A form that they filled in.
#[derive(Clone, Debug)]
pub(crate) struct Stranger {
    /// Who.
    pub(crate) outside: Outside,
    /// What it says.
    pub(crate) form: Form,
}

impl FromRequest<Arc<App>> for Stranger {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let outside = Outside::from_request_parts(&mut parts, app).await?;
        let form = Form::read(&visit::read(&parts.headers, body).await?)?;
        match outside.kept && csrf::is_good(&outside.token, form.raw("csrf")) {
            true => Ok(Self { outside, form }),
            false => Err(Refusal::foreign()),
        }
    }
}

/// The page to go on to, as an address or a form names it: one of ours, or none.
pub(crate) fn next(uri: &Uri) -> String {
    let query = uri.query().unwrap_or_default();
    let next = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "next");
    own(next.as_ref().map_or("", |(_, path)| path))
}

/// A path, if it leads to a page of ours.
pub(crate) fn own(path: &str) -> String {
    if page::is_own(path) { path.to_owned() } else { String::new() }
}

/// The invitation to whose page a path leads.
pub(crate) fn invitation_of(path: &str) -> Option<Token> {
    Token::parse(path.strip_prefix("/join/")?)
}
