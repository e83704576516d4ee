//! The client of a request: its address, protocol, and origin checks.

use crate::state::DashboardState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use heliograph_domain::secret::Token;
use heliograph_http::ClientAddress;
use heliograph_service::identity::sessions::SessionOrigin;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Lifetime of the session cookie in seconds: 30 days. The session itself may end earlier.
const SESSION_COOKIE_AGE: u32 = 30 * 86_400;

/// The address and protocol of the client, with the cookies that depend on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientInfo {
    /// The IP address.
    pub(crate) address: IpAddr,
    /// Whether the browser uses HTTPS, with this server or with the reverse proxy in front of it.
    pub(crate) https: bool,
}

impl ClientInfo {
    /// Returns the name of the session cookie. The prefix `__Host-` binds it to this host and to
    /// HTTPS; plain HTTP on loopback cannot use it.
    const fn session_cookie_name(self) -> &'static str {
        if self.https { "__Host-heliograph" } else { "heliograph" }
    }

    /// Returns the name of the cookie for forms without a session.
    const fn form_cookie_name(self) -> &'static str {
        if self.https { "__Host-heliograph-form" } else { "heliograph-form" }
    }

    /// Returns the session token from the cookie.
    pub(crate) fn session_token(self, headers: &HeaderMap) -> Option<Token> {
        find_cookie(headers, self.session_cookie_name())
    }

    /// Returns the secret for forms without a session from the cookie.
    pub(crate) fn form_token(self, headers: &HeaderMap) -> Option<Token> {
        find_cookie(headers, self.form_cookie_name())
    }

    /// Returns the cookie with the secret for forms; it lasts until the browser is closed.
    pub(crate) fn form_cookie(self, token: &Token) -> HeaderValue {
        self.build_cookie(self.form_cookie_name(), token.reveal(), "")
    }

    /// Returns the cookie of a session.
    pub(crate) fn session_cookie(self, token: &Token) -> HeaderValue {
        self.session_cookie_with(token.reveal(), SESSION_COOKIE_AGE)
    }

    /// Returns a cookie that removes the session cookie.
    pub(crate) fn clear_session_cookie(self) -> HeaderValue {
        self.session_cookie_with("", 0)
    }

    fn session_cookie_with(self, value: &str, seconds: u32) -> HeaderValue {
        self.build_cookie(self.session_cookie_name(), value, &format!("; Max-Age={seconds}"))
    }

    fn build_cookie(self, name: &str, value: &str, max_age: &str) -> HeaderValue {
        let secure = if self.https { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{max_age}{secure}");
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }

    /// Returns address and user agent, for the session list.
    pub(crate) fn origin(self, headers: &HeaderMap) -> SessionOrigin {
        let agent = headers.get(header::USER_AGENT).and_then(|v| v.to_str().ok());
        SessionOrigin {
            address: self.address.to_string(),
            agent: agent.unwrap_or_default().to_owned(),
        }
    }

    /// Returns the URL of this service as the browser sees it, without a path.
    pub(crate) fn base_url(self, headers: &HeaderMap) -> String {
        let host = headers.get(header::HOST).and_then(|v| v.to_str().ok()).unwrap_or("localhost");
        format!("{}://{host}", if self.https { "https" } else { "http" })
    }
}

fn find_cookie(headers: &HeaderMap, cookie: &str) -> Option<Token> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok());
    let mut pairs = all.flat_map(|v| v.split(';')).filter_map(|p| p.trim().split_once('='));
    pairs.find(|(name, _)| *name == cookie).and_then(|(_, value)| Token::parse(value))
}

/// Returns whether a page of this host sent the request, by the headers `Sec-Fetch-Site` and
/// `Origin`, which scripts cannot change (CSRF protection).
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin" || site == "none";
    }
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return true };
    origin.split_once("://").map(|(_, host)| host) == text(header::HOST)
}

impl FromRequestParts<Arc<DashboardState>> for ClientInfo {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &Arc<DashboardState>,
    ) -> Result<Self, Infallible> {
        let unknown = Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), https: false };
        let client = parts.extensions.get::<ClientAddress>();
        Ok(client.map_or(unknown, |client| Self { address: client.ip, https: client.https }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn the_session_cookie_is_bound_to_this_host() {
        let client = |https| ClientInfo { address: "::1".parse().unwrap(), https };
        let token = Token::from_random(&[3; 32]);
        let cookie = client(true).session_cookie(&token);
        let cookie = cookie.to_str().unwrap();
        assert!(
            cookie.starts_with("__Host-heliograph=") && cookie.contains("; Secure"),
            "{cookie}"
        );
        assert!(
            cookie.contains("HttpOnly; SameSite=Lax") && cookie.contains("Path=/;"),
            "{cookie}"
        );
        let cookie = format!("a=b; heliograph={}", token.reveal());
        let mut sent = HeaderMap::new();
        sent.insert(header::COOKIE, cookie.parse().unwrap());
        assert_eq!(client(false).session_token(&sent), Some(token));
        assert_eq!(client(true).session_token(&sent), None);
    }

    #[test]
    fn requests_of_other_sites_are_recognised() {
        for (sent, own) in [
            (vec![("sec-fetch-site", "same-origin")], true),
            (vec![("sec-fetch-site", "none")], true),
            (vec![("sec-fetch-site", "same-site"), ("origin", "http://h")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("origin", "https://h:1"), ("host", "h:1")], true),
            (vec![("origin", "https://evil"), ("host", "h:1")], false),
            (vec![("origin", "null"), ("host", "h:1")], false),
            (vec![("host", "h:1")], true),
        ] {
            assert_eq!(is_same_origin(&headers(&sent)), own, "{sent:?}");
        }
    }
}
