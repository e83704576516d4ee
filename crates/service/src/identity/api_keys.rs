//! API keys: creating, revoking and authenticating them.

use crate::identity::sessions::AuthenticatedUser;
use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{ConflictReason, Error, Result};
use crate::kernel::idempotency::{API_KEYS, IdempotentRequest, RequestKey};
use crate::kernel::security_log::SecurityEvent;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::fields::KeyName;
use heliograph_domain::id::{AccountId, ApiKeyId};
use heliograph_domain::secret::{self, KeyHash};
use heliograph_domain::time::Timestamp;
use heliograph_store::Conn;
use heliograph_store::identity::api_keys;
pub use heliograph_store::identity::api_keys::ApiKeyRecord;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The number of keys that a node caches; beyond it the cache is emptied.
const MAX_CACHED: usize = 10_000;
/// The largest number of valid keys of an account.
const MAX_VALID: i64 = 1_000;
/// The number of revoked keys that are listed.
const LISTED_REVOKED: i64 = 50;

/// Authenticates API keys. Its cache is used only for requests that check the key again inside
/// their transaction, and saves them one query; all other requests query the database.
#[derive(Clone, Debug, Default)]
pub struct Keyring(Arc<RwLock<Cache>>);

#[derive(Debug, Default)]
struct Cache {
    keys: HashMap<KeyHash, CachedKey>,
    /// The last use of keys that left the cache.
    left: Vec<(ApiKeyId, Timestamp)>,
}

#[derive(Debug)]
struct CachedKey {
    caller: Arc<Caller>,
    /// The time of the last use in milliseconds; 0 when it is already stored.
    used: AtomicI64,
}

impl CachedKey {
    fn take(&self) -> Option<(ApiKeyId, Timestamp)> {
        let used = self.used.swap(0, Ordering::Relaxed);
        Some((self.caller.key?, Timestamp(used))).filter(|_| used > 0)
    }
}

impl Cache {
    fn remove(&mut self, matches: impl Fn(&KeyHash, &Caller) -> bool) {
        let left = &mut self.left;
        self.keys.retain(|hash, known| {
            let stays = !matches(hash, &known.caller);
            if !stays {
                left.extend(known.take());
            }
            stays
        });
    }
}

impl Keyring {
    /// Returns the caller of a request that writes, from the cache if possible. The writer rejects
    /// the request when the key was revoked meanwhile.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`].
    pub async fn authenticate_cached(&self, cx: &Context, key: &str) -> Result<Arc<Caller>> {
        let (key, _) = secret::ApiKey::parse(key).ok_or(Error::Unauthenticated)?;
        let hash = key.hash();
        let known = self.read().keys.get(&hash).map(|known| {
            known.used.store(cx.db.now().millis(), Ordering::Relaxed);
            known.caller.clone()
        });
        match known {
            Some(caller) => Ok(caller),
            None => Box::pin(self.look_up(cx, hash)).await,
        }
    }

    /// Returns the caller of a cached key.
    pub fn cached_caller(&self, key: &str) -> Option<Arc<Caller>> {
        let (key, _) = secret::ApiKey::parse(key)?;
        Some(self.read().keys.get(&key.hash())?.caller.clone())
    }

    /// Returns the caller of a request, read from the database.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`].
    #[boxed]
    pub async fn authenticate(&self, cx: &Context, key: &str) -> Result<Arc<Caller>> {
        let (key, _) = secret::ApiKey::parse(key).ok_or(Error::Unauthenticated)?;
        self.look_up(cx, key.hash()).await
    }

    async fn look_up(&self, cx: &Context, hash: KeyHash) -> Result<Arc<Caller>> {
        let mut conn = cx.db.read().await?;
        let found = api_keys::by_hash(&mut conn, &hash).await?;
        if let Some((revoked, ..)) = found.as_ref().filter(|(k, ..)| k.revoked_at.is_some()) {
            let (key, account) = (Some(revoked.id), Some(revoked.account));
            let event =
                SecurityEvent { event: "revoked_key_used", key, account, ..Default::default() };
            event.refused();
        }
        let mut cache = self.write();
        let Some((key, currency, optout_list)) = found.filter(|(k, ..)| k.revoked_at.is_none())
        else {
            cache.remove(|known, _| *known == hash);
            return Err(Error::Unauthenticated);
        };
        let caller = Arc::new(Caller {
            account: key.account,
            mode: key.mode,
            scopes: key.scopes,
            key: Some(key.id),
            user: None,
            currency,
            optout_list,
        });
        if cache.keys.len() >= MAX_CACHED {
            cache.remove(|_, _| true);
        }
        let used = AtomicI64::new(cx.db.now().millis());
        cache.keys.insert(hash, CachedKey { caller: caller.clone(), used });
        Ok(caller)
    }

    /// Removes a key from the cache that the writer found revoked.
    pub fn forget(&self, key: ApiKeyId) {
        self.write().remove(|_, caller| caller.key == Some(key));
    }

    /// Stores when keys were used last. What could not be stored is kept for the next time.
    #[boxed]
    pub async fn flush(&self, cx: &Context) -> Result<()> {
        let mut used = std::mem::take(&mut self.write().left);
        used.extend(self.read().keys.values().filter_map(CachedKey::take));
        if used.is_empty() {
            return Ok(());
        }
        let done = store_use(cx, &used).await;
        if done.is_err() {
            let left = &mut self.write().left;
            left.extend(used);
            left.truncate(MAX_CACHED);
        }
        done
    }

