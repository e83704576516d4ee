//! The limits of an account, which keep one account from using up what all of them share.

/// A limit of each account. The operator sets its default in `[limits]`, and overrides it for
/// single accounts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AccountLimit {
    /// API requests per second of each API key.
    RequestsPerSecond,
    /// Event streams that are open at the same time: each open dashboard page has one.
    EventStreams,
    /// Webhook endpoints in each mode: every event is a row and a request for each of them.
    WebhookEndpoints,
    /// Accepted test messages per day. The default is for accounts that were opened by signing up.
    TestMessagesPerDay,
    /// Invitations of members per day.
    InvitationsPerDay,
    /// Emails per day that the account causes.
    MailsPerDay,
    /// Stored rows that cost nothing: test messages, and numbers on opt-out lists. The default is
    /// for accounts that were opened by signing up.
    StoredRows,
}

impl AccountLimit {
    /// All limits, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::RequestsPerSecond,
        Self::EventStreams,
        Self::WebhookEndpoints,
        Self::TestMessagesPerDay,
        Self::InvitationsPerDay,
        Self::MailsPerDay,
        Self::StoredRows,
    ];

    /// Returns the name in the configuration, in commands and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests_per_second",
            Self::EventStreams => "event_streams",
            Self::WebhookEndpoints => "webhook_endpoints",
            Self::TestMessagesPerDay => "test_messages_per_day",
            Self::InvitationsPerDay => "invitations_per_day",
            Self::MailsPerDay => "mails_per_day",
            Self::StoredRows => "stored_rows",
        }
    }

    /// Returns the limit with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.name() == name)
    }

    /// Returns whether the default is only for accounts that were opened by signing up. An account
    /// that the operator created has this limit only if the operator sets it.
    pub const fn only_self_registered(self) -> bool {
        matches!(self, Self::TestMessagesPerDay | Self::StoredRows)
    }

    /// Returns whether the limit counts what happened since midnight UTC.
    pub const fn is_daily(self) -> bool {
        matches!(self, Self::TestMessagesPerDay | Self::InvitationsPerDay | Self::MailsPerDay)
    }
}

/// A value of each limit; 0 means no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountLimits {
    values: [u32; AccountLimit::ALL.len()],
}

impl AccountLimits {
    /// Creates the values from a function.
    pub fn new(value: impl Fn(AccountLimit) -> u32) -> Self {
        Self { values: AccountLimit::ALL.map(value) }
    }

    /// Returns the value of a limit; 0 means no limit.
    pub fn get(&self, limit: AccountLimit) -> u32 {
        let all = AccountLimit::ALL.into_iter().zip(self.values);
        all.into_iter().find(|(known, _)| *known == limit).map_or(0, |(_, value)| value)
    }
}

impl Default for AccountLimits {
    /// The defaults of the configuration.
    fn default() -> Self {
        Self::new(|limit| match limit {
            AccountLimit::RequestsPerSecond => 1_000,
            AccountLimit::EventStreams => 100,
            AccountLimit::WebhookEndpoints => 10,
            AccountLimit::TestMessagesPerDay => 10_000,
            AccountLimit::InvitationsPerDay => 50,
            AccountLimit::MailsPerDay => 200,
            AccountLimit::StoredRows => 1_000_000,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_a_name_and_a_default() {
        for limit in AccountLimit::ALL {
            assert_eq!(AccountLimit::from_name(limit.name()), Some(limit));
            assert!(AccountLimits::default().get(limit) > 0, "{}", limit.name());
        }
        assert_eq!(AccountLimit::from_name("requests"), None);
    }
}
