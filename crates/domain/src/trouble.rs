//! Trouble: the ways in which telling an endpoint fails, and what its owner can do about each.

/// A way to fail before there is an answer. What is kept of it is a sentence that begins with its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The host's name leads nowhere.
    NoName,
    /// The address is one that no webhook may reach.
    NotAllowed,
    /// Nothing listens there.
    Refused,
    /// No connection came about.
    NoConnection,
    /// It did, but without TLS that can be trusted.
    Tls,
    /// The answer took too long.
    Silent,
    /// The connection ended without an answer, or with one that is no HTTP.
    Cut,
}

impl Trouble {
    const ALL: [Self; 7] = [
        Self::NoName,
        Self::NotAllowed,
        Self::Refused,
        Self::NoConnection,
        Self::Tls,
        Self::Silent,
        Self::Cut,
    ];

    /// How a sentence about it begins.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoName => "name not found",
            Self::NotAllowed => "address not allowed",
            Self::Refused => "connection refused",
            Self::NoConnection => "no connection",
            Self::Tls => "TLS",
            Self::Silent => "no answer",
            Self::Cut => "broken off",
        }
    }

    /// A sentence about it.
    pub fn says(self, more: &str) -> String {
        format!("{}: {more}", self.word())
    }

    /// What a sentence is about.
    pub fn of(sentence: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| sentence.starts_with(t.word()))
    }

    const fn advice(self) -> Advice {
        let (wrong, fix) = match self {
            Self::NoName => (
                "The host's name was not found",
                "Look for a typing error in the URL, and whether the name stands in public DNS. A new name can take an \
                 hour until everybody knows it.",
            ),
            Self::NotAllowed => (
                "This address may not be reached",
                "The name leads to a private address, or to a public one without https. Give your server a public \
                 address with HTTPS; for one on your own machine there is 'heliograph listen'. Who operates this \
                 service can open a network with [webhooks] allow_private.",
            ),
            Self::Refused => (
                "Nothing listens at this address and port",
                "Start your server, and see whether it listens on this port and not only on 127.0.0.1. A firewall can \
                 refuse as well.",
            ),
            Self::NoConnection => (
                "No connection came about",
                "A firewall that drops packets looks like this, and so does an address where no machine is. Open the \
                 port for this service's address, and try the URL from another network.",
            ),
            Self::Tls => (
                "TLS could not be agreed on",
                "The certificate has to be valid now, for this very host, and from an authority that is publicly \
                 trusted, with the certificates in between ('fullchain'). If what answers there speaks plain HTTP, the \
                 port is the wrong one.",
            ),
            Self::Silent => (
                "The answer took too long",
                "Store what comes, answer 2xx at once, and do the work afterwards. If your server saw nothing of this \
                 request, something in front of it holds it back.",
            ),
            Self::Cut => (
                "The connection ended without an answer",
                "Your server, or a proxy in front of it, closed the connection or answered something that is not HTTP. \
                 Its log at this time may say why; a crash looks like this.",
            ),
        };
        Advice { wrong, fix }
    }
}

/// What is wrong with an endpoint, and what to do, in sentences for its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advice {
    /// What is wrong.
    pub wrong: &'static str,
    /// What to do about it.
    pub fix: &'static str,
}

impl Advice {
    /// About an attempt that ended with this status, or without one and with this sentence; nothing for a success.
    pub fn about(status: Option<u16>, detail: &str) -> Option<Self> {
        let Some(status) = status else {
            return Some(Trouble::of(detail).unwrap_or(Trouble::Cut).advice());
        };
        let (wrong, fix) = answered(status)?;
        Some(Self { wrong, fix })
    }
}

const fn answered(status: u16) -> Option<(&'static str, &'static str)> {
    Some(match status {
        200..=299 => return None,
        300..=399 => (
            "It answered with a redirect",
            "Redirects are not followed. Register the address that it leads to: often the one with https, with or \
             without 'www', or with a slash at its end.",
        ),
        400 | 422 => (
            "Your server did not understand the request",
            "Check the signature over the raw bytes of the body, before anything parses it, then read the body as \
             JSON. Answer 2xx also to kinds that you do not know.",
        ),
        401 | 403 => (
            "Your server, or something in front of it, wants to know who asks",
            "A webhook brings a signature and no password: take this path out of the login, and out of CSRF checks. \
             If it is your own check of the signature that fails, see whether it has the secret of this very \
             endpoint, and whether it looks at the raw bytes of the body.",
        ),
        404 => (
            "There is nothing at this path",
            "Compare the path in the URL with the routes of your server, also its first part if a proxy cuts one off.",
        ),
        405 => {
            ("The path does not take POST", "Webhooks are POST requests: let the route take them.")
        }
        410 => (
            "It answered 410 Gone, which means: never again",
            "The endpoint was switched off for that. Answer 2xx, and switch it on again.",
        ),
        413 => ("The body is too large for your server", "Let it take bodies of 20 kB."),
        415 => {
            ("Your server does not take JSON", "Let the route take Content-Type application/json.")
        }
        408 | 429 => (
            "Your server asks for less",
            "Answer 2xx at once and do the work afterwards, or let more requests through on this path.",
        ),
        502..=504 => (
            "A proxy in front of your server got nothing from it",
            "See whether the program behind the proxy runs, listens where the proxy looks for it, and answers in time.",
        ),
        500..=599 => (
            "Your server failed while it worked on this",
            "Its log at this time says why. The body on this page is exactly what it got: feed it that, and look.",
        ),
        _ => (
            "Your server refused this",
            "Whatever begins with 2 takes a webhook; all else is tried again. What it answered, or its log, may say \
             why.",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_leads_back_to_its_trouble() {
        for trouble in Trouble::ALL {
            assert_eq!(Trouble::of(&trouble.says("because")), Some(trouble));
        }
        assert_eq!(Trouble::of("no answer within 10 s"), Some(Trouble::Silent));
        assert_eq!(Trouble::of("it answered 500"), None);
    }

    #[test]
    fn there_is_advice_for_all_but_success() {
        for status in 100..=999 {
            let advice = Advice::about(Some(status), "");
            assert_eq!(advice.is_none(), (200..300).contains(&status), "{status}");
        }
        let unknown = Advice::about(None, "something else").unwrap();
        assert_eq!(unknown, Trouble::Cut.advice());
    }
}
