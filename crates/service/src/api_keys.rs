//! API keys: making, revoking, and recognising them.

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId};
use heliograph_domain::secret::{self, KeyHash};
use heliograph_store::api_keys::{self, ApiKey};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Keys that a node remembers; beyond it the memory starts anew.
const REMEMBERED: usize = 10_000;

/// Recognises keys. What it remembers only spares the first look of a request that is checked again
/// inside its transaction; everything else asks the database each time.
#[derive(Clone, Debug, Default)]
pub struct Keyring(Arc<RwLock<HashMap<KeyHash, Arc<Caller>>>>);

impl Keyring {
    /// Who calls with this key, for a request that writes: it may have been revoked a moment ago,
    /// which the writer notices.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`], or what keeps the database away.
    pub async fn recall(&self, cx: &Context, key: &str) -> Result<Arc<Caller>> {
        let (key, _) = secret::ApiKey::parse(key).ok_or(Error::Unauthenticated)?;
        let hash = key.hash();
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned();
        match known {
            Some(caller) => Ok(caller),
            None => Box::pin(self.look_up(cx, hash)).await,
        }
    }

    /// The key's id, if it was met before.
    pub fn known(&self, key: &str) -> Option<ApiKeyId> {
        let (key, _) = secret::ApiKey::parse(key)?;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&key.hash())?.key
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
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some((key, currency, optout_list)) = found.filter(|(k, ..)| k.revoked_at.is_none())
        else {
            known.remove(&hash);
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
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(hash, caller.clone());
        Ok(caller)
    }

    /// Forgets a key that the writer found to be revoked.
    pub fn forget(&self, key: ApiKeyId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|_, c| c.key != Some(key));
    }
}

/// Makes a key and shows it, the only time. `random` are 64 bytes from the operating system.
///
/// # Errors
/// What keeps the database away.
pub async fn create(
    cx: &Context,
    account: AccountId,
    (mode, scopes): (Mode, Scopes),
    name: &str,
    random: &[u8],
) -> Result<(ApiKeyId, secret::ApiKey)> {
    let secret = secret::ApiKey::from_random(mode, random);
    let secret = secret.ok_or_else(|| Error::Internal("too little randomness".to_owned()))?;
    let (id, created_at) = cx.next_id();
    let id = ApiKeyId(id);
    let name = name.to_owned();
    let key = ApiKey { id, account, mode, scopes, name, created_at, revoked_at: None };
    let mut tx = cx.db.write().await?;
    api_keys::insert(&mut tx, &key, &secret.hash()).await?;
    tx.commit().await?;
    Ok((id, secret))
}

/// Revokes a key: the very next request with it fails, on every node.
///
/// # Errors
/// [`Error::NotFound`] when there is none, or it was revoked before.
pub async fn revoke(cx: &Context, id: ApiKeyId) -> Result<()> {
    let mut tx = cx.db.write().await?;
    if !api_keys::revoke(&mut tx, id, cx.db.now()).await? {
        return Err(Error::NotFound);
    }
    Ok(tx.commit().await?)
}

/// The keys of an account, the oldest first.
///
/// # Errors
/// What keeps the database away.
pub async fn list(cx: &Context, account: AccountId) -> Result<Vec<ApiKey>> {
    let mut conn = cx.db.read().await?;
    Ok(api_keys::of(&mut conn, account).await?)
}
