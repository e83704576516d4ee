//! Delivery errors: why a webhook delivery attempt got no response, and advice for the owner of the
//! endpoint.

/// An error of a delivery attempt without a response. It is stored as a text that begins with its
/// label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryError {
    /// The host name does not resolve.
    HostNotFound,
    /// The egress policy denies the address (SSRF protection).
    AddressNotAllowed,
    /// The connection was refused: nothing listens on the port.
    ConnectionRefused,
    /// The connection could not be established, or not in time.
    ConnectFailed,
    /// The TLS handshake failed, or the certificate is not trusted.
    Tls,
    /// The response took too long.
    Timeout,
    /// The connection was closed without a response, or the response was not HTTP.
    ConnectionClosed,
}

impl DeliveryError {
    const ALL: [Self; 7] = [
        Self::HostNotFound,
        Self::AddressNotAllowed,
        Self::ConnectionRefused,
        Self::ConnectFailed,
        Self::Tls,
        Self::Timeout,
        Self::ConnectionClosed,
    ];

    /// Returns the label, with which the text of the error begins.
    pub const fn label(self) -> &'static str {
        match self {
            Self::HostNotFound => "host not found",
            Self::AddressNotAllowed => "address not allowed",
            Self::ConnectionRefused => "connection refused",
            Self::ConnectFailed => "no connection",
            Self::Tls => "TLS",
            Self::Timeout => "no response",
            Self::ConnectionClosed => "connection closed",
        }
    }

    /// Returns the text of the error: the label and a detail.
    pub fn with_detail(self, detail: &str) -> String {
        format!("{}: {detail}", self.label())
    }

    /// Returns the error of a text, by its label.
    pub fn from_detail(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| text.starts_with(t.label()))
    }

    const fn advice(self) -> DeliveryAdvice {
        let (problem, fix) = match self {
            Self::HostNotFound => (
                "The host name was not found",
                "Check the URL for typos, and check that the name is in public DNS. A new name \
                 can take an hour to propagate.",
            ),
            Self::AddressNotAllowed => (
                "Requests to this address are not allowed",
                "The URL leads to a private address, or to a public address without HTTPS. Give \
                 your server a public address with HTTPS, or use 'heliograph listen' for a \
                 server on your own machine. The operator of this service can allow a network \
                 with [webhooks] allow_private.",
            ),
            Self::ConnectionRefused => (
                "The connection was refused",
                "Check that your server is running and listens on this port, not only on \
                 127.0.0.1. A firewall may also refuse connections.",
            ),
            Self::ConnectFailed => (
                "The connection could not be established",
                "A firewall may be dropping packets, or there is no machine at this address. \
                 Open the port for the address of this service, and try the URL from another \
                 network.",
            ),
            Self::Tls => (
                "The TLS connection failed",
                "The certificate must be valid, match this host name, and be issued by a \
                 publicly trusted authority; the server must also send the intermediate \
                 certificates ('fullchain'). If the server speaks plain HTTP, the port is wrong.",
            ),
            Self::Timeout => (
                "The response took too long",
                "Store the event, respond with 2xx immediately, and process it afterwards. If \
                 your server did not receive this request, check the proxies and firewalls in \
                 front of it.",
            ),
            Self::ConnectionClosed => (
                "The connection was closed without a response",
                "Your server, or a proxy in front of it, closed the connection or sent something \
                 that is not HTTP. Check its log at this time: it may have crashed.",
            ),
        };
        DeliveryAdvice { problem, fix }
    }
}

/// Advice on a failed delivery attempt, for the owner of the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveryAdvice {
    /// A short description of the problem.
    pub problem: &'static str,
    /// The steps to fix it.
    pub fix: &'static str,
}

impl DeliveryAdvice {
    /// Returns advice on an attempt with this response status, or with this error text if there was
    /// no response. Returns `None` for a successful attempt.
    pub fn for_attempt(status: Option<u16>, detail: &str) -> Option<Self> {
        let Some(status) = status else {
            return Some(
                DeliveryError::from_detail(detail)
                    .unwrap_or(DeliveryError::ConnectionClosed)
                    .advice(),
            );
        };
        let (problem, fix) = for_status(status)?;
        Some(Self { problem, fix })
    }
}

const fn for_status(status: u16) -> Option<(&'static str, &'static str)> {
    Some(match status {
        200..=299 => return None,
        300..=399 => (
            "The server responded with a redirect",
            "Redirects are not followed. Register the final URL, which often differs in https, \
             'www' or a trailing slash.",
        ),
        400 | 422 => (
            "Your server rejected the request as invalid",
            "Verify the signature over the raw bytes of the body before parsing it, then parse \
             the body as JSON. Respond with 2xx to unknown event types as well.",
        ),
        401 | 403 => (
            "Your server, or a proxy in front of it, requires authentication",
            "Webhooks have a signature but no credentials: exempt this path from sign-in and \
             from CSRF checks. If your own signature check fails, make sure that it uses the \
             secret of this endpoint and the raw bytes of the body.",
        ),
        404 => (
            "The path was not found",
            "Compare the path of the URL with the routes of your server, and check whether a \
             proxy strips a prefix.",
        ),
        405 => (
            "The path does not accept POST",
            "Webhooks are POST requests: allow POST on this route.",
        ),
        410 => (
            "The server responded with 410 Gone",
            "The endpoint was switched off, because 410 means to stop sending. Respond with 2xx, \
             and switch it on again.",
        ),
        413 => ("The body is too large for your server", "Allow request bodies of up to 20 kB."),
        415 => (
            "Your server does not accept JSON",
            "Accept Content-Type application/json on this route.",
        ),
        408 | 429 => (
            "Your server limits the rate of requests, or timed out",
            "Respond with 2xx immediately and process the event afterwards, or raise the rate \
             limit of this path.",
        ),
        502..=504 => (
            "A proxy in front of your server got no response from it",
            "Check that the program behind the proxy is running, listens on the expected port, \
             and responds in time.",
        ),
        500..=599 => (
            "Your server failed to process the request",
            "Check its log at this time. To reproduce the error, send your server the request \
             body shown on this page.",
        ),
        _ => (
            "Your server responded with an error",
            "Only a 2xx status accepts a webhook; anything else is retried. Check the response \
             and the log of your server.",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_recognized_by_their_text() {
        for error in DeliveryError::ALL {
            assert_eq!(DeliveryError::from_detail(&error.with_detail("because")), Some(error));
        }
        assert_eq!(
            DeliveryError::from_detail("no response within 10 s"),
            Some(DeliveryError::Timeout)
        );
        assert_eq!(DeliveryError::from_detail("it responded with 500"), None);
    }

    #[test]
    fn every_error_has_advice() {
        for status in 100..=999 {
            let advice = DeliveryAdvice::for_attempt(Some(status), "");
            assert_eq!(advice.is_none(), (200..300).contains(&status), "{status}");
        }
        let unknown = DeliveryAdvice::for_attempt(None, "something else").unwrap();
        assert_eq!(unknown, DeliveryError::ConnectionClosed.advice());
    }
}
