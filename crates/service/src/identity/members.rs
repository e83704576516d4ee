//! Members of an account: inviting, joining, roles and removal.

use crate::identity::mails::{self, NewMail};
use crate::identity::passwords::Passwords;
use crate::identity::sessions::{self, AuthenticatedUser, NewSession, SessionOrigin};
use crate::kernel::audit::{self, Actor, AuditAction, SignInMethod};
use crate::kernel::context::Context;
use crate::kernel::error::{ConflictReason, Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Role;
use heliograph_domain::id::{AccountId, InvitationId, UserId};
use heliograph_domain::password;
use heliograph_domain::secret::Token;
use heliograph_store::Conn;
use heliograph_store::identity::invitations;
pub use heliograph_store::identity::invitations::Invitation;
pub use heliograph_store::identity::memberships::Member;
use heliograph_store::identity::memberships::{self, Membership};
use heliograph_store::identity::users::{self, NewUser};
use std::time::Duration;

/// The lifetime of an invitation: a week.
const HOLDS: Duration = Duration::from_secs(7 * 86_400);
/// The largest number of open invitations of an account.
const MOST: usize = 100;

/// Returns the members of the user's account and its open invitations.
#[boxed]
pub async fn list(cx: &Context, who: &AuthenticatedUser) -> Result<(Vec<Member>, Vec<Invitation>)> {
    let account = who.details.session.account;
    let now = cx.db.now();
    let mut conn = cx.db.read().await?;
    let members = memberships::list(&mut conn, account).await?;
    let mut invited = invitations::list(&mut conn, account).await?;
    invited.retain(|i| i.expires_at > now);
    Ok((members, invited))
}

/// A person to invite.
#[derive(Clone, Copy)]
pub struct Invitee<'a> {
    /// The email address.
    pub email: &'a str,
    /// The role in the account.
    pub role: Role,
}

/// Invites a person, by mail where it is configured. The token is the secret of the link, which is
/// shown only once; inviting with the same token again returns the same invitation.
///
/// # Errors
/// [`Error::Conflict`] when the person is a member already.
pub async fn invite(
    cx: &Context,
    who: &AuthenticatedUser,
    actor: &Actor,
    invitee: Invitee<'_>,
    token: Token,
) -> Result<Token> {
    let Invitee { email, role } = invitee;
    may_give(who, role)?;
    let (id, now) = cx.next_id();
    let mut tx = cx.db.write().await?;
    if let Some((there, _)) = invitations::by_hash(&mut tx, &token.hash()).await? {
        return if there.expires_at > now {
            Ok(token)
        } else {
            Err(Error::Conflict(ConflictReason::InvitationEnded))
        };
    }
    let members = memberships::list(&mut tx, actor.account).await?;
    if members.iter().any(|m| m.email == email) {
        return Err(Error::Conflict(ConflictReason::AlreadyMember));
    }
    let open = invitations::list(&mut tx, actor.account).await?;
    if open.iter().filter(|i| i.expires_at > now).count() >= MOST {
        return Err(Error::Conflict(ConflictReason::InvitationLimit));
    }
    let account = actor.account;
    let email = email.to_owned();
    let expires_at = now.after(HOLDS);
    let id = InvitationId(id);
    let inviter = who.details.session.user;
    let invitation = Invitation { id, account, email, role, inviter, created_at: now, expires_at };
    invitations::insert(&mut tx, &invitation, &token.hash()).await?;
    let email = &invitation.email;
    let name = &who.details.account_name;
    let body = format!(
        "{} invited you to the account {name} on Heliograph as {}.\n\nAccept the invitation with this \
         link, which expires in seven days:\n{}{}\n",
        who.details.email,
        role.name(),
        cx.settings().sign_up.base_url,
        invitation_path(&token)
    );
    let subject = format!("Invitation to {name} on Heliograph");
    mails::send(cx, &mut tx, NewMail { recipient: email, subject: &subject, body: &body }).await?;
    let detail = format!("{email} as {}", role.name());
    audit::record(cx, &mut tx, actor, AuditAction::MemberInvited, &detail).await?;
    tx.commit().await?;
    Ok(token)
}

/// Returns the path of an invitation link.
pub fn invitation_path(token: &Token) -> String {
    format!("/join/{}", token.reveal())
}

