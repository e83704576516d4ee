//! What a caller of a rule can be told.

use heliograph_domain::password::Weak;
use heliograph_store as store;

/// Why something was not done. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No key, or not a valid one.
    #[error("the API key is missing, unknown or revoked")]
    Unauthenticated,
    /// The key may not do this.
    #[error("the API key lacks the scope '{0}'")]
    Scope(&'static str),
    /// There is no such thing, or it is another account's.
    #[error("there is no such thing")]
    NotFound,
    /// A password that nobody should choose: why.
    #[error(transparent)]
    Weak(#[from] Weak),
    /// A webhook endpoint can't be registered or used: why.
    #[error("{0}")]
    BadTarget(String),
    /// The balance does not cover it.
    #[error("the balance does not cover this message")]
    InsufficientBalance,
    /// The recipient is on the opt-out list that the message enforces.
    #[error("the recipient opted out")]
    RecipientOptedOut,
    /// It does not go with what there is: why.
    #[error("{0}")]
    Conflict(String),
    /// A message can't be called back any more: where it stands.
    #[error("{0}")]
    NotCancellable(&'static str),
    /// No carrier takes messages for this number.
    #[error("no carrier takes messages for this number")]
    DestinationNotAllowed,
    /// The text needs more parts than allowed.
    #[error("the text needs {parts} parts, {allowed} are allowed")]
    TooManyParts {
        /// As really split.
        parts: u16,
        /// By the request, or by the service's own limit.
        allowed: u16,
    },
    /// The idempotency key stands for another request.
    #[error("the idempotency key was used for another request")]
    IdempotencyKeyReused,
    /// A request with the same idempotency key is still under way.
    #[error("a request with the same idempotency key is still under way")]
    RequestInFlight,
    /// Too much to do, or the database is away: later.
    #[error("not now: {0}")]
    Overloaded(String),
    /// The database's answer was lost: it may have been done.
    #[error("it is not known whether this was done: {0}")]
    Unsure(String),
    /// Our fault.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A result of a rule.
pub type Result<T> = std::result::Result<T, Error>;

impl From<store::Error> for Error {
    fn from(e: store::Error) -> Self {
        match e {
            store::Error::Unavailable(e) => Self::Overloaded(e),
            store::Error::CommitLost(e) => Self::Unsure(e),
            store::Error::Conflict(_) => Self::RequestInFlight,
            store::Error::Backup(e) => Self::Conflict(e),
            store::Error::WrongKey => Self::Conflict(e.to_string()),
            store::Error::Corrupt(e) | store::Error::Db(e) => Self::Internal(e),
        }
    }
}
