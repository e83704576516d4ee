//! The rule for who may read the metrics.

use crate::error::Problem;
use crate::header::bearer_token;
use axum::http::{HeaderMap, header};
use heliograph_domain::secret::fingerprint;

/// The rule for who may read the metrics, which tell names of carriers and volumes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetricsAccess {
    /// Everybody who reaches the listener.
    Open,
    /// Clients with the token that has this fingerprint.
    Token([u8; 32]),
    /// Nobody.
    Hidden,
}

impl MetricsAccess {
    /// Requires a token.
    pub fn token(token: &str) -> Self {
        Self::Token(fingerprint(token.as_bytes()))
    }

    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match self {
            Self::Open => Ok(()),
            Self::Token(expected) => {
                let sent = headers.get(header::AUTHORIZATION).and_then(bearer_token);
                let right = sent.is_some_and(|it| fingerprint(it.as_bytes()) == *expected);
                if right { Ok(()) } else { Err(Problem::metrics_token()) }
            }
            Self::Hidden => Err(Problem::metrics_hidden()),
        }
    }
}