/// Revokes an invitation.
#[boxed]
pub async fn revoke_invitation(
    cx: &Context,
    who: &AuthenticatedUser,
    actor: &Actor,
    id: InvitationId,
) -> Result<()> {
    who.require_manager()?;
    let mut tx = cx.db.write().await?;
    let email = invitations::revoke(&mut tx, actor.account, id).await?.ok_or(Error::NotFound)?;
    audit::record(cx, &mut tx, actor, AuditAction::InvitationRevoked, &email).await?;
    Ok(tx.commit().await?)
}

/// Changes the role of a member.
///
/// # Errors
/// [`Error::Conflict`] when the account would have no owner.
#[boxed]
pub async fn set_role(
    cx: &Context,
    who: &AuthenticatedUser,
    actor: &Actor,
    user: UserId,
    role: Role,
) -> Result<()> {
    may_give(who, role)?;
    let mut tx = cx.db.write().await?;
    let (member, last) = find(&mut tx, actor.account, user).await?;
    may_give(who, member.role)?;
    if last && role != Role::Owner {
        return Err(Error::Conflict(ConflictReason::LastOwner));
    }
    memberships::set_role(&mut tx, actor.account, user, role).await?;
    end_invitations(cx, &mut tx, actor, user, Some(role)).await?;
    let detail = format!("{} is {} now", member.email, role.name());
    audit::record(cx, &mut tx, actor, AuditAction::RoleChanged, &detail).await?;
    Ok(tx.commit().await?)
}

/// Removes a member from the account; every member may leave.
///
/// # Errors
/// [`Error::Conflict`] when the account would have no owner.
#[boxed]
pub async fn remove(
    cx: &Context,
    who: &AuthenticatedUser,
    actor: &Actor,
    user: UserId,
) -> Result<()> {
    let mut tx = cx.db.write().await?;
    let (member, last) = find(&mut tx, actor.account, user).await?;
    if user != who.details.session.user {
        may_give(who, member.role)?;
    }
    if last {
        return Err(Error::Conflict(ConflictReason::LastOwner));
    }
    memberships::delete(&mut tx, actor.account, user).await?;
    end_invitations(cx, &mut tx, actor, user, None).await?;
    audit::record(cx, &mut tx, actor, AuditAction::MemberRemoved, &member.email).await?;
    Ok(tx.commit().await?)
}

/// Returns an invitation, the name of the account, and whether the person has signed up before.
///
/// # Errors
/// [`Error::NotFound`] when it was revoked, was used or has expired.
#[boxed]
pub async fn find_invitation(cx: &Context, token: &Token) -> Result<(Invitation, String, bool)> {
    let mut conn = cx.db.read().await?;
    let (invitation, name) = look(cx, &mut conn, token).await?;
    let known = users::by_email(&mut conn, &invitation.email).await?.is_some();
    Ok((invitation, name, known))
}

/// Joins the account as a signed-in user.
///
/// # Errors
/// [`Error::NotFound`] also when another person is invited.
#[boxed]
pub async fn accept_invitation(
    cx: &Context,
    who: &AuthenticatedUser,
    address: &str,
    token: &Token,
) -> Result<AccountId> {
    let mut tx = cx.db.write().await?;
    let person = InvitedUser { id: who.details.session.user, email: &who.details.email };
    let account =
        accept_invitation_as(cx, &mut tx, person, address, token).await?.ok_or(Error::NotFound)?;
    tx.commit().await?;
    Ok(account)
}

/// A user who follows an invitation link.
#[derive(Clone, Copy)]
pub(crate) struct InvitedUser<'a> {
    /// The user.
    pub(crate) id: UserId,
    /// The user's email address.
    pub(crate) email: &'a str,
}

