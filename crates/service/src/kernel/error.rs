//! The errors of the business rules.

use heliograph_domain::egress_policy::EgressDenied;
use heliograph_domain::id::EndpointId;
use heliograph_domain::password::WeakPassword;
use heliograph_domain::webhook::DisabledReason;
use heliograph_domain::webhook_url::BadWebhookUrl;
use heliograph_store as store;

/// A reason why an operation failed. Except for [`Error::CommitUnknown`], nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The credentials are missing, unknown, revoked or expired.
    #[error("the API key is missing, unknown or revoked")]
    Unauthenticated,
    /// The caller lacks this scope.
    #[error("the API key lacks the scope '{0}'")]
    Scope(&'static str),
    /// The object does not exist or belongs to another account.
    #[error("not found")]
    NotFound,
    /// The password is too weak; the source says why.
    #[error(transparent)]
    WeakPassword(#[from] WeakPassword),
    /// A webhook endpoint cannot be registered or used.
    #[error(transparent)]
    InvalidEndpoint(#[from] InvalidEndpoint),
    /// The balance does not cover the message.
    #[error("the balance does not cover this message")]
    InsufficientBalance,
    /// The recipient is on the opt-out list that the message enforces.
    #[error("the recipient has opted out")]
    RecipientOptedOut,
    /// The operation conflicts with the current state.
    #[error("conflict: {}", .0.code())]
    Conflict(ConflictReason),
    /// The message can no longer be cancelled.
    #[error("not cancellable: {}", .0.code())]
    NotCancellable(NotCancellableReason),
    /// No route leads to this number.
    #[error("no carrier is configured for this number")]
    DestinationNotAllowed,
    /// The text needs more message parts than allowed.
    #[error("the text needs {parts} parts, {allowed} are allowed")]
    TooManyParts {
        /// The number of parts that the text needs.
        parts: u16,
        /// The limit of the request or of the service.
        allowed: u16,
    },
    /// The idempotency key belongs to a different request.
    #[error("the idempotency key belongs to a different request")]
    IdempotencyKeyReused,
    /// A request with the same idempotency key is in progress.
    #[error("a request with the same idempotency key is in progress")]
    RequestInFlight,
    /// A queue is full or the database is unavailable; the caller should retry later.
    #[error("temporarily unavailable: {0}")]
    Overloaded(String),
    /// The answer to the commit was lost, so the change may or may not have been stored.
    #[error("commit outcome unknown: {0}")]
    CommitUnknown(String),
    /// A backup or the sealing key cannot be used; the text is for the operator.
    #[error("{0}")]
    Installation(String),
    /// A defect of the service.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The reason of an [`Error::Conflict`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConflictReason {
    /// The invitation was revoked or has expired.
    InvitationEnded,
    /// The invited person is a member of the account.
    AlreadyMember,
    /// Too many invitations are open.
    InvitationLimit,
    /// The invited person has a user, and has to sign in to join.
    UserExists,
    /// The account would have no owner.
    LastOwner,
    /// Two-factor authentication is on.
    TwoFactorEnabled,
    /// Two-factor authentication is off.
    TwoFactorDisabled,
    /// The setup of two-factor authentication has not begun.
    TwoFactorNotPending,
    /// The account has the largest number of API keys, which is given.
    ApiKeyLimit(i64),
    /// The account has the largest number of opt-out lists, which is given.
    OptoutListLimit(i64),
    /// The default opt-out list cannot be removed.
    DefaultOptoutList,
    /// No account has this email address, to which the configuration assigns a number.
    UnknownAccount(String),
    /// The database of a restore holds this number of accounts.
    DatabaseNotEmpty(usize),
    /// The backup violates invariants.
    BackupViolations {
        /// The number of violations.
        count: usize,
        /// The first one.
        first: String,
    },
}

impl ConflictReason {
    /// Returns the code, for logs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvitationEnded => "invitation_ended",
            Self::AlreadyMember => "already_member",
            Self::InvitationLimit => "invitation_limit",
            Self::UserExists => "user_exists",
            Self::LastOwner => "last_owner",
            Self::TwoFactorEnabled => "two_factor_enabled",
            Self::TwoFactorDisabled => "two_factor_disabled",
            Self::TwoFactorNotPending => "two_factor_not_pending",
            Self::ApiKeyLimit(_) => "api_key_limit",
            Self::OptoutListLimit(_) => "optout_list_limit",
            Self::DefaultOptoutList => "default_optout_list",
            Self::UnknownAccount(_) => "unknown_account",
            Self::DatabaseNotEmpty(_) => "database_not_empty",
            Self::BackupViolations { .. } => "backup_violations",
        }
    }
}

/// The reason of an [`Error::NotCancellable`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotCancellableReason {
    /// A node is submitting the message.
    InProgress,
    /// Some parts may have been sent.
    InDoubt,
    /// Some parts were sent.
    PartlySent,
    /// All parts were sent.
    Sent,
    /// The message was delivered.
    Delivered,
    /// The message has failed or was cancelled.
    Ended,
}

impl NotCancellableReason {
    /// Returns the code, for logs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::InDoubt => "in_doubt",
            Self::PartlySent => "partly_sent",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Ended => "ended",
        }
    }
}

/// The reason why a webhook endpoint cannot be registered or used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidEndpoint {
    /// The URL is not accepted.
    #[error(transparent)]
    Url(#[from] BadWebhookUrl),
    /// The egress policy denies the address (SSRF protection).
    #[error(transparent)]
    Denied(#[from] EgressDenied),
    /// The host name cannot be resolved.
    #[error("{host} can't be resolved: {error}")]
    HostNotFound {
        /// The host name.
        host: String,
        /// The error of the resolver.
        error: String,
    },
    /// The host name has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// The account has the largest number of endpoints in this mode, which is given.
    #[error("the account already has {0} endpoints, which is the limit")]
    Limit(usize),
    /// The endpoint is off.
    #[error("endpoint {0} is off, because {detail}: switch it on first", detail = .1.detail())]
    Off(EndpointId, DisabledReason),
}

/// The result of a business rule.
pub type Result<T> = std::result::Result<T, Error>;

impl From<store::StoreError> for Error {
    fn from(e: store::StoreError) -> Self {
        match e {
            store::StoreError::Unavailable(e) => Self::Overloaded(e),
            store::StoreError::CommitLost(e) => Self::CommitUnknown(e),
            store::StoreError::Conflict(_) => Self::RequestInFlight,
            store::StoreError::Backup(e) => Self::Installation(e),
            store::StoreError::WrongKey => Self::Installation(e.to_string()),
            store::StoreError::Corrupt(e) | store::StoreError::Db(e) => Self::Internal(e),
        }
    }
}
