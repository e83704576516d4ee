//! The outcome of a webhook delivery attempt: the status of the response, or the error.
//!
//! Only codes and technical details are stored; [`crate::wording::deliveries`] has the texts.

/// The outcome of a delivery attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttemptOutcome {
    /// The endpoint responded with this HTTP status.
    Response(u16),
    /// There was no response.
    Error(DeliveryErrorKind),
}

impl AttemptOutcome {
    /// Returns the stored code: the HTTP status, or the negative code of the error.
    pub fn code(self) -> i16 {
        match self {
            Self::Response(status) => i16::try_from(status).unwrap_or(i16::MAX),
            Self::Error(kind) => -kind.code(),
        }
    }

    /// Returns the value of a stored code.
    pub fn from_code(code: i16) -> Option<Self> {
        match u16::try_from(code) {
            Ok(status @ 1..) => Some(Self::Response(status)),
            _ => DeliveryErrorKind::from_code(code.checked_neg()?).map(Self::Error),
        }
    }

    /// Returns the HTTP status, if there was a response.
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Response(status) => Some(status),
            Self::Error(_) => None,
        }
    }

    /// Returns whether the endpoint accepted the delivery (2xx).
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Response(200..=299))
    }
}

/// An error of a delivery attempt without a response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryError {
    /// The kind.
    pub kind: DeliveryErrorKind,
    /// The technical detail: an address, a time limit, or the text of the system or a library.
    pub detail: String,
}

impl DeliveryError {
    /// Creates an error.
    pub fn new(kind: DeliveryErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)+) => {
        /// The kind of a [`DeliveryError`].
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum DeliveryErrorKind {
            $($(#[$doc])* $name,)+
        }

        impl DeliveryErrorKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the code; never negative.
            pub const fn code(self) -> i16 {
                match self { $(Self::$name => $code,)+ }
            }

            /// Returns the value of a code.
            pub const fn from_code(code: i16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Another error; the detail says which.
    Other = 0,
    /// The host name does not resolve; the detail is the name and the resolver's error.
    HostNotFound = 1,
    /// The host name has no address; the detail is the name.
    NoAddress = 2,
    /// The egress policy denies the address, which is not public (SSRF protection).
    PrivateAddress = 3,
    /// The egress policy denies plain HTTP to the address.
    PlainHttp = 4,
    /// The connection was refused: nothing listens on the port.
    ConnectionRefused = 5,
    /// The connection could not be established.
    ConnectFailed = 6,
    /// The connection was not established within the time limit, which is the detail.
    ConnectTimeout = 7,
    /// The server does not speak TLS on this port.
    NotTls = 8,
    /// The certificate is not issued by a trusted authority.
    UntrustedCertificate = 9,
    /// The certificate is not valid for this request; the detail says why.
    InvalidCertificate = 10,
    /// The TLS handshake failed for another reason.
    TlsFailed = 11,
    /// The response took longer than the time limit, which is the detail.
    ResponseTimeout = 12,
    /// The connection was closed without a response.
    ConnectionClosed = 13,
    /// The response was not HTTP.
    InvalidResponse = 14,
    /// The egress policy denies the port, which is the detail.
    PortDenied = 15,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_restored_from_their_codes() {
        let errors = DeliveryErrorKind::ALL.iter().copied().map(AttemptOutcome::Error);
        let outcomes: Vec<_> = (1..=999).map(AttemptOutcome::Response).chain(errors).collect();
        let mut codes: Vec<_> = outcomes.iter().map(|o| o.code()).collect();
        for outcome in &outcomes {
            assert_eq!(AttemptOutcome::from_code(outcome.code()), Some(*outcome));
        }
        codes.sort_unstable();
        assert!(codes.is_sorted_by(|a, b| a < b), "every outcome has its own code");
        assert_eq!(AttemptOutcome::from_code(-99), None);
        assert_eq!(AttemptOutcome::from_code(i16::MIN), None);
    }

    #[test]
    fn only_2xx_is_a_success() {
        for status in 100..=999 {
            let success = AttemptOutcome::Response(status).is_success();
            assert_eq!(success, (200..300).contains(&status), "{status}");
        }
        assert!(!AttemptOutcome::Error(DeliveryErrorKind::Other).is_success());
    }
}
