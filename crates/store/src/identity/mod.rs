//! Accounts, users, members, sessions, API keys, links, mail and the audit log.

pub mod account_limits;
pub mod accounts;
pub mod api_keys;
pub mod audit;
pub mod invitations;
pub mod magic_links;
pub mod mails;
pub mod memberships;
pub mod recovery_codes;
pub mod sessions;
pub mod users;
