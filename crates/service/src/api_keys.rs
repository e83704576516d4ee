//! API keys: making, revoking, and recognising them.

use crate::audit::{self, Actor};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::once::{API_KEYS, Asked, Once};
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId};
use heliograph_domain::secret::{self, KeyHash};
use heliograph_domain::time::Timestamp;
use heliograph_store::Conn;
use heliograph_store::api_keys;
pub use heliograph_store::api_keys::ApiKey;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Keys that a node remembers; beyond it the memory starts anew.
const REMEMBERED: usize = 10_000;
/// Valid keys of one account, at most: who needs more gives one key to several programs.
const MOST: i64 = 1_000;
/// Revoked keys that are still shown.
const REVOKED: i64 = 50;
/// The longest name, in characters.
pub const LONGEST_NAME: usize = 100;

/// Recognises keys. What it remembers only spares the first look of a request that is checked again
/// inside its transaction; everything else asks the database each time.
#[derive(Clone, Debug, Default)]
pub struct Keyring(Arc<RwLock<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    known: HashMap<KeyHash, Known>,
    /// When keys that are no longer known were used last.
    left: Vec<(ApiKeyId, Timestamp)>,
}

#[derive(Debug)]
struct Known {
    caller: Arc<Caller>,
    /// When a request came with it, in milliseconds; 0 when that is written down.
    used: AtomicI64,
}

impl Known {
    fn take(&self) -> Option<(ApiKeyId, Timestamp)> {
        let used = self.used.swap(0, Ordering::Relaxed);
        Some((self.caller.key?, Timestamp(used))).filter(|_| used > 0)
    }
}

impl Memory {
    fn forget(&mut self, gone: impl Fn(&KeyHash, &Caller) -> bool) {
        let left = &mut self.left;
        self.known.retain(|hash, known| {
            let stays = !gone(hash, &known.caller);
            if !stays {
                left.extend(known.take());
            }
            stays
        });
    }
}

impl Keyring {
    /// Who calls with this key, for a request that writes: it may have been revoked a moment ago,
    /// which the writer notices.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`], or what keeps the database away.
    pub async fn recall(&self, cx: &Context, key: &str) -> Result<Arc<Caller>> {
        let (key, _) = secret::ApiKey::parse(key).ok_or(Error::Unauthenticated)?;
        let hash = key.hash();
        let known = self.read().known.get(&hash).map(|known| {
            known.used.store(cx.db.now().millis(), Ordering::Relaxed);
            known.caller.clone()
        });
        match known {
            Some(caller) => Ok(caller),
            None => Box::pin(self.look_up(cx, hash)).await,
        }
    }

    /// The key's id, if it was met before.
    pub fn known(&self, key: &str) -> Option<ApiKeyId> {
        let (key, _) = secret::ApiKey::parse(key)?;
        self.read().known.get(&key.hash())?.caller.key
    }

    /// Who calls with this key, as the database has it now.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`], or what keeps the database away.
    pub async fn verify(&self, cx: &Context, key: &str) -> Result<Arc<Caller>> {
        let (key, _) = secret::ApiKey::parse(key).ok_or(Error::Unauthenticated)?;
        self.look_up(cx, key.hash()).await
    }

    async fn look_up(&self, cx: &Context, hash: KeyHash) -> Result<Arc<Caller>> {
        let mut conn = cx.db.read().await?;
        let found = api_keys::by_hash(&mut conn, &hash).await?;
        let mut memory = self.write();
        let Some((key, currency, optout_list)) = found.filter(|(k, ..)| k.revoked_at.is_none())
        else {
            memory.forget(|known, _| *known == hash);
            return Err(Error::Unauthenticated);
        };
        let caller = Arc::new(Caller {
            account: key.account,
            mode: key.mode,
            scopes: key.scopes,
            key: Some(key.id),
            currency,
            optout_list,
        });
        if memory.known.len() >= REMEMBERED {
            memory.forget(|_, _| true);
        }
        let used = AtomicI64::new(cx.db.now().millis());
        memory.known.insert(hash, Known { caller: caller.clone(), used });
        Ok(caller)
    }

    /// Forgets a key that the writer found to be revoked.
    pub fn forget(&self, key: ApiKeyId) {
        self.write().forget(|_, caller| caller.key == Some(key));
    }

    /// Writes down when keys were used last, as far as that is not done.
    ///
    /// # Errors
    /// What keeps the database away; then the next time writes it.
    pub async fn flush(&self, cx: &Context) -> Result<()> {
        let mut used = std::mem::take(&mut self.write().left);
        used.extend(self.read().known.values().filter_map(Known::take));
        if used.is_empty() {
            return Ok(());
        }
        let done = note(cx, &used).await;
        if done.is_err() {
            let left = &mut self.write().left;
            left.extend(used);
            left.truncate(REMEMBERED);
        }
        done
    }

