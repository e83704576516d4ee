//! Virtual handsets: what is typed on one goes to the simulated SMSC, and comes in like any reply.

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::replies;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::id::MessageId;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_store::handset_replies;
pub use heliograph_store::handset_replies::HandsetReply;
use heliograph_store::messages::{self, Filter};
use std::time::Duration;
use uuid::Uuid;

/// Replies that are handed over in one transaction.
const BATCH: i64 = 100;
/// A reply that the simulated SMSC could not take for so long is dropped: whoever typed it has gone.
const PATIENCE: Duration = Duration::from_secs(600);

/// Types `text` on the handset, to whoever wrote to it last; does nothing when `id` did so before. An engine of any
/// node hands it to its simulated SMSC.
///
/// # Errors
/// [`Error::NotFound`] when nobody wrote to that handset.
pub async fn reply(
    cx: &Context,
    caller: &Caller,
    (id, handset): (Uuid, Recipient),
    text: &str,
) -> Result<()> {
    caller.needs(Scope::Send)?;
    if caller.mode != Mode::Test {
        return Err(Error::NotFound);
    }
    let filter = Filter { recipient: Some(handset), ..Filter::default() };
    let whose = (caller.account, caller.mode);
    let newest = MessageId(Uuid::max());
    let mut tx = cx.db.write().await?;
    let last = messages::list(&mut tx, whose, &filter, newest, 1).await?;
    let (last, _) = last.messages.into_iter().next().ok_or(Error::NotFound)?;
    let reply = HandsetReply {
        id,
        account: caller.account,
        handset,
        originator: last.originator.as_str().to_owned(),
        text: text.to_owned(),
        at: cx.db.now(),
    };
    handset_replies::insert(&mut tx, &reply).await?;
    tx.commit().await?;
    cx.bells.ring_handsets();
    Ok(())
}

/// The label under which a handset's replies come back to their account.
pub fn label(reply: &HandsetReply) -> i64 {
    replies::label(reply.account, Mode::Test)
}

/// Hands waiting replies over, as far as `inject` takes them; how many it took. A process that ends in the middle takes
/// its simulated SMSC with it, so that nothing comes twice.
///
/// # Errors
/// What keeps the database away.
pub async fn hand_over(
    cx: &Context,
    mut inject: impl FnMut(&HandsetReply) -> bool + Send,
) -> Result<usize> {
    if handset_replies::none(&mut cx.db.read().await?).await? {
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
    handset_replies::remove(&mut tx, &done).await?;
    tx.commit().await?;
    Ok(taken)
}
