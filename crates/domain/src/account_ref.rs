//! References to accounts in commands and in the configuration.

use crate::email;
use crate::id::AccountId;
use std::fmt;
use std::str::FromStr;

/// A reference to an account, as an operator writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccountRef {
    /// The ID of the account.
    Id(AccountId),
    /// The email address of a person, lower-case, who owns exactly one account.
    Owner(String),
}

/// The text is neither an ID nor an email address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "expected the ID of an account, such as 7, or the email address of a person who owns one account"
)]
pub struct InvalidAccountRef;

impl FromStr for AccountRef {
    type Err = InvalidAccountRef;

    fn from_str(text: &str) -> Result<Self, InvalidAccountRef> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            let id = text.parse().ok().filter(|id| *id > 0).ok_or(InvalidAccountRef)?;
            return Ok(Self::Id(AccountId(id)));
        }
        email::parse(text).map(Self::Owner).ok_or(InvalidAccountRef)
    }
}

impl fmt::Display for AccountRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => fmt::Display::fmt(id, f),
            Self::Owner(email) => f.write_str(email),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_named_by_its_id_or_by_its_owner() {
        assert_eq!("7".parse(), Ok(AccountRef::Id(AccountId(7))));
        assert_eq!(" 12 ".parse(), Ok(AccountRef::Id(AccountId(12))));
        let ann = AccountRef::Owner("ann@example.com".to_owned());
        assert_eq!("Ann@Example.com".parse(), Ok(ann));
        for wrong in ["", "0", "-1", "#7", "7a", "99999999999999999999", "Ann", "ann@"] {
            assert_eq!(wrong.parse::<AccountRef>(), Err(InvalidAccountRef), "{wrong}");
        }
    }
}
