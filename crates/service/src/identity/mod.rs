//! Accounts and people: sign-up, sign-in, sessions, members, passwords, two-factor authentication, API keys.

pub mod account_limits;
pub mod accounts;
pub mod api_keys;
pub mod magic_links;
pub mod mails;
pub mod members;
pub mod password_resets;
pub mod passwords;
pub mod sessions;
pub mod sign_in;
pub mod sign_up;
pub mod two_factor;
