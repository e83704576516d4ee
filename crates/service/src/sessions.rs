//! Sessions: beginning one, recognising who is signed in, and what they look at.

use crate::audit::{self, Actor};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::id::{AccountId, SessionId, UserId};
use heliograph_domain::secret::Token;
use heliograph_domain::time::Timestamp;
pub use heliograph_store::sessions::Session;
use heliograph_store::sessions::Signed;
use heliograph_store::{Conn, accounts, invitations, one_time_links, sessions};
use std::time::Duration;

/// A session ends when its owner has not been there for so long: a week.
const IDLE: Duration = Duration::from_secs(7 * 86_400);
/// And at the latest after 30 days.
const LIFE: Duration = Duration::from_secs(30 * 86_400);
/// How exactly it is known when the owner was there last: a row is not written for each page.
const SEEN: Duration = Duration::from_secs(60);
/// What is kept of a browser's name for itself, in characters.
const AGENT: usize = 200;

/// Who signed in, and how they are seen from here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visitor {
    /// What the database knows of them.
    pub signed: Signed,
}

impl Visitor {
    /// The same person as a caller of what keys can do as well.
    pub fn caller(&self) -> Caller {
        Caller {
            account: self.signed.session.account,
            mode: self.signed.session.mode,
            scopes: self.signed.role.scopes(),
            key: None,
            currency: self.signed.currency.clone(),
            optout_list: self.signed.optout_list,
        }
    }

    /// Who does what is done now.
    pub fn actor(&self, address: &str) -> Actor {
        let session = &self.signed.session;
        let address = address.to_owned();
        Actor { account: session.account, user: Some(session.user), address }
    }

    /// Refuses who does not operate the installation: for them there is no such page.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub const fn operates(&self) -> Result<()> {
        match self.signed.operator {
            true => Ok(()),
            false => Err(Error::NotFound),
        }
    }

    /// Who does what an operator does to an account.
    pub fn operator_of(&self, account: AccountId, address: &str) -> Actor {
        Actor { account, ..self.actor(address) }
    }

    /// Refuses who may not change keys, webhooks and people.
    ///
    /// # Errors
    /// [`Error::Scope`].
    pub fn manages(&self) -> Result<()> {
        match self.signed.role.manages() {
            true => Ok(()),
            false => Err(Error::Scope("manage")),
        }
    }
}

/// Whence somebody signs in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The network address.
    pub address: String,
    /// What the browser calls itself.
    pub agent: String,
}

/// Begins a session in an account of a person, their first one if none is named, in the transaction that found them
/// worthy, and gives its secret. `how` is for the audit log.
///
/// # Errors
/// [`Error::Unauthenticated`] for who belongs to no account.
pub async fn begin(
    cx: &Context,
    tx: &mut Conn,
    (user, account): (UserId, Option<AccountId>),
    origin: &Origin,
    how: &str,
) -> Result<Token> {
    let account = match account {
        Some(account) => account,
        None => accounts::of_user(tx, user).await?.first().ok_or(Error::Unauthenticated)?.0,
    };
    let (token, (id, now)) = (cx.token()?, cx.next_id());
    let session = Session {
        id: SessionId(id),
        user,
        account,
        mode: Mode::Test,
        created_at: now,
        seen_at: now,
        address: origin.address.clone(),
        agent: origin.agent.chars().take(AGENT).collect(),
    };
    sessions::insert(tx, &session, &token.hash()).await?;
    let actor = Actor { account, user: Some(user), address: origin.address.clone() };
    audit::write(cx, tx, &actor, ("signed in", how)).await?;
    Ok(token)
}

/// Goes on with a fresh secret, and ends all other sessions of the person: after what a thief must not survive.
///
/// # Errors
/// As any write.
pub async fn rotate(cx: &Context, tx: &mut Conn, session: &Session) -> Result<Token> {
    let (token, (id, _)) = (cx.token()?, cx.next_id());
    let fresh = Session { id: SessionId(id), ..session.clone() };
    sessions::insert(tx, &fresh, &token.hash()).await?;
    sessions::end_others(tx, session.user, Some(fresh.id)).await?;
    Ok(token)
}

