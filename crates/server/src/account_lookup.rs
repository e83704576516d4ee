//! Finds the accounts that an operator names, in commands and in the configuration.

use anyhow::bail;
use heliograph_domain::account::Role;
use heliograph_domain::account_ref::AccountRef;
use heliograph_service::identity::accounts::{self, Account};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::{ConflictReason, Error, UserAccount};

/// Returns the account with this ID, or the only account that the person with this email address
/// owns.
pub(crate) async fn find(cx: &Context, name: &AccountRef) -> anyhow::Result<Account> {
    let text = match (accounts::resolve(cx, name).await, name) {
        (Err(Error::NotFound), AccountRef::Id(id)) => {
            format!("no account has the ID {id}; run 'heliograph account list' to see accounts")
        }
        (Err(Error::NotFound), AccountRef::Owner(email)) => {
            format!("no account for {email}; run 'heliograph account list' to see accounts")
        }
        (Err(Error::Conflict(ConflictReason::AmbiguousAccount(all))), name) => {
            ambiguous(&name.to_string(), &all)
        }
        (other, _) => return Ok(other?),
    };
    Err(anyhow::Error::msg(text))
}

/// Returns the account of this name or, without a name, the only account.
pub(crate) async fn find_or_only(
    cx: &Context,
    name: Option<&AccountRef>,
) -> anyhow::Result<Account> {
    if let Some(name) = name {
        return find(cx, name).await;
    }
    let mut all = accounts::list(cx).await?;
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => bail!(
            "there are no accounts; start 'heliograph serve' or run 'heliograph account create'"
        ),
        (Some(_), false) => bail!(
            "there are several accounts; select one with --account ACCOUNT, by an ID that 'heliograph account list' shows"
        ),
    }
}

/// Explains that an email address names no account, and lists the accounts of the person.
fn ambiguous(email: &str, all: &[UserAccount]) -> String {
    let owned = all.iter().filter(|a| a.role == Role::Owner).count();
    let list = all.iter().map(|a| format!("{} ({}, {})", a.id, a.name, a.role.name()));
    let list = list.collect::<Vec<_>>().join("; ");
    match (owned, all.len()) {
        (_, 0) => format!(
            "{email} is not a member of any account; use the ID of the account, which 'heliograph account list' shows"
        ),
        (0, _) => format!(
            "{email} owns no account; use the ID of the account. {email} is a member of: {list}"
        ),
        (n, _) => format!(
            "{email} owns {n} accounts; use the ID of one of them. {email} is a member of: {list}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heliograph_domain::id::AccountId;

    #[test]
    fn accounts_of_a_person_are_listed() {
        let account =
            |id, name: &str, role| UserAccount { id: AccountId(id), name: name.to_owned(), role };
        let (one, two) = (account(1, "Shop", Role::Owner), account(7, "bob@x.org", Role::Viewer));
        assert_eq!(
            ambiguous("ann@x.org", std::slice::from_ref(&two)),
            "ann@x.org owns no account; use the ID of the account. ann@x.org is a member of: 7 (bob@x.org, viewer)"
        );
        assert_eq!(
            ambiguous("ann@x.org", &[one.clone(), account(3, "Ltd", Role::Owner), two]),
            "ann@x.org owns 2 accounts; use the ID of one of them. ann@x.org is a member of: \
             1 (Shop, owner); 3 (Ltd, owner); 7 (bob@x.org, viewer)"
        );
        assert!(
            ambiguous("ann@x.org", &[]).starts_with("ann@x.org is not a member of any account")
        );
    }
}