    fn read(&self) -> RwLockReadGuard<'_, Cache> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Cache> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn store_use(cx: &Context, used: &[(ApiKeyId, Timestamp)]) -> Result<()> {
    let mut tx = cx.db.write().await?;
    api_keys::record_use(&mut tx, used).await?;
    Ok(tx.commit().await?)
}

/// A new key: its id and its secret, which is shown only once.
pub type CreatedKey = (ApiKeyId, secret::ApiKey);

/// A key to create.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec<'a> {
    /// The mode.
    pub mode: Mode,
    /// The permissions.
    pub scopes: Scopes,
    /// The name.
    pub name: &'a KeyName,
}

/// Creates a key. `random` holds 64 secure random bytes.
///
/// # Errors
/// [`Error::Conflict`] when there are too many.
pub async fn create(
    cx: &Context,
    actor: &Actor,
    spec: KeySpec<'_>,
    random: &[u8],
) -> Result<CreatedKey> {
    let mut tx = cx.db.write().await?;
    let made = insert(cx, &mut tx, actor, spec, random).await?;
    tx.commit().await?;
    Ok(made)
}

/// Creates a key once per idempotency key; `None` when it was created before, since a key is shown
/// only once.
///
/// # Errors
/// [`Error::Conflict`] when there are too many, and for a live key before the user has confirmed the
/// email address.
pub async fn create_once(
    cx: &Context,
    who: &AuthenticatedUser,
    actor: &Actor,
    spec: KeySpec<'_>,
    once: RequestKey,
) -> Result<Option<CreatedKey>> {
    if spec.mode == Mode::Live {
        who.require_confirmed(cx)?;
    }
    let caller = &who.caller();
    let keep = |id: &ApiKeyId| id.to_string();
    let asked = IdempotentRequest::new(caller, API_KEYS, "", Some(once), &keep);
    if asked.stored_answer(cx).await?.is_some() {
        return Ok(None);
    }
    let mut tx = cx.db.write().await?;
    let made = insert(cx, &mut tx, actor, spec, &cx.random::<64>()?).await?;
    if !asked.save(cx, &mut tx, made.0.0, &made.0).await? {
        return Ok(None);
    }
    tx.commit().await?;
    Ok(Some(made))
}

async fn insert(
    cx: &Context,
    tx: &mut Conn,
    actor: &Actor,
    spec: KeySpec<'_>,
    random: &[u8],
) -> Result<CreatedKey> {
    let KeySpec { mode, scopes, name } = spec;
    let secret = secret::ApiKey::from_random(mode, random);
    let secret = secret.ok_or_else(|| Error::Internal("too few random bytes".to_owned()))?;
    let there = api_keys::newest(tx, actor.account, false, MAX_VALID).await?.len();
    if i64::try_from(there).unwrap_or(MAX_VALID) >= MAX_VALID {
        return Err(Error::Conflict(ConflictReason::ApiKeyLimit(MAX_VALID)));
    }
    let (id, created_at) = cx.next_id();
    let id = ApiKeyId(id);
    let key = ApiKeyRecord {
        id,
        account: actor.account,
        mode,
        scopes,
        name: name.to_string(),
        prefix: secret.prefix().to_owned(),
        created_at,
        revoked_at: None,
        last_used_at: None,
    };
    api_keys::insert(tx, &key, &secret.hash()).await?;
    let named = (id, &*format!("{} ({mode})", key.name));
    audit::record_key(cx, tx, actor, AuditAction::ApiKeyCreated, named).await?;
    Ok((id, secret))
}

/// Revokes a key: the next request with it fails, on every node.
///
/// # Errors
/// [`Error::NotFound`] also when the key was revoked before.
#[boxed]
pub async fn revoke(cx: &Context, actor: &Actor, id: ApiKeyId) -> Result<()> {
    let mut tx = cx.db.write().await?;
    let name = api_keys::revoke(&mut tx, (actor.account, id), cx.db.now()).await?;
    let named = (id, &*name.ok_or(Error::NotFound)?);
    audit::record_key(cx, &mut tx, actor, AuditAction::ApiKeyRevoked, named).await?;
    Ok(tx.commit().await?)
}

/// Returns the account of a key, for operators.
#[boxed]
pub async fn owner(cx: &Context, id: ApiKeyId) -> Result<AccountId> {
    api_keys::owner(&mut cx.db.read().await?, id).await?.ok_or(Error::NotFound)
}

/// Returns the keys of an account, the oldest first.
#[boxed]
pub async fn list(cx: &Context, account: AccountId) -> Result<Vec<ApiKeyRecord>> {
    let mut conn = cx.db.read().await?;
    Ok(api_keys::list(&mut conn, account).await?)
}

/// Returns the valid keys of an account, and the latest revoked ones, each the newest first.
#[boxed]
pub async fn newest(
    cx: &Context,
    account: AccountId,
) -> Result<(Vec<ApiKeyRecord>, Vec<ApiKeyRecord>)> {
    let mut conn = cx.db.read().await?;
    let valid = api_keys::newest(&mut conn, account, false, MAX_VALID).await?;
    Ok((valid, api_keys::newest(&mut conn, account, true, LISTED_REVOKED).await?))
}
