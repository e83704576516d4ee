//! A visit: who looks at a page, and what they send from it.

use crate::app::App;
use crate::dashboard::assets;
use crate::dashboard::csrf;
use crate::dashboard::form::{self, Form};
use crate::dashboard::page;
use crate::dashboard::peer::{self, Peer};
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Shell};
use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::secret::Token;
use heliograph_service::audit::Actor;
use heliograph_service::caller::Caller;
use heliograph_service::error::Error;
use heliograph_service::sessions::{self, Visitor};
use std::sync::Arc;

const HX_REQUEST: HeaderName = HeaderName::from_static("hx-request");
const HX_CURRENT_URL: HeaderName = HeaderName::from_static("hx-current-url");

/// Somebody who is signed in looks at a page.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// Who.
    pub(crate) visitor: Visitor,
    /// From where.
    pub(crate) peer: Peer,
    /// The address of this service as they know it.
    pub(crate) base: String,
    /// Whether htmx asks, which wants a piece of a page.
    pub(crate) piece: bool,
    token: Token,
}

impl Visit {
    /// As a caller of what keys can do as well.
    pub(crate) fn caller(&self) -> Caller {
        self.visitor.caller()
    }

    /// Who does what is done now, for the audit log.
    pub(crate) fn actor(&self) -> Actor {
        self.visitor.actor(&self.peer.address.to_string())
    }

    /// The world that is looked at.
    pub(crate) const fn mode(&self) -> Mode {
        self.visitor.signed.session.mode
    }

    /// The secret of the session.
    pub(crate) const fn token(&self) -> &Token {
        &self.token
    }

    /// What stands around a page; `here` is its entry in the navigation.
    pub(crate) async fn shell(
        &self,
        app: &App,
        here: &'static str,
        title: &str,
    ) -> Result<Shell, Refusal> {
        let signed = &self.visitor.signed;
        let all = sessions::accounts(&app.context, &self.visitor).await?;
        Ok(Shell {
            title: title.to_owned(),
            here,
            version: assets::VERSION,
            nonce: URL_SAFE_NO_PAD.encode(app.context.random::<18>()?),
            csrf: self.csrf(app)?,
            email: signed.email.clone(),
            account: signed.account_name.clone(),
            accounts: all.into_iter().map(|(id, name, _)| (id.0, name)).collect(),
            test: signed.session.mode == Mode::Test,
            operator: signed.operator,
            manages: signed.role.manages(),
            sends: signed.role.scopes().allow(Scope::Send),
            balance: format!("{} {}", signed.available, signed.currency),
            notice: None,
        })
    }

    /// The field that lets a form come back, for pieces of pages; whole pages have it in their shell.
    pub(crate) fn csrf(&self, app: &App) -> Result<String, Refusal> {
        Ok(format!("{}.{}", csrf::field(&self.token, &app.context.random()?), self.place()))
    }

    /// Which account and which mode are looked at, as forms carry it.
    fn place(&self) -> String {
        format!("{}.{}", self.visitor.signed.session.account, self.mode())
    }

    /// Refuses a form that is not of this session, or of a page that showed another account or the other mode: nobody
    /// sends for money what they believe to be a test. `anywhere` is for forms that do the same wherever they are.
    pub(crate) fn admit(&self, csrf: &str, anywhere: bool) -> Result<(), Refusal> {
        let (secret, place) = csrf.split_once('.').unwrap_or((csrf, ""));
        if !csrf::is_good(&self.token, secret) {
            return Err(Refusal::foreign());
        }
        match anywhere || place.is_empty() || place == self.place() {
            true => Ok(()),
            false => Err(Refusal::elsewhere()),
        }
    }
}

/// Forms that do the same from wherever they are sent.
const ANYWHERE: [&str; 3] = ["/mode", "/account", "/sign-out"];

impl FromRequestParts<Arc<App>> for Visit {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        let Ok(peer) = Peer::from_request_parts(parts, app).await;
        let back = || Refusal::SignIn(way_back(parts));
        let token = peer.token(&parts.headers).ok_or_else(back)?;
        let visitor = match sessions::recognise(&app.context, &token).await {
            Ok(visitor) => visitor,
            Err(Error::Unauthenticated) => return Err(back()),
            Err(other) => return Err(other.into()),
        };
        let entrance = &app.context.settings().entrance;
        let base = match entrance.named {
            true => entrance.base_url.clone(),
            false => peer.base(&parts.headers),
        };
        let piece = parts.headers.contains_key(HX_REQUEST);
        Ok(Self { visitor, peer, base, piece, token })
    }
}

/// Where to go on after signing in: to the page that was asked for, or from which something was sent.
fn way_back(parts: &Parts) -> String {
    let text = |name| parts.headers.get(name).and_then(|v| v.to_str().ok());
    let page = match parts.method {
        Method::GET if !parts.headers.contains_key(HX_REQUEST) => None,
        _ => Some(text(HX_CURRENT_URL).or(text(header::REFERER)).unwrap_or_default()),
    };
    let way = match page {
        None => parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        Some(page) => path_of(page).unwrap_or_default(),
    };
    if page::is_own(&way) { way } else { "/".to_owned() }
}

fn path_of(page: &str) -> Option<String> {
    let uri: Uri = page.parse().ok()?;
    uri.path_and_query().map(ToString::to_string)
}

/// A form that was filled in on a page of the visitor's own session.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    /// By whom.
    pub(crate) visit: Visit,
    /// What it says.
    pub(crate) form: Form,
}

impl FromRequest<Arc<App>> for Posted {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, app).await?;
        let body = read(&parts.headers, body).await?;
        let form = Form::read(&body)?;
        visit.admit(form.raw("csrf"), ANYWHERE.contains(&parts.uri.path()))?;
        Ok(Self { visit, form })
    }
}

/// Reads what was sent from a page of ours.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<axum::body::Bytes, Refusal> {
    if !peer::is_own_page(headers) {
        return Err(Refusal::foreign());
    }
    to_bytes(body, form::LONGEST).await.map_err(|_| Refusal::too_long())
}

/// Sends the browser to a page, which then says what was done.
pub(crate) fn done(path: &str, what: &'static str) -> Response {
    let joint = if path.contains('?') { '&' } else { '?' };
    page::go(&format!("{path}{joint}done={what}"))
}

/// What a page says that was done before it, by its word in the address.
pub(crate) fn told(uri: &Uri, words: &[(&str, &str)]) -> Option<Notice> {
    let query = uri.query()?;
    let word = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "done")?.1;
    let (_, text) = words.iter().find(|(known, _)| *known == word)?;
    Some(Notice::good(*text))
}
