//! The client of a request: its address, protocol, and origin checks.

use crate::cookies::Cookies;
use crate::state::DashboardState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use heliograph_http::ClientAddress;
use heliograph_service::identity::sessions::SessionOrigin;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The address and protocol of the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientInfo {
    /// The IP address.
    pub(crate) address: IpAddr,
    /// Whether the browser uses HTTPS, with this server or with the reverse proxy in front of it.
    pub(crate) https: bool,
}

impl ClientInfo {
    /// Returns the cookies that this client can have.
    pub(crate) const fn cookies(self) -> Cookies {
        Cookies { https: self.https }
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

impl From<ClientInfo> for ClientAddress {
    fn from(client: ClientInfo) -> Self {
        Self { ip: client.address, https: client.https }
    }
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
    use axum::http::HeaderValue;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
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