    fn read(&self) -> RwLockReadGuard<'_, Memory> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Memory> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn note(cx: &Context, used: &[(ApiKeyId, Timestamp)]) -> Result<()> {
    let mut tx = cx.db.write().await?;
    api_keys::used(&mut tx, used).await?;
    Ok(tx.commit().await?)
}

/// A key that is made: its id, and the key itself, which is shown this one time.
pub type Made = (ApiKeyId, secret::ApiKey);

/// Makes a key. `random` are 64 bytes from the operating system.
///
/// # Errors
/// [`Error::Conflict`] when there are too many, or what keeps the database away.
pub async fn create(
    cx: &Context,
    actor: &Actor,
    what: (Mode, Scopes),
    name: &str,
    random: &[u8],
) -> Result<Made> {
    let mut tx = cx.db.write().await?;
    let made = insert(cx, &mut tx, actor, what, (name, random)).await?;
    tx.commit().await?;
    Ok(made)
}

/// The same, one time however often it is asked for: nothing when it was made before, since no key is shown twice.
///
/// # Errors
/// As [`create`].
pub async fn create_once(
    cx: &Context,
    (caller, actor): (&Caller, &Actor),
    what: (Mode, Scopes),
    name: &str,
    once: Once,
) -> Result<Option<Made>> {
    let keep = |id: &ApiKeyId| id.to_string();
    let asked = Asked::new(caller, (API_KEYS, ""), Some(once), &keep);
    if asked.before(cx).await?.is_some() {
        return Ok(None);
    }
    let mut tx = cx.db.write().await?;
    let made = insert(cx, &mut tx, actor, what, (name, &cx.random::<64>()?)).await?;
    if !asked.keep(cx, &mut tx, (made.0.0, &made.0)).await? {
        return Ok(None);
    }
    tx.commit().await?;
    Ok(Some(made))
}

async fn insert(
    cx: &Context,
    tx: &mut Conn,
    actor: &Actor,
    (mode, scopes): (Mode, Scopes),
    (name, random): (&str, &[u8]),
) -> Result<Made> {
    let secret = secret::ApiKey::from_random(mode, random);
    let secret = secret.ok_or_else(|| Error::Internal("too little randomness".to_owned()))?;
    let there = api_keys::newest(tx, actor.account, false, MOST).await?.len();
    if i64::try_from(there).unwrap_or(MOST) >= MOST {
        return Err(Error::Conflict(format!(
            "there are {MOST} keys already: revoke those that nobody uses"
        )));
    }
    let (id, created_at) = cx.next_id();
    let (id, account, name) = (ApiKeyId(id), actor.account, name.to_owned());
    let (revoked_at, last_used_at) = (None, None);
    let key = ApiKey { id, account, mode, scopes, name, created_at, revoked_at, last_used_at };
    api_keys::insert(tx, &key, &secret.hash()).await?;
    audit::write(cx, tx, actor, ("key made", &format!("{} ({mode})", key.name))).await?;
    Ok((id, secret))
}

/// Revokes a key: the very next request with it fails, on every node.
///
/// # Errors
/// [`Error::NotFound`] when the account has none such, or it was revoked before.
pub async fn revoke(cx: &Context, actor: &Actor, id: ApiKeyId) -> Result<()> {
    let mut tx = cx.db.write().await?;
    let name = api_keys::revoke(&mut tx, (actor.account, id), cx.db.now()).await?;
    audit::write(cx, &mut tx, actor, ("key revoked", &name.ok_or(Error::NotFound)?)).await?;
    Ok(tx.commit().await?)
}

/// Whose a key is, for the operator.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn owner(cx: &Context, id: ApiKeyId) -> Result<AccountId> {
    api_keys::owner(&mut cx.db.read().await?, id).await?.ok_or(Error::NotFound)
}

/// The keys of an account, the oldest first.
///
/// # Errors
/// What keeps the database away.
pub async fn list(cx: &Context, account: AccountId) -> Result<Vec<ApiKey>> {
    let mut conn = cx.db.read().await?;
    Ok(api_keys::of(&mut conn, account).await?)
}

/// The keys of an account that are valid, and the last of those that were revoked, the newest first.
///
/// # Errors
/// What keeps the database away.
pub async fn newest(cx: &Context, account: AccountId) -> Result<(Vec<ApiKey>, Vec<ApiKey>)> {
    let mut conn = cx.db.read().await?;
    let valid = api_keys::newest(&mut conn, account, false, MOST).await?;
    Ok((valid, api_keys::newest(&mut conn, account, true, REVOKED).await?))
}