/// Ends all of a person's sessions but the one that they use now; how many.
///
/// # Errors
/// What keeps the database away.
pub async fn end_others(cx: &Context, who: &Visitor, actor: &Actor) -> Result<u64> {
    let session = &who.signed.session;
    let mut tx = cx.db.write().await?;
    let ended = sessions::end_others(&mut tx, session.user, Some(session.id)).await?;
    if ended > 0 {
        audit::write(cx, &mut tx, actor, ("other sessions ended", &ended.to_string())).await?;
    }
    tx.commit().await?;
    Ok(ended)
}

/// Who this is.
///
/// # Errors
/// [`Error::Unauthenticated`] when the session has ended, or there never was one.
pub async fn recognise(cx: &Context, token: &Token) -> Result<Visitor> {
    let now = cx.db.now();
    let hash = token.hash();
    let found = sessions::by_hash(&mut cx.db.read().await?, &hash).await?;
    let alive =
        |s: &Signed| now < s.session.seen_at.after(IDLE) && now < s.session.created_at.after(LIFE);
    let signed = found.filter(alive).ok_or(Error::Unauthenticated)?;
    if now >= signed.session.seen_at.after(SEEN) {
        let mut tx = cx.db.write().await?;
        sessions::seen(&mut tx, &hash, now).await?;
        tx.commit().await?;
    }
    Ok(Visitor { signed })
}

/// Looks at another account or the other world.
///
/// # Errors
/// [`Error::NotFound`] when the person does not belong to that account.
pub async fn look_at(cx: &Context, who: &Visitor, account: AccountId, mode: Mode) -> Result<()> {
    let session = &who.signed.session;
    let mut tx = cx.db.write().await?;
    let all = accounts::of_user(&mut tx, session.user).await?;
    if !all.iter().any(|(id, ..)| *id == account) {
        return Err(Error::NotFound);
    }
    sessions::look_at(&mut tx, (session.user, session.id), (account, mode)).await?;
    Ok(tx.commit().await?)
}

/// The accounts that a person belongs to.
///
/// # Errors
/// What keeps the database away.
pub async fn accounts(cx: &Context, who: &Visitor) -> Result<Vec<(AccountId, String, Role)>> {
    Ok(accounts::of_user(&mut cx.db.read().await?, who.signed.session.user).await?)
}

/// A person's sessions, the newest first.
///
/// # Errors
/// What keeps the database away.
pub async fn list(cx: &Context, who: &Visitor) -> Result<Vec<Session>> {
    let now = cx.db.now();
    let mut all = sessions::of(&mut cx.db.read().await?, who.signed.session.user).await?;
    all.retain(|s| now < s.seen_at.after(IDLE) && now < s.created_at.after(LIFE));
    Ok(all)
}

/// Ends one of a person's sessions.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn end(cx: &Context, actor: &Actor, id: SessionId) -> Result<()> {
    let user = actor.user.ok_or(Error::NotFound)?;
    let mut tx = cx.db.write().await?;
    if !sessions::end(&mut tx, user, id).await? {
        return Err(Error::NotFound);
    }
    audit::write(cx, &mut tx, actor, ("session ended", &id.to_string())).await?;
    Ok(tx.commit().await?)
}

/// Takes away what has ended by time: sessions, links that were never used, and invitations.
///
/// # Errors
/// What keeps the database away.
pub async fn sweep(cx: &Context) -> Result<()> {
    let now = cx.db.now();
    let before = |age: Duration| {
        Timestamp(now.millis() - i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
    };
    let mut tx = cx.db.write().await?;
    sessions::expire(&mut tx, before(IDLE), before(LIFE)).await?;
    one_time_links::expire(&mut tx, now).await?;
    invitations::expire(&mut tx, now).await?;
    Ok(tx.commit().await?)
}
