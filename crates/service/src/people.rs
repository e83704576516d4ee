//! The people of an account: who they are, inviting, changing roles, and taking leave.

use crate::audit::{self, Actor};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mails;
use crate::passwords::Passwords;
use crate::sessions::{self, Origin, Visitor};
use heliograph_domain::account::Role;
use heliograph_domain::id::{AccountId, InvitationId, UserId};
use heliograph_domain::password;
use heliograph_domain::secret::Token;
pub use heliograph_store::invitations::Invitation;
pub use heliograph_store::memberships::Member;
use heliograph_store::{Conn, invitations, memberships, users};
use std::time::Duration;

/// How long an invitation holds: a week.
const HOLDS: Duration = Duration::from_secs(7 * 86_400);
/// Invitations that an account may have open.
const MOST: usize = 100;

/// Who belongs to the visitor's account, and who is invited.
///
/// # Errors
/// What keeps the database away.
pub async fn list(cx: &Context, who: &Visitor) -> Result<(Vec<Member>, Vec<Invitation>)> {
    let (account, now) = (who.signed.session.account, cx.db.now());
    let mut conn = cx.db.read().await?;
    let members = memberships::of(&mut conn, account).await?;
    let mut invited = invitations::of(&mut conn, account).await?;
    invited.retain(|i| i.expires_at > now);
    Ok((members, invited))
}

/// Invites a person, by mail where mail can be sent, with this secret in the link, which is shown only now. The same
/// secret again is the same invitation.
///
/// # Errors
/// [`Error::Scope`] for who may not; [`Error::Conflict`] when they belong to the account already.
pub async fn invite(
    cx: &Context,
    (who, actor): (&Visitor, &Actor),
    (email, role): (&str, Role),
    token: Token,
) -> Result<Token> {
    may_give(who, role)?;
    let (id, now) = cx.next_id();
    let mut tx = cx.db.write().await?;
    if let Some((there, _)) = invitations::by_hash(&mut tx, &token.hash()).await? {
        let over =
            "This invitation was taken back, or its time is over: reload the page to make another.";
        return if there.expires_at > now {
            Ok(token)
        } else {
            Err(Error::Conflict(over.to_owned()))
        };
    }
    let members = memberships::of(&mut tx, actor.account).await?;
    if members.iter().any(|m| m.email == email) {
        return Err(Error::Conflict("This person belongs to the account already.".to_owned()));
    }
    let open = invitations::of(&mut tx, actor.account).await?;
    if open.iter().filter(|i| i.expires_at > now).count() >= MOST {
        return Err(Error::Conflict("Too many invitations are open: take some back.".to_owned()));
    }
    let (account, email) = (actor.account, email.to_owned());
    let expires_at = now.after(HOLDS);
    let invitation =
        Invitation { id: InvitationId(id), account, email, role, created_at: now, expires_at };
    invitations::insert(&mut tx, &invitation, &token.hash()).await?;
    let (email, name) = (&invitation.email, &who.signed.account_name);
    let body = format!(
        "{} invites you to the account {name} on Heliograph, as {}.\n\nJoin here, within a week:\n{}{}\n",
        who.signed.email,
        role.name(),
        cx.settings().entrance.base_url,
        path(&token)
    );
    mails::send(cx, &mut tx, email, (&format!("Join {name} on Heliograph"), &body)).await?;
    let detail = format!("{email} as {}", role.name());
    audit::write(cx, &mut tx, actor, ("person invited", &detail)).await?;
    tx.commit().await?;
    Ok(token)
}

/// Where the link of an invitation leads.
pub fn path(token: &Token) -> String {
    format!("/join/{}", token.reveal())
}

/// Takes an invitation back.
///
/// # Errors
/// [`Error::Scope`]; [`Error::NotFound`].
pub async fn withdraw(
    cx: &Context,
    (who, actor): (&Visitor, &Actor),
    id: InvitationId,
) -> Result<()> {
    who.manages()?;
    let mut tx = cx.db.write().await?;
    let email = invitations::withdraw(&mut tx, actor.account, id).await?.ok_or(Error::NotFound)?;
    audit::write(cx, &mut tx, actor, ("invitation withdrawn", &email)).await?;
    Ok(tx.commit().await?)
}

/// Gives a person another role.
///
/// # Errors
/// [`Error::Scope`]; [`Error::NotFound`]; [`Error::Conflict`] when nobody would be owner.
pub async fn set_role(
    cx: &Context,
    (who, actor): (&Visitor, &Actor),
    user: UserId,
    role: Role,
) -> Result<()> {
    may_give(who, role)?;
    let mut tx = cx.db.write().await?;
    let (member, last) = find(&mut tx, actor.account, user).await?;
    may_give(who, member.role)?;
    if last && role != Role::Owner {
        return Err(without_owner());
    }
    memberships::set_role(&mut tx, actor.account, user, role).await?;
    let detail = format!("{} is {} now", member.email, role.name());
    audit::write(cx, &mut tx, actor, ("role changed", &detail)).await?;
    Ok(tx.commit().await?)
}

