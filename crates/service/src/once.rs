//! Once: a request under an idempotency key is done one time, and answered the same each time.
//!
//! Sending has its own way, inside the writer's batch; this is for everything else.

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use heliograph_store::Conn;
use heliograph_store::idempotency::{self, Key};
use uuid::Uuid;

/// An idempotency key with the SHA-256 of the request that it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Once {
    /// What the client wrote.
    pub key: String,
    /// SHA-256 of the body.
    pub fingerprint: [u8; 32],
}

/// What a request is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer<T> {
    /// It was done now.
    Now(T),
    /// It was done before: what was kept then.
    Before(String),
}

/// A request that may stand under a key: for which method and path, and how its answer is kept.
pub struct Asked<'a, T> {
    record: Option<(Key, [u8; 32])>,
    keep: &'a (dyn Fn(&T) -> String + Send + Sync),
}

impl<'a, T> Asked<'a, T> {
    /// `route` is one of those in [`idempotency`]; `place` is the part of the path that is not the same each time.
    pub fn new(
        caller: &Caller,
        (route, place): (i16, &str),
        once: Option<Once>,
        keep: &'a (dyn Fn(&T) -> String + Send + Sync),
    ) -> Self {
        let record = once.map(|once| {
            let key = if place.is_empty() { once.key } else { format!("{place} {}", once.key) };
            (Key { account: caller.account, mode: caller.mode, route, key }, once.fingerprint)
        });
        Self { record, keep }
    }

    /// What the same request was answered before.
    ///
    /// # Errors
    /// [`Error::IdempotencyKeyReused`] when that was another one.
    pub async fn before(&self, cx: &Context) -> Result<Option<String>> {
        let Some((key, fingerprint)) = &self.record else { return Ok(None) };
        let mut conn = cx.db.read().await?;
        match idempotency::find(&mut conn, key).await? {
            Some(record) if record.fingerprint != fingerprint => Err(Error::IdempotencyKeyReused),
            Some(record) => Ok(record.answer),
            None => Ok(None),
        }
    }

    /// Keeps the answer in the transaction that does what was asked; false when a twin was first, and then nothing of
    /// that transaction may stay.
    ///
    /// # Errors
    /// [`heliograph_store::Error::Conflict`] while a twin on another node is at it for too long.
    pub async fn keep(
        &self,
        cx: &Context,
        tx: &mut Conn,
        (made, done): (Uuid, &T),
    ) -> heliograph_store::Result<bool> {
        let Some((key, fingerprint)) = &self.record else { return Ok(true) };
        let answer = (self.keep)(done);
        idempotency::keep(tx, (key, fingerprint), (made, &answer), cx.db.now()).await
    }

    /// What the twin was answered that was first.
    ///
    /// # Errors
    /// As [`Self::before`]; [`Error::RequestInFlight`] when it has not ended.
    pub async fn twin<U>(&self, cx: &Context) -> Result<Answer<U>> {
        self.before(cx).await?.map(Answer::Before).ok_or(Error::RequestInFlight)
    }
}

pub use heliograph_store::idempotency::{
    API_KEYS, ENDPOINTS, OPTOUT_IMPORT, OPTOUT_LISTS, OPTOUT_NUMBERS, REPLAYS, ROTATIONS,
};
