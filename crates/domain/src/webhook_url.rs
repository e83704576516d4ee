//! The URL of a webhook endpoint.

use core::net::IpAddr;
use url::{Host, ParseError, Url};

/// The maximum length of a URL, in bytes.
const MAX_LENGTH: usize = 2_000;

/// A parsed webhook URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookUrl {
    url: Url,
}

/// The reason why a text is not accepted as a webhook URL.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadWebhookUrl {
    /// The URL cannot be parsed; carries the reason.
    #[error("invalid URL: {0} (example: https://example.com/webhooks)")]
    Unreadable(String),
    /// The URL is longer than 2000 characters.
    #[error("the URL is longer than 2000 characters")]
    TooLong,
    /// The scheme is neither `http` nor `https`.
    #[error("the URL must begin with https:// (or http:// for a private address)")]
    Scheme,
    /// The URL contains a user name or password.
    #[error(
        "the URL must not contain a user name or password: verify the webhook signature instead"
    )]
    Credentials,
    /// The URL has a fragment, which HTTP clients never send.
    #[error("the URL must not contain a fragment (\"#...\"): it would never be sent")]
    Fragment,
}

/// Returns the reason why a URL cannot be parsed, in plain words.
const fn reason(error: ParseError) -> &'static str {
    match error {
        ParseError::RelativeUrlWithoutBase => "it does not begin with https://",
        ParseError::EmptyHost => "the host is missing",
        ParseError::InvalidPort => "the port is not a number up to 65535",
        ParseError::InvalidIpv4Address | ParseError::InvalidIpv6Address => {
            "the IP address is incomplete or misspelled"
        }
        ParseError::InvalidDomainCharacter | ParseError::IdnaError => {
            "the host name has a character that is not allowed"
        }
        _ => "it is malformed",
    }
}

impl WebhookUrl {
    /// Parses a URL by the WHATWG URL standard, as browsers do, so that every spelling of an IP
    /// address is recognized (`127.1`, `0x7f000001`, `2130706433`, ...) and cannot bypass the SSRF
    /// protection.
    ///
    /// # Errors
    /// Returns the first rule that the URL breaks.
    pub fn parse(text: &str) -> Result<Self, BadWebhookUrl> {
        if text.len() > MAX_LENGTH {
            return Err(BadWebhookUrl::TooLong);
        }
        // Browsers drop these characters, so the stored URL would differ from the given one.
        if text.chars().any(char::is_control) {
            return Err(BadWebhookUrl::Unreadable(
                "it contains a control character, such as a line break or tab".to_owned(),
            ));
        }
        // Browsers skip extra slashes and take the next path segment as the host.
        if text.contains(":///") {
            return Err(BadWebhookUrl::Unreadable("the host is missing".to_owned()));
        }
        let url = Url::parse(text).map_err(|e| BadWebhookUrl::Unreadable(reason(e).to_owned()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(BadWebhookUrl::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadWebhookUrl::Credentials);
        }
        if url.fragment().is_some() {
            return Err(BadWebhookUrl::Fragment);
        }
        Ok(Self { url })
    }

    /// Returns the normalized URL, as it is stored and shown.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Returns whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the port: the explicit one, or the default of the scheme.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// Returns the IP address if the host is an address literal.
    pub fn address(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Ipv4(v4) => Some(v4.into()),
            Host::Ipv6(v6) => Some(v6.into()),
            Host::Domain(_) => None,
        }
    }

    /// Returns the host name to resolve, or the address without brackets.
    pub fn host(&self) -> String {
        match self.url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(v4)) => v4.to_string(),
            Some(Host::Ipv6(v6)) => v6.to_string(),
            None => String::new(),
        }
    }

    /// Returns the value of the `Host` header: the host, and the port unless it is the default.
    pub fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns the request target of the request line: path and query.
    pub fn path(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_in_plain_words() {
        for (url, reason) in [
            ("example.com/hook", "it does not begin with https://"),
            ("https://", "the host is missing"),
            ("https://x.org:70000", "the port is not a number up to 65535"),
            ("https://1.2.3.999", "the IP address is incomplete or misspelled"),
        ] {
            let error = WebhookUrl::parse(url).unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid URL: {reason} (")), "{error}");
        }
    }

    fn parse(url: &str) -> WebhookUrl {
        WebhookUrl::parse(url).unwrap()
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for url in [
            "",
            "example.com",
            "ftp://example.com",
            "https://",
            "https://u@example.com",
            "https://u:p@example.com",
            "https://example.com/#top",
            "file:///etc/passwd",
            "https://exa mple.com",
            "javascript:alert(1)",
            "https://[::1",
            "https://example.com:99999",
            "https://%00/",
            "http:///x", // browsers read this as http://x/
            "https://example.com/\r\nhook",
            "https://example.com/a\tb",
        ] {
            assert!(WebhookUrl::parse(url).is_err(), "{url}");
        }
        assert_eq!(
            WebhookUrl::parse(&format!("https://x.org/{}", "a".repeat(2_000))),
            Err(BadWebhookUrl::TooLong)
        );
        let t = parse("https://Example.com:8443/hooks?a=b");
        assert_eq!(
            (t.host().as_str(), t.port(), t.path().as_str()),
            ("example.com", 8443, "/hooks?a=b")
        );
        assert_eq!((t.authority().as_str(), t.is_https()), ("example.com:8443", true));
        assert_eq!(parse("http://example.com").port(), 80);
        assert_eq!(parse("https://[2606:4700::1111]:444/").authority(), "[2606:4700::1111]:444");
    }
}
