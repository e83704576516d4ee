//! The texts of webhook delivery attempts, and advice on failed ones for the owner of the endpoint.

use crate::delivery_error::{AttemptOutcome, DeliveryErrorKind};

/// Describes the outcome of an attempt in a clause, such as "responded with 500". `detail` is the
/// technical detail of an error.
pub fn outcome(outcome: AttemptOutcome, detail: &str) -> String {
    match outcome {
        AttemptOutcome::Response(status @ 300..=399) => {
            format!("responded with {status}: redirects are not followed")
        }
        AttemptOutcome::Response(410) => {
            "responded with 410 Gone: the endpoint was disabled".to_owned()
        }
        AttemptOutcome::Response(status) => format!("responded with {status}"),
        AttemptOutcome::Error(kind) => error(kind, detail),
    }
}

/// Describes an error in a clause.
pub fn error(kind: DeliveryErrorKind, detail: &str) -> String {
    match kind {
        DeliveryErrorKind::Other => detail.to_owned(),
        DeliveryErrorKind::HostNotFound => format!("host not found: {detail}"),
        DeliveryErrorKind::NoAddress => format!("host not found: {detail} has no address"),
        DeliveryErrorKind::PrivateAddress => {
            format!("address not allowed: {detail} is not a public address")
        }
        DeliveryErrorKind::PlainHttp => format!("address not allowed: plain http:// to {detail}"),
        DeliveryErrorKind::ConnectionRefused => format!("connection refused: {detail}"),
        DeliveryErrorKind::ConnectFailed => format!("no connection: {detail}"),
        DeliveryErrorKind::ConnectTimeout => format!("no connection within {detail}"),
        DeliveryErrorKind::NotTls => "TLS: the server does not speak TLS".to_owned(),
        DeliveryErrorKind::UntrustedCertificate => {
            "TLS: the certificate is not issued by a publicly trusted authority (self-signed?)"
                .to_owned()
        }
        DeliveryErrorKind::InvalidCertificate => format!("TLS: invalid certificate: {detail}"),
        DeliveryErrorKind::TlsFailed => format!("TLS: {detail}"),
        DeliveryErrorKind::ResponseTimeout => format!("no response within {detail}"),
        DeliveryErrorKind::ConnectionClosed => format!("no response: {detail}"),
        DeliveryErrorKind::InvalidResponse => format!("invalid response: {detail}"),
        DeliveryErrorKind::PortDenied => format!("port {detail} is not allowed"),
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

/// Returns advice on an attempt; `None` for a successful one.
pub const fn advice(outcome: AttemptOutcome) -> Option<DeliveryAdvice> {
    let (problem, fix) = match outcome {
        AttemptOutcome::Response(200..=299) => return None,
        AttemptOutcome::Response(status) => for_status(status),
        AttemptOutcome::Error(kind) => for_error(kind),
    };
    Some(DeliveryAdvice { problem, fix })
}

const fn for_error(kind: DeliveryErrorKind) -> (&'static str, &'static str) {
    match kind {
        DeliveryErrorKind::HostNotFound | DeliveryErrorKind::NoAddress => (
            "The host name was not found",
            "Check the URL for typos, and check that the name is in public DNS. A new name can \
             take an hour to propagate.",
        ),
        DeliveryErrorKind::PrivateAddress | DeliveryErrorKind::PlainHttp => (
            "Requests to this address are not allowed",
            "The URL leads to a private address, or to a public address without HTTPS. Give your \
             server a public address with HTTPS, or use 'heliograph listen' for a server on your \
             own machine. The operator of this service can allow a network with [webhooks] \
             allow_private.",
        ),
        DeliveryErrorKind::PortDenied => (
            "Requests to this port are not allowed",
            "Use port 443 or a port from 1024 on. The operator of this service can allow other \
             ports with [webhooks] ports.",
        ),
        DeliveryErrorKind::ConnectionRefused => (
            "The connection was refused",
            "Check that your server is running and listens on this port, not only on 127.0.0.1. A \
             firewall may also refuse connections.",
        ),
        DeliveryErrorKind::ConnectFailed | DeliveryErrorKind::ConnectTimeout => (
            "The connection could not be established",
            "A firewall may be dropping packets, or there is no machine at this address. Open the \
             port for the address of this service, and try the URL from another network.",
        ),
        DeliveryErrorKind::NotTls
        | DeliveryErrorKind::UntrustedCertificate
        | DeliveryErrorKind::InvalidCertificate
        | DeliveryErrorKind::TlsFailed => (
            "The TLS connection failed",
            "The certificate must be valid, match this host name, and be issued by a publicly \
             trusted authority; the server must also send the intermediate certificates \
             ('fullchain'). If the server speaks plain HTTP, the port is wrong.",
        ),
        DeliveryErrorKind::ResponseTimeout => (
            "The response took too long",
            "Store the event, respond with 2xx immediately, and process it afterwards. If your \
             server did not receive this request, check the proxies and firewalls in front of it.",
        ),
        DeliveryErrorKind::ConnectionClosed
        | DeliveryErrorKind::InvalidResponse
        | DeliveryErrorKind::Other => (
            "The connection was closed without a response",
            "Your server, or a proxy in front of it, closed the connection or sent something that \
             is not HTTP. Check its log at this time: it may have crashed.",
        ),
    }
}

const fn for_status(status: u16) -> (&'static str, &'static str) {
    match status {
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
            "The endpoint was disabled, because 410 means to stop sending. Respond with 2xx, and \
             enable it again.",
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failed_attempt_has_advice() {
        for status in 100..=999 {
            let advice = advice(AttemptOutcome::Response(status));
            assert_eq!(advice.is_none(), (200..300).contains(&status), "{status}");
        }
        for kind in DeliveryErrorKind::ALL {
            assert!(advice(AttemptOutcome::Error(*kind)).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn outcomes_are_described_in_a_clause() {
        for (code, detail, text) in [
            (AttemptOutcome::Response(204), "", "responded with 204"),
            (AttemptOutcome::Response(500), "", "responded with 500"),
            (AttemptOutcome::Response(302), "", "responded with 302: redirects are not followed"),
            (
                AttemptOutcome::Error(DeliveryErrorKind::ResponseTimeout),
                "10 s",
                "no response within 10 s",
            ),
            (AttemptOutcome::Error(DeliveryErrorKind::Other), "a reason", "a reason"),
        ] {
            assert_eq!(outcome(code, detail), text);
        }
    }
}
