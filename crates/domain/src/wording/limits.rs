//! The texts of limits.

use crate::account_limit::AccountLimit;

/// The sentence for the attempt to remove the default opt-out list.
pub const DEFAULT_OPTOUT_LIST: &str =
    "The default list can't be removed: an account always has one.";

/// The sentence for the attempt to rename the default opt-out list.
pub const DEFAULT_OPTOUT_LIST_NAME: &str = "The default list can't be renamed.";

/// The sentence for the name of an opt-out list that another one has.
pub const OPTOUT_LIST_EXISTS: &str = "There is already a list of this name. Choose another name.";

/// The sentence for a number that no route matches.
pub const NO_ROUTE: &str = "No carrier is configured for this number.";

/// The error of a message to a number without a price.
pub const NO_PRICE: &str = "No price is configured for this number.";

/// The sentence for an originator that is assigned to another account.
pub const SENDER_NOT_ALLOWED: &str = "This number belongs to another account, so it can't be the sender. Use a number of \
     your account, or a name.";

/// Returns the sentence for an account with the largest number of opt-out lists.
pub fn optout_lists(limit: i64) -> String {
    format!("The account already has {limit} lists, which is the limit.")
}

/// Returns the clause for an account with the largest number of API keys.
pub fn api_keys(limit: i64) -> String {
    format!("the account already has {limit} keys, which is the limit: revoke unused keys")
}

/// Returns the sentence for a text that needs too many message parts.
pub fn message_parts(parts: u16, allowed: u16) -> String {
    format!("The text needs {parts} parts, but at most {allowed} are allowed.")
}

/// Returns the name of a limit of an account.
pub const fn account_limit(limit: AccountLimit) -> &'static str {
    match limit {
        AccountLimit::RequestsPerSecond => "API requests per second of each key",
        AccountLimit::EventStreams => "Open dashboard pages with live updates",
        AccountLimit::WebhookEndpoints => "Webhook endpoints in each mode",
        AccountLimit::TestMessagesPerDay => "Test messages per day",
        AccountLimit::InvitationsPerDay => "Invitations per day",
        AccountLimit::MailsPerDay => "Emails per day",
        AccountLimit::StoredRows => "Stored test messages and opt-outs",
    }
}

/// Returns the sentences for an account that has reached a limit, whose value is `max`.
pub fn limit_reached(limit: AccountLimit, max: u32) -> String {
    let (what, remedy) = match limit {
        AccountLimit::RequestsPerSecond => ("API requests per second", "Send more slowly"),
        AccountLimit::EventStreams => ("open pages with live updates", "Close other pages"),
        AccountLimit::WebhookEndpoints => {
            ("webhook endpoints in this mode", "Remove endpoints that are not used")
        }
        AccountLimit::TestMessagesPerDay => {
            ("test messages per day", "The count begins again at midnight UTC: wait until then")
        }
        AccountLimit::InvitationsPerDay => {
            ("invitations per day", "The count begins again at midnight UTC: wait until then")
        }
        AccountLimit::MailsPerDay => {
            ("emails per day", "The count begins again at midnight UTC: wait until then")
        }
        AccountLimit::StoredRows => {
            ("stored test messages and opt-outs", "Remove opt-outs that are not needed")
        }
    };
    format!(
        "The account has reached its limit of {max} {what}. {remedy}, or ask the operator for a \
         higher limit."
    )
}
