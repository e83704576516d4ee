//! Requests and forms of signed-in users.

use crate::assets;
use crate::client::{self, ClientInfo};
use crate::csrf;
use crate::error_page::PageError;
use crate::form::{self, Form};
use crate::format;
use crate::layout::{Layout, Notice};
use crate::page;
use crate::state::DashboardState;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::secret::Token;
use heliograph_service::identity::accounts;
use heliograph_service::identity::sessions::{self, AuthenticatedUser};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::Error;
use heliograph_service::kernel::security_log::SecurityEvent;
use std::sync::Arc;

const HX_REQUEST: HeaderName = HeaderName::from_static("hx-request");
const HX_CURRENT_URL: HeaderName = HeaderName::from_static("hx-current-url");

/// A request with a valid session.
#[derive(Clone, Debug)]
pub(crate) struct SessionRequest {
    /// The signed-in user.
    pub(crate) visitor: AuthenticatedUser,
    /// The connection the request came from.
    pub(crate) client: ClientInfo,
    /// The URL of this service as the user knows it, without a path.
    pub(crate) base_url: String,
    /// Whether htmx sent the request, which needs only a fragment of the page.
    pub(crate) is_htmx: bool,
    token: Token,
}

impl SessionRequest {
    /// Returns the caller for operations that API keys can do, too.
    pub(crate) fn caller(&self) -> Caller {
        self.visitor.caller()
    }

    /// Returns the actor for the audit log.
    pub(crate) fn actor(&self) -> Actor {
        self.visitor.actor(&self.client.address.to_string())
    }

    /// Returns the selected mode.
    pub(crate) const fn mode(&self) -> Mode {
        self.visitor.details.session.mode
    }

    /// Returns the session token.
    pub(crate) const fn token(&self) -> &Token {
        &self.token
    }

    /// Returns the layout of a page; `active_nav` is its entry in the navigation.
    pub(crate) async fn layout(
        &self,
        app: &DashboardState,
        active_nav: &'static str,
        title: &str,
    ) -> Result<Layout, PageError> {
        let signed = &self.visitor.details;
        let all = sessions::accounts(&app.context, &self.visitor).await?;
        let demo_operator =
            signed.operator && accounts::has_leftover_demo_operator(&app.context).await?;
        Ok(Layout {
            title: title.to_owned(),
            active_nav,
            version: assets::VERSION,
            nonce: URL_SAFE_NO_PAD.encode(app.context.random::<18>()?),
            csrf: self.csrf(app)?,
            email: signed.email.clone(),
            account: signed.account_name.clone(),
            account_id: signed.session.account.0,
            accounts: all.into_iter().map(|(id, name, _)| (id.0, name)).collect(),
            test_mode: signed.session.mode == Mode::Test,
            is_operator: signed.operator,
            demo_operator,
            unconfirmed: self.visitor.require_confirmed(&app.context).is_err(),
            is_by_operator: signed.session.by_operator,
            can_manage: signed.role.manages(),
            can_send: signed.role.scopes().allow(Scope::Send),
            balance: format::money(signed.available, &signed.currency),
            notice: None,
        })
    }

    /// Returns the CSRF token for forms. It also names the account and mode of the page.
    pub(crate) fn csrf(&self, app: &DashboardState) -> Result<String, PageError> {
        Ok(format!(
            "{}.{}",
            csrf::field(&self.token, &app.context.random()?),
            self.account_and_mode()
        ))
    }

    /// Returns the selected account and mode, as encoded in CSRF tokens.
    fn account_and_mode(&self) -> String {
        format!("{}.{}", self.visitor.details.session.account, self.mode())
    }

    /// Rejects a form of another session, and a form of a page that showed another account or mode,
    /// so that nobody sends a paid message that was meant as a test. With `any_context`, account
    /// and mode are not compared.
    pub(crate) fn verify_csrf(&self, csrf: &str, any_context: bool) -> Result<(), PageError> {
        let (secret, shown) = csrf.split_once('.').unwrap_or((csrf, ""));
        if !csrf::is_good(&self.token, secret) {
            let client = &*self.client.address.to_string();
            let user = Some(self.visitor.details.session.user);
            let event = SecurityEvent { event: "csrf_refused", client, user, ..Default::default() };
            event.refused();
            return Err(PageError::csrf_failed());
        }
        match any_context || shown.is_empty() || shown == self.account_and_mode() {
            true => Ok(()),
            false => Err(PageError::context_changed()),
        }
    }
}

/// The pages and forms that work without two-factor authentication where it is required.
const SETUP_PATHS: [&str; 5] =
    ["/settings/security", "/sign-out", "/account", "/join/", "/confirm/"];