/// Takes a person out of the account; anybody may go themselves.
///
/// # Errors
/// As [`set_role`].
pub async fn remove(cx: &Context, (who, actor): (&Visitor, &Actor), user: UserId) -> Result<()> {
    let mut tx = cx.db.write().await?;
    let (member, last) = find(&mut tx, actor.account, user).await?;
    if user != who.signed.session.user {
        may_give(who, member.role)?;
    }
    if last {
        return Err(without_owner());
    }
    memberships::remove(&mut tx, actor.account, user).await?;
    audit::write(cx, &mut tx, actor, ("person removed", &member.email)).await?;
    Ok(tx.commit().await?)
}

/// What an invitation says, what the account is called, and whether the person has signed up before.
///
/// # Errors
/// [`Error::NotFound`] when it was taken back or used, or its time is over.
pub async fn invited(cx: &Context, token: &Token) -> Result<(Invitation, String, bool)> {
    let mut conn = cx.db.read().await?;
    let (invitation, name) = look(cx, &mut conn, token).await?;
    let known = users::by_email(&mut conn, &invitation.email).await?.is_some();
    Ok((invitation, name, known))
}

/// Joins as a person who is signed in already.
///
/// # Errors
/// [`Error::NotFound`] as above, also when somebody else is invited.
pub async fn join(cx: &Context, who: &Visitor, address: &str, token: &Token) -> Result<AccountId> {
    let mut tx = cx.db.write().await?;
    let person = (who.signed.session.user, who.signed.email.as_str());
    let account = join_as(cx, &mut tx, person, address, token).await?.ok_or(Error::NotFound)?;
    tx.commit().await?;
    Ok(account)
}

/// Joins in the transaction that found out who this is; `None` when no such invitation is open for them.
///
/// # Errors
/// As any write.
pub(crate) async fn join_as(
    cx: &Context,
    tx: &mut Conn,
    (user, email): (UserId, &str),
    address: &str,
    token: &Token,
) -> Result<Option<AccountId>> {
    match look(cx, tx, token).await {
        Ok((invitation, _)) if invitation.email == email => {
            take_in(cx, tx, &invitation, user, address).await?;
            Ok(Some(invitation.account))
        }
        Ok(_) | Err(Error::NotFound) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Joins as somebody new, who chooses a password; the secret of the session.
///
/// # Errors
/// [`Error::Weak`]; [`Error::NotFound`] as above; [`Error::Conflict`] for who has to sign in.
pub async fn join_anew(
    cx: &Context,
    passwords: &Passwords,
    (token, password): (&Token, &str),
    origin: &Origin,
) -> Result<Token> {
    let (invitation, ..) = invited(cx, token).await?;
    password::judge(password, &invitation.email)?;
    let hash = passwords.hash(password).await?;
    let (user, now) = cx.next_id();
    let user = UserId(user);
    let mut tx = cx.db.write().await?;
    let (invitation, _) = look(cx, &mut tx, token).await?;
    if !users::insert(&mut tx, user, &invitation.email, now).await? {
        return Err(Error::Conflict(
            "This person has signed up already: sign in first.".to_owned(),
        ));
    }
    users::set_password(&mut tx, user, &hash).await?;
    take_in(cx, &mut tx, &invitation, user, &origin.address).await?;
    let token = sessions::begin(cx, &mut tx, (user, None), origin, "by an invitation").await?;
    tx.commit().await?;
    Ok(token)
}

async fn look(cx: &Context, conn: &mut Conn, token: &Token) -> Result<(Invitation, String)> {
    let found = invitations::by_hash(conn, &token.hash()).await?;
    found.filter(|(i, _)| i.expires_at > cx.db.now()).ok_or(Error::NotFound)
}

async fn take_in(
    cx: &Context,
    tx: &mut Conn,
    invitation: &Invitation,
    user: UserId,
    address: &str,
) -> Result<()> {
    let account = invitation.account;
    invitations::remove(tx, account, invitation.id).await?.ok_or(Error::NotFound)?;
    memberships::insert(tx, account, user, invitation.role).await?;
    let actor = Actor { account, user: Some(user), address: address.to_owned() };
    let detail = format!("{} as {}", invitation.email, invitation.role.name());
    Ok(audit::write(cx, tx, &actor, ("person joined", &detail)).await?)
}

/// A person of an account, and whether they are its last owner. Nobody else changes that meanwhile.
async fn find(tx: &mut Conn, account: AccountId, user: UserId) -> Result<(Member, bool)> {
    memberships::lock(tx, account).await?;
    let all = memberships::of(tx, account).await?;
    let owners = all.iter().filter(|m| m.role == Role::Owner).count();
    let member = all.into_iter().find(|m| m.user == user).ok_or(Error::NotFound)?;
    let last = member.role == Role::Owner && owners == 1;
    Ok((member, last))
}

/// Owners alone make owners, and unmake them.
fn may_give(who: &Visitor, role: Role) -> Result<()> {
    who.manages()?;
    match role != Role::Owner || who.signed.role == Role::Owner {
        true => Ok(()),
        false => Err(Error::Scope("owner")),
    }
}

fn without_owner() -> Error {
    Error::Conflict("An account needs an owner: make somebody else one first.".to_owned())
}
