//! Idempotency: a request with an idempotency key is executed once and answered the same each time.
//!
//! Sending a message uses its own code inside the writer's batch ([`crate::messaging::accept`]); this module
//! serves all other requests.

use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::fields::IdempotencyKey;
use heliograph_store::Conn;
use heliograph_store::idempotency::{self, ScopedKey};
use uuid::Uuid;

/// The idempotency key of a request, with the fingerprint that detects its use for another request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestKey {
    /// The key as the client sent it.
    pub key: IdempotencyKey,
    /// The SHA-256 of the request body.
    pub fingerprint: [u8; 32],
}

/// The outcome of an idempotent request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IdempotentOutcome<T> {
    /// The request was executed now.
    Fresh(T),
    /// The request was executed earlier: the answer that was stored then.
    Replayed(String),
}

/// A request that may carry an idempotency key, and how its answer is serialized.
pub struct IdempotentRequest<'a, T> {
    record: Option<(ScopedKey, [u8; 32])>,
    keep: &'a (dyn Fn(&T) -> String + Send + Sync),
}

impl<'a, T> IdempotentRequest<'a, T> {
    /// Creates a request. `route` is one of the constants in [`idempotency`]; `place` is the
    /// variable part of the path.
    pub fn new(
        caller: &Caller,
        route: i16,
        place: &str,
        once: Option<RequestKey>,
        keep: &'a (dyn Fn(&T) -> String + Send + Sync),
    ) -> Self {
        let record = once.map(|once| {
            let key = match place {
                "" => once.key.into_string(),
                place => format!("{place} {}", once.key),
            };
            (ScopedKey { account: caller.account, mode: caller.mode, route, key }, once.fingerprint)
        });
        Self { record, keep }
    }

    /// Returns the stored answer when the request is a replay.
    ///
    /// # Errors
    /// [`Error::IdempotencyKeyReused`] when the key belongs to a different request.
    #[boxed]
    pub async fn stored_answer(&self, cx: &Context) -> Result<Option<String>> {
        let Some((key, fingerprint)) = &self.record else { return Ok(None) };
        let mut conn = cx.db.read().await?;
        match idempotency::find(&mut conn, key).await? {
            Some(record) if record.fingerprint != fingerprint => Err(Error::IdempotencyKeyReused),
            Some(record) => Ok(record.response),
            None => Ok(None),
        }
    }

    /// Stores the answer in the transaction that executes the request. Returns false when a
    /// concurrent request with the same key was first; the caller must then roll back.
    ///
    /// # Errors
    /// [`heliograph_store::StoreError::Conflict`] while a request on another node holds the key for
    /// too long.
    pub async fn save(
        &self,
        cx: &Context,
        tx: &mut Conn,
        made: Uuid,
        done: &T,
    ) -> heliograph_store::StoreResult<bool> {
        let Some((key, fingerprint)) = &self.record else { return Ok(true) };
        let answer = (self.keep)(done);
        idempotency::insert_with_response(tx, (key, fingerprint), (made, &answer), cx.db.now())
            .await
    }

    /// Returns the answer of the concurrent request that was first.
    ///
    /// # Errors
    /// [`Error::RequestInFlight`] when it has not ended, and those of [`Self::stored_answer`].
    #[boxed]
    pub async fn concurrent_answer<U>(&self, cx: &Context) -> Result<IdempotentOutcome<U>> {
        self.stored_answer(cx).await?.map(IdempotentOutcome::Replayed).ok_or(Error::RequestInFlight)
    }
}

pub use heliograph_store::idempotency::{
    API_KEYS, ENDPOINTS, OPTOUT_IMPORT, OPTOUT_LISTS, OPTOUT_NUMBERS, REPLAYS, ROTATIONS,
};