/// Forms that work from any account and mode.
const ANY_CONTEXT: [&str; 3] = ["/mode", "/account", "/sign-out"];

impl FromRequestParts<Arc<DashboardState>> for SessionRequest {
    type Rejection = PageError;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<DashboardState>,
    ) -> Result<Self, PageError> {
        let Ok(client) = ClientInfo::from_request_parts(parts, app).await;
        let sign_in = || PageError::SignInRequired(return_path(parts));
        let token = client.cookies().session_token(&parts.headers).ok_or_else(sign_in)?;
        let authenticate = async || match sessions::authenticate(&app.context, &token).await {
            Ok(visitor) => Ok(visitor),
            Err(Error::Unauthenticated) => Err(sign_in()),
            Err(other) => Err(other.into()),
        };
        let mut visitor = authenticate().await?;
        let is_setup = SETUP_PATHS.iter().any(|path| parts.uri.path().starts_with(path));
        if !is_setup && visitor.lacks_two_factor(&app.context) {
            return Err(PageError::TwoFactorRequired);
        }
        let session = &visitor.details.session;
        let is_htmx = parts.headers.contains_key(HX_REQUEST);
        if let Some(mode) = mode_of_link(parts).filter(|mode| *mode != session.mode) {
            // A live update of a page that is still open must not change the mode of the others.
            if is_htmx {
                return Err(PageError::context_changed());
            }
            sessions::switch_to(&app.context, &visitor, session.account, mode).await?;
            visitor = authenticate().await?;
        }
        let entrance = &app.context.settings().sign_up;
        let base_url = match entrance.base_url_configured {
            true => entrance.base_url.clone(),
            false => client.base_url(&parts.headers),
        };
        Ok(Self { visitor, client, base_url, is_htmx, token })
    }
}

/// Returns the mode that the address of a page names, so that a link shows everyone the same.
fn mode_of_link(parts: &Parts) -> Option<Mode> {
    if parts.method != Method::GET {
        return None;
    }
    let query = parts.uri.query()?;
    let named = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "mode");
    [Mode::Live, Mode::Test]
        .into_iter()
        .find(|mode| named.as_ref().is_some_and(|(_, n)| *n == mode.name()))
}

/// Returns the path to continue at after signing in: the requested page, or the page that submitted
/// the form.
fn return_path(parts: &Parts) -> String {
    let text = |name| parts.headers.get(name).and_then(|v| v.to_str().ok());
    let page = match parts.method {
        Method::GET if !parts.headers.contains_key(HX_REQUEST) => None,
        _ => Some(text(HX_CURRENT_URL).or(text(header::REFERER)).unwrap_or_default()),
    };
    let path = match page {
        None => parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        Some(page) => path_of(page).unwrap_or_default(),
    };
    if page::is_local_path(&path) { path } else { "/".to_owned() }
}

fn path_of(page: &str) -> Option<String> {
    let uri: Uri = page.parse().ok()?;
    uri.path_and_query().map(ToString::to_string)
}

/// A form submitted with a valid session and CSRF token.
#[derive(Clone, Debug)]
pub(crate) struct SessionForm {
    /// The request.
    pub(crate) request: SessionRequest,
    /// The fields.
    pub(crate) form: Form,
}

impl FromRequest<Arc<DashboardState>> for SessionForm {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &Arc<DashboardState>) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let request = SessionRequest::from_request_parts(&mut parts, app).await?;
        let body = read_body(&parts.headers, body).await?;
        let form = Form::read(&body)?;
        request.verify_csrf(form.raw("csrf"), ANY_CONTEXT.contains(&parts.uri.path()))?;
        Ok(Self { request, form })
    }
}

/// Reads the body of a form from a page of this dashboard.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<axum::body::Bytes, PageError> {
    if !client::is_same_origin(headers) {
        return Err(PageError::csrf_failed());
    }
    heliograph_http::read_body(body, form::MAX_BYTES).await.map_err(PageError::from)
}

/// Redirects to a page that shows a notice: `key` is looked up by [`notice_from`] there.
pub(crate) fn redirect_with_notice(path: &str, key: &'static str) -> Response {
    let separator = if path.contains('?') { '&' } else { '?' };
    page::redirect(&format!("{path}{separator}done={key}"))
}

/// Returns the notice that the query parameter `done` selects from `texts`.
pub(crate) fn notice_from(uri: &Uri, texts: &[(&str, &str)]) -> Option<Notice> {
    let query = uri.query()?;
    let key = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "done")?.1;
    let (_, text) = texts.iter().find(|(known, _)| *known == key)?;
    Some(Notice::success(*text))
}
