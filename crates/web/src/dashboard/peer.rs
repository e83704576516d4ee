//! The other end of a connection: from where a person asks, and by which cookie they are known.

use crate::app::App;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use heliograph_domain::secret::Token;
use heliograph_service::sessions::Origin;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How long a browser keeps the cookie; the session itself may end before: 30 days.
const KEPT: u32 = 30 * 86_400;

/// What a request says of where it comes from, put there by whoever took up the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The network address.
    pub(crate) address: IpAddr,
    /// Whether the person's browser speaks HTTPS, with us or with the proxy in front of us.
    pub(crate) https: bool,
}

impl Peer {
    /// A peer at the other end of the connection, or behind the proxy there: of what several proxies added, the last
    /// is the word of ours.
    pub(crate) fn new(
        address: IpAddr,
        https: bool,
        behind_proxy: bool,
        headers: &HeaderMap,
    ) -> Self {
        let forwarded = headers.get_all(FORWARDED_FOR).iter().next_back();
        let forwarded = forwarded.filter(|_| behind_proxy).and_then(|v| v.to_str().ok());
        let last = forwarded.and_then(|v| v.rsplit(',').next()?.trim().parse().ok());
        Self { address: last.unwrap_or(address).to_canonical(), https }
    }

    /// A name that only HTTPS may set, for this host alone; loopback has to do without.
    const fn cookie(self) -> &'static str {
        if self.https { "__Host-heliograph" } else { "heliograph" }
    }

    /// The same for the secret that ties the forms of who is not signed in to their browser.
    const fn form_cookie(self) -> &'static str {
        if self.https { "__Host-heliograph-form" } else { "heliograph-form" }
    }

    /// The secret of the session, if the browser has one.
    pub(crate) fn token(self, headers: &HeaderMap) -> Option<Token> {
        find(headers, self.cookie())
    }

    /// The secret of forms, if the browser has one.
    pub(crate) fn form_token(self, headers: &HeaderMap) -> Option<Token> {
        find(headers, self.form_cookie())
    }

    /// Has the browser keep the secret of forms, until it is closed.
    pub(crate) fn keep_form(self, token: &Token) -> HeaderValue {
        self.cookie_of(self.form_cookie(), token.reveal(), "")
    }

    /// Has the browser keep a session's secret.
    pub(crate) fn keep(self, token: &Token) -> HeaderValue {
        self.set(token.reveal(), KEPT)
    }

    /// Has the browser forget it.
    pub(crate) fn forget(self) -> HeaderValue {
        self.set("", 0)
    }

    fn set(self, value: &str, seconds: u32) -> HeaderValue {
        self.cookie_of(self.cookie(), value, &format!("; Max-Age={seconds}"))
    }

    fn cookie_of(self, name: &str, value: &str, age: &str) -> HeaderValue {
        let secure = if self.https { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{age}{secure}");
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }

    /// Whence somebody signs in.
    pub(crate) fn origin(self, headers: &HeaderMap) -> Origin {
        let agent = headers.get(header::USER_AGENT).and_then(|v| v.to_str().ok());
        Origin { address: self.address.to_string(), agent: agent.unwrap_or_default().to_owned() }
    }

    /// The address of this service as the person knows it, without a path.
    pub(crate) fn base(self, headers: &HeaderMap) -> String {
        let host = headers.get(header::HOST).and_then(|v| v.to_str().ok()).unwrap_or("localhost");
        format!("{}://{host}", if self.https { "https" } else { "http" })
    }
}

fn find(headers: &HeaderMap, cookie: &str) -> Option<Token> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok());
    let mut pairs = all.flat_map(|v| v.split(';')).filter_map(|p| p.trim().split_once('='));
    pairs.find(|(name, _)| *name == cookie).and_then(|(_, value)| Token::parse(value))
}

/// Whether a page of ours asks, and not one of somebody else: what browsers say of themselves, and scripts can't change.
pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin" || site == "none";
    }
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return true };
    origin.split_once("://").map(|(_, host)| host) == text(header::HOST)
}

impl FromRequestParts<Arc<App>> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Infallible> {
        let unknown = Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), https: false };
        Ok(parts.extensions.get::<Self>().copied().unwrap_or(unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn only_the_proxy_in_front_is_believed() {
        let ip = "192.0.2.7".parse().unwrap();
        let said = headers(&[("x-forwarded-for", "10.0.0.1, 198.51.100.4")]);
        let seen = |behind| Peer::new(ip, true, behind, &said).address.to_string();
        assert_eq!((seen(true).as_str(), seen(false).as_str()), ("198.51.100.4", "192.0.2.7"));
    }

    #[test]
    fn the_cookie_is_for_this_host_alone() {
        let peer = |https| Peer { address: "::1".parse().unwrap(), https };
        let token = Token::from_random(&[3; 32]);
        let kept = peer(true).keep(&token);
        let kept = kept.to_str().unwrap();
        assert!(kept.starts_with("__Host-heliograph=") && kept.contains("; Secure"), "{kept}");
        assert!(kept.contains("HttpOnly; SameSite=Lax") && kept.contains("Path=/;"), "{kept}");
        let cookie = format!("a=b; heliograph={}", token.reveal());
        let mut said = HeaderMap::new();
        said.insert(header::COOKIE, cookie.parse().unwrap());
        assert_eq!(peer(false).token(&said), Some(token));
        assert_eq!(peer(true).token(&said), None);
    }

    #[test]
    fn pages_of_others_are_told_apart() {
        for (said, own) in [
            (vec![("sec-fetch-site", "same-origin")], true),
            (vec![("sec-fetch-site", "none")], true),
            (vec![("sec-fetch-site", "same-site"), ("origin", "http://h")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("origin", "https://h:1"), ("host", "h:1")], true),
            (vec![("origin", "https://evil"), ("host", "h:1")], false),
            (vec![("origin", "null"), ("host", "h:1")], false),
            (vec![("host", "h:1")], true),
        ] {
            assert_eq!(is_own_page(&headers(&said)), own, "{said:?}");
        }
    }
}
