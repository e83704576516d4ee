//! The log of security events: one line for each, in a format that tools such as fail2ban can rely
//! on.

use heliograph_domain::id::{AccountId, ApiKeyId, UserId};
use tracing::field::display;

/// A security event. Fields that are unknown are left out of the line.
///
/// The line is `security event`, then `event=`, `client=`, `reason=` and the others in the order of
/// the fields here. Names of events and reasons never change.
#[derive(Clone, Copy, Debug, Default)]
pub struct SecurityEvent<'a> {
    /// The name of the event.
    pub event: &'static str,
    /// The address of the client; empty if the event has none, such as a command.
    pub client: &'a str,
    /// The code of the reason; empty if the name says it all.
    pub reason: &'a str,
    /// The API key.
    pub key: Option<ApiKeyId>,
    /// The account.
    pub account: Option<AccountId>,
    /// The user.
    pub user: Option<UserId>,
}

/// Logs an event with a macro of `tracing`, whose level must be known at compile time.
macro_rules! log {
    ($level:ident, $event:expr) => {{
        let SecurityEvent { event, client, reason, key, account, user } = $event;
        let (client, reason) = (text(client), text(reason));
        let (key, account) = (key.map(display), account.map(|id| id.0));
        let user = user.map(display);
        tracing::$level!(event, client, reason, key, account, user, "security event");
    }};
}

impl SecurityEvent<'_> {
    /// Logs a refusal or a failed attempt, as a warning.
    pub fn refused(self) {
        log!(warn, self);
    }

    /// Logs an action.
    pub fn done(self) {
        log!(info, self);
    }
}

fn text(value: &str) -> Option<&str> {
    Some(value).filter(|value| !value.is_empty())
}
