//! Virtual handsets: a typed reply goes to the simulated SMSC and arrives like any inbound message.

use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use crate::messaging::inbound;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::fields::ReplyText;
use heliograph_domain::originator::{Originator, OriginatorKind};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::handset_replies;
pub use heliograph_store::messaging::handset_replies::HandsetReply;
use heliograph_store::messaging::messages;
use std::time::Duration;
use uuid::Uuid;

/// The number of replies handed over in one transaction.
const BATCH: i64 = 100;
/// The age at which a reply is dropped that the simulated SMSC could not accept.
const PATIENCE: Duration = Duration::from_secs(600);

/// A thread of a virtual handset: the messages between it and one sender.
#[derive(Clone, Debug)]
pub struct HandsetThread {
    /// The handset's number.
    pub handset: Recipient,
    /// The sender.
    pub originator: Originator,
}

impl HandsetThread {
    /// Returns whether the handset can reply: a phone cannot write to a name.
    pub fn can_reply(&self) -> bool {
        self.originator.kind() != OriginatorKind::Alphanumeric
    }
}

/// Queues `text` as a reply of the handset in a thread; a repeated `id` has no effect. The engine of
/// any node hands the reply to its simulated SMSC.
///
/// # Errors
/// [`Error::NotFound`] when no message was sent to that handset from this originator, or when it is
/// a name.
#[boxed]
pub async fn reply(
    cx: &Context,
    caller: &Caller,
    id: Uuid,
    thread: HandsetThread,
    text: ReplyText,
) -> Result<()> {
    caller.require_scope(Scope::Send)?;
    if caller.mode != Mode::Test || !thread.can_reply() {
        return Err(Error::NotFound);
    }
    let HandsetThread { handset, originator } = thread;
    let whose = (caller.account, caller.mode);
    let mut tx = cx.db.write().await?;
    let last = messages::latest_between(&mut tx, whose, handset, originator.as_str()).await?;
    last.ok_or(Error::NotFound)?;
    let reply = HandsetReply {
        id,
        account: caller.account,
        handset,
        originator: originator.to_string(),
        text: text.into_string(),
        at: cx.db.now(),
    };
    handset_replies::insert(&mut tx, &reply).await?;
    tx.commit().await?;
    cx.notifier.notify_handsets();
    Ok(())
}

/// Returns the label that routes a handset's replies to their account.
pub fn label(reply: &HandsetReply) -> i64 {
    inbound::label(reply.account, Mode::Test)
}

/// Hands queued replies over while `inject` accepts them, and returns how many it accepted. When
/// the process ends in between, so does its simulated SMSC, so that no reply arrives twice.
pub async fn hand_over(
    cx: &Context,
    mut inject: impl FnMut(&HandsetReply) -> bool + Send,
) -> Result<usize> {
    if handset_replies::is_empty(&mut cx.db.read().await?).await? {
        return Ok(0);
    }
    let mut tx = cx.db.write().await?;
    let all = handset_replies::oldest(&mut tx, BATCH).await?;
    let old = cx.db.now().millis() - i64::try_from(PATIENCE.as_millis()).unwrap_or(0);
    let mut taken = 0;
    let mut done = Vec::new();
    for reply in &all {
        let fits = inject(reply);
        taken += usize::from(fits);
        if fits || reply.at < Timestamp(old) {
            done.push(reply.id);
        }
    }
    handset_replies::delete(&mut tx, &done).await?;
    tx.commit().await?;
    Ok(taken)
}
