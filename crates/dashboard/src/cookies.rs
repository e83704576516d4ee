//! The cookies of the dashboard: the session, the secret of forms without a session, and the mark of
//! a known device.

use axum::http::{HeaderMap, HeaderValue, header};
use heliograph_domain::secret::Token;
use heliograph_service::identity::known_devices;

/// Lifetime of the session cookie in seconds: 30 days. The session itself may end earlier.
const SESSION_COOKIE_AGE: u64 = 30 * 86_400;

/// Reads and builds cookies, whose names and attributes depend on HTTPS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookies {
    /// Whether the browser uses HTTPS.
    pub(crate) https: bool,
}

impl Cookies {
    /// Returns the name of the session cookie. The prefix `__Host-` binds it to this host and to
    /// HTTPS; plain HTTP on loopback cannot use it.
    const fn session_name(self) -> &'static str {
        if self.https { "__Host-heliograph" } else { "heliograph" }
    }

    /// Returns the name of the cookie for forms without a session.
    const fn form_name(self) -> &'static str {
        if self.https { "__Host-heliograph-form" } else { "heliograph-form" }
    }

    /// Returns the name of the cookie of a known device.
    const fn device_name(self) -> &'static str {
        if self.https { "__Host-heliograph-device" } else { "heliograph-device" }
    }

    /// Returns the mark of a known device from the request.
    pub(crate) fn device(self, headers: &HeaderMap) -> Option<&str> {
        find(headers, self.device_name())
    }

    /// Returns the cookie of a known device.
    pub(crate) fn known_device(self, mark: &str) -> HeaderValue {
        let age = known_devices::LIFETIME.as_secs();
        self.build(self.device_name(), mark, &format!("; Max-Age={age}"))
    }

    /// Returns the session token from the request.
    pub(crate) fn session_token(self, headers: &HeaderMap) -> Option<Token> {
        find(headers, self.session_name()).and_then(Token::parse)
    }

    /// Returns the secret for forms without a session from the request.
    pub(crate) fn form_token(self, headers: &HeaderMap) -> Option<Token> {
        find(headers, self.form_name()).and_then(Token::parse)
    }

    /// Returns the cookie with the secret for forms; it lasts until the browser is closed.
    pub(crate) fn form(self, token: &Token) -> HeaderValue {
        self.build(self.form_name(), token.reveal(), "")
    }

    /// Returns the cookie of a session.
    pub(crate) fn session(self, token: &Token) -> HeaderValue {
        self.session_with(token.reveal(), SESSION_COOKIE_AGE)
    }

    /// Returns a cookie that removes the session cookie.
    pub(crate) fn clear_session(self) -> HeaderValue {
        self.session_with("", 0)
    }

    fn session_with(self, value: &str, seconds: u64) -> HeaderValue {
        self.build(self.session_name(), value, &format!("; Max-Age={seconds}"))
    }

    fn build(self, name: &str, value: &str, max_age: &str) -> HeaderValue {
        let secure = if self.https { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{max_age}{secure}");
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }
}

fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok());
    let mut pairs = all.flat_map(|v| v.split(';')).filter_map(|p| p.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_cookie_is_bound_to_this_host() {
        let cookies = |https| Cookies { https };
        let token = Token::from_random(&[3; 32]);
        let cookie = cookies(true).session(&token);
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
        assert_eq!(cookies(false).session_token(&sent), Some(token));
        assert_eq!(cookies(true).session_token(&sent), None);
    }
}
