//! Mail: what people are sent, put into the outbox in the transaction that causes it.

use crate::context::Context;
use crate::error::{Error, Result};
use heliograph_domain::time::Timestamp;
pub use heliograph_store::mails::Mail;
use heliograph_store::{Conn, mails};
use std::time::Duration;

/// Mails that are taken from the outbox at once.
const BATCH: i64 = 10;
/// A mail that a node took and did not settle is tried again after this.
const AGAIN: Duration = Duration::from_secs(120);
/// The gap after the first failure; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(3_600);
/// A mail that has not gone after a day is given up.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// What became of a mail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The server took it.
    Sent,
    /// Not now.
    Later,
    /// It never will be taken.
    Refused,
}

/// Queues a mail: its first line is the subject. Nothing happens where no mail can be sent.
///
/// # Errors
/// As any write.
pub async fn send(
    cx: &Context,
    tx: &mut Conn,
    recipient: &str,
    (subject, body): (&str, &str),
) -> Result<()> {
    if cx.settings().entrance.mail {
        let (id, now) = cx.next_id();
        mails::insert(tx, id, (recipient, &format!("{subject}\n{body}")), now).await?;
    }
    Ok(())
}

/// Subject and text of a mail.
pub fn parts(mail: &Mail) -> (&str, &str) {
    mail.content.split_once('\n').unwrap_or((&mail.content, ""))
}

/// Takes what is due.
///
/// # Errors
/// What keeps the database away.
pub async fn due(cx: &Context) -> Result<Vec<Mail>> {
    let now = cx.db.now();
    if !mails::any_due(&mut cx.db.read().await?, now).await? {
        return Ok(Vec::new());
    }
    let mut tx = cx.db.write().await?;
    let all = mails::claim(&mut tx, (now, now.after(AGAIN)), BATCH).await?;
    tx.commit().await?;
    Ok(all)
}

/// Notes what became of a mail; false when it is given up.
///
/// # Errors
/// What keeps the database away.
pub async fn settle(cx: &Context, mail: &Mail, outcome: Outcome) -> Result<bool> {
    let now = cx.db.now();
    let late = now >= written(mail)?.after(PATIENCE);
    let mut tx = cx.db.write().await?;
    let kept = outcome == Outcome::Later && !late;
    match kept {
        true => mails::postpone(&mut tx, mail.id, now.after(gap(mail.tries))).await?,
        false => mails::remove(&mut tx, mail.id).await?,
    }
    tx.commit().await?;
    Ok(kept || outcome == Outcome::Sent)
}

/// When it was written, as its id tells.
///
/// # Errors
/// [`Error::Internal`] when the id is not one of ours.
pub fn written(mail: &Mail) -> Result<Timestamp> {
    let at = mail.id.get_timestamp().map(|t| t.to_unix());
    let (seconds, nanos) = at.ok_or_else(|| Error::Internal("a mail without a time".to_owned()))?;
    let millis = seconds.saturating_mul(1_000).saturating_add(u64::from(nanos) / 1_000_000);
    Ok(Timestamp(i64::try_from(millis).unwrap_or(i64::MAX)))
}

fn gap(tries: i16) -> Duration {
    let doublings = u32::from(tries.unsigned_abs().saturating_sub(1)).min(16);
    FIRST.saturating_mul(1 << doublings).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_double_up_to_an_hour() {
        let seconds = |tries| gap(tries).as_secs();
        assert_eq!([1, 2, 3, 4].map(seconds), [10, 20, 40, 80]);
        assert_eq!([20, i16::MAX].map(seconds), [3_600; 2]);
    }
}