/// Joins the account within a transaction; `None` when the user has no such open invitation.
pub(crate) async fn accept_invitation_as(
    cx: &Context,
    tx: &mut Conn,
    user: InvitedUser<'_>,
    address: &str,
    token: &Token,
) -> Result<Option<AccountId>> {
    match look(cx, tx, token).await {
        Ok((invitation, _)) if invitation.email == user.email => {
            join(cx, tx, &invitation, user.id, address).await?;
            Ok(Some(invitation.account))
        }
        Ok(_) | Err(Error::NotFound) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Joins the account as a new user with this password, and returns the secret of the session.
///
/// # Errors
/// [`Error::WeakPassword`]; [`Error::Conflict`] when the person has signed up already.
#[boxed]
pub async fn sign_up_by_invitation(
    cx: &Context,
    passwords: &Passwords,
    token: &Token,
    password: &str,
    origin: &SessionOrigin,
) -> Result<Token> {
    let (invitation, ..) = find_invitation(cx, token).await?;
    password::check(password, &invitation.email)?;
    let hash = passwords.hash(password).await?;
    let (user, now) = cx.next_id();
    let user = UserId(user);
    let mut tx = cx.db.write().await?;
    let (invitation, _) = look(cx, &mut tx, token).await?;
    let email = invitation.email.clone();
    let new = NewUser { id: user, email, operator: false, created_at: now };
    if !users::insert(&mut tx, &new).await? {
        return Err(Error::Conflict(ConflictReason::UserExists));
    }
    users::set_password(&mut tx, user, &hash).await?;
    join(cx, &mut tx, &invitation, user, &origin.address).await?;
    let token = sessions::start(
        cx,
        &mut tx,
        NewSession { user, account: None, origin, method: SignInMethod::Invitation },
    )
    .await?;
    tx.commit().await?;
    Ok(token)
}

/// Ends the open invitations of an inviter whose role is this now; `None` after removal.
async fn end_invitations(
    cx: &Context,
    tx: &mut Conn,
    actor: &Actor,
    inviter: UserId,
    role: Option<Role>,
) -> Result<()> {
    for invitation in invitations::list(tx, actor.account).await? {
        if invitation.inviter != inviter || role.is_some_and(|r| r.may_give(invitation.role)) {
            continue;
        }
        if let Some(email) = invitations::revoke(tx, actor.account, invitation.id).await? {
            audit::record(cx, tx, actor, AuditAction::InvitationRevoked, &email).await?;
        }
    }
    Ok(())
}

/// Returns an open invitation and the name of the account. An invitation is open only while its
/// inviter may still give the role: `end_invitations` cannot see those that another transaction
/// stores at the same time.
async fn look(cx: &Context, conn: &mut Conn, token: &Token) -> Result<(Invitation, String)> {
    let found = invitations::by_hash(conn, &token.hash()).await?;
    let found = found.filter(|(i, _)| i.expires_at > cx.db.now());
    let (invitation, name) = found.ok_or(Error::NotFound)?;
    let inviter = memberships::role(conn, invitation.account, invitation.inviter).await?;
    match inviter.is_some_and(|role| role.may_give(invitation.role)) {
        true => Ok((invitation, name)),
        false => Err(Error::NotFound),
    }
}

async fn join(
    cx: &Context,
    tx: &mut Conn,
    invitation: &Invitation,
    user: UserId,
    address: &str,
) -> Result<()> {
    let account = invitation.account;
    invitations::consume(tx, account, invitation.id).await?.ok_or(Error::NotFound)?;
    memberships::insert(tx, &Membership { user, account, role: invitation.role }).await?;
    let actor = Actor { account, user: Some(user), address: address.to_owned() };
    let detail = format!("{} as {}", invitation.email, invitation.role.name());
    Ok(audit::record(cx, tx, &actor, AuditAction::MemberJoined, &detail).await?)
}

/// Returns a member and whether they are the last owner. Members stay locked until the commit.
async fn find(tx: &mut Conn, account: AccountId, user: UserId) -> Result<(Member, bool)> {
    memberships::lock(tx, account).await?;
    let all = memberships::list(tx, account).await?;
    let owners = all.iter().filter(|m| m.role == Role::Owner).count();
    let member = all.into_iter().find(|m| m.user == user).ok_or(Error::NotFound)?;
    let last = member.role == Role::Owner && owners == 1;
    Ok((member, last))
}

/// Checks that the user may grant or revoke a role: only owners manage owners.
fn may_give(who: &AuthenticatedUser, role: Role) -> Result<()> {
    who.require_manager()?;
    if who.details.role.may_give(role) { Ok(()) } else { Err(Error::Scope("owner")) }
}
