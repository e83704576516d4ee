//! The errors of the business rules.
//!
//! The `Display` text of an error is for logs. API, dashboard and commands have their own wording.

use heliograph_domain::account::Role;
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::endpoint_error::InvalidEndpoint;
use heliograph_domain::id::AccountId;
use heliograph_domain::message::NotCancellableReason;
use heliograph_domain::money::Amount;
use heliograph_domain::password::WeakPassword;
use heliograph_store as store;
use std::fmt;

/// A price that the balance does not cover.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shortfall {
    /// The price of the message.
    pub price: Amount,
    /// The available balance, read after the refusal.
    pub available: Amount,
    /// The currency of both, ISO 4217.
    pub currency: String,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { price, available, currency } = self;
        write!(f, "the message costs {price} {currency}, and {available} {currency} are available")
    }
}

/// A reason why an operation failed. Except for [`Error::CommitUnknown`], nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The credentials are missing, unknown, revoked or expired.
    #[error("unauthenticated")]
    Unauthenticated,
    /// The caller lacks this scope.
    #[error("missing scope: {0}")]
    Scope(&'static str),
    /// The object does not exist or belongs to another account.
    #[error("not found")]
    NotFound,
    /// The password is too weak; the source says why.
    #[error(transparent)]
    WeakPassword(#[from] WeakPassword),
    /// A webhook endpoint cannot be registered or used.
    #[error("invalid endpoint: {}", .0.code())]
    InvalidEndpoint(InvalidEndpoint),
    /// The balance does not cover a debit.
    #[error("insufficient balance")]
    InsufficientBalance,
    /// The balance does not cover the price of a message.
    #[error("insufficient balance: {0}")]
    PriceNotCovered(Shortfall),
    /// The recipient is on the opt-out list that the message enforces.
    #[error("recipient opted out")]
    RecipientOptedOut,
    /// The operation conflicts with the current state.
    #[error("conflict: {}", .0.code())]
    Conflict(ConflictReason),
    /// The message can no longer be cancelled.
    #[error("not cancellable: {}", .0.code())]
    NotCancellable(NotCancellableReason),
    /// No live message can be sent to this number.
    #[error("destination not allowed: {0:?}")]
    DestinationNotAllowed(DestinationReason),
    /// The originator is a number that is assigned to another account.
    #[error("sender not allowed")]
    SenderNotAllowed,
    /// The text needs more message parts than allowed.
    #[error("too many parts: {parts}, allowed: {allowed}")]
    TooManyParts {
        /// The number of parts that the text needs.
        parts: u16,
        /// The limit of the request or of the service.
        allowed: u16,
    },
    /// The account has reached a limit, whose value is `max`.
    #[error("limit reached: {} = {max}", .limit.name())]
    LimitReached {
        /// The limit.
        limit: AccountLimit,
        /// Its value.
        max: u32,
    },
    /// The idempotency key belongs to a different request.
    #[error("idempotency key reused")]
    IdempotencyKeyReused,
    /// A request with the same idempotency key is in progress.
    #[error("request in flight")]
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
    /// All accounts together have invited the person too many times today.
    InvitationMailLimit,
    /// The user has to confirm the email address first.
    EmailUnconfirmed,
    /// Members of the account need two-factor authentication, which the user has not.
    TwoFactorMissing,
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
    /// The account has an opt-out list of this name.
    OptoutListExists,
    /// The default opt-out list cannot be removed.
    DefaultOptoutList,
    /// The default opt-out list cannot be renamed.
    DefaultOptoutListName,
    /// The person does not own exactly one account, so that their email address names none. These
    /// are the accounts of which they are a member.
    AmbiguousAccount(Vec<UserAccount>),
    /// The number is assigned to this other account.
    NumberAssigned(AccountId),
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
            Self::InvitationMailLimit => "invitation_mail_limit",
            Self::EmailUnconfirmed => "email_unconfirmed",
            Self::TwoFactorMissing => "two_factor_missing",
            Self::UserExists => "user_exists",
            Self::LastOwner => "last_owner",
            Self::TwoFactorEnabled => "two_factor_enabled",
            Self::TwoFactorDisabled => "two_factor_disabled",
            Self::TwoFactorNotPending => "two_factor_not_pending",
            Self::ApiKeyLimit(_) => "api_key_limit",
            Self::OptoutListLimit(_) => "optout_list_limit",
            Self::OptoutListExists => "optout_list_exists",
            Self::DefaultOptoutList => "default_optout_list",
            Self::DefaultOptoutListName => "default_optout_list_name",
            Self::AmbiguousAccount(_) => "ambiguous_account",
            Self::NumberAssigned(_) => "number_assigned",
            Self::DatabaseNotEmpty(_) => "database_not_empty",
            Self::BackupViolations { .. } => "backup_violations",
        }
    }
}

/// An account of a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserAccount {
    /// The ID.
    pub id: AccountId,
    /// The name.
    pub name: String,
    /// The user's role.
    pub role: Role,
}

/// The reason why no live message can be sent to a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DestinationReason {
    /// No route leads to the number.
    NoRoute,
    /// The number has no price.
    NoPrice,
}

/// The result of a business rule.
pub type Result<T> = std::result::Result<T, Error>;

impl From<InvalidEndpoint> for Error {
    fn from(why: InvalidEndpoint) -> Self {
        Self::InvalidEndpoint(why)
    }
}

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
