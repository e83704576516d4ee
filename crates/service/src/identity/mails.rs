//! The mail outbox: mails are queued in the transaction that causes them.

use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::id::AccountId;
use heliograph_domain::time::Timestamp;
use heliograph_store::Conn;
use heliograph_store::identity::mail_counts;
use heliograph_store::identity::mails;
pub use heliograph_store::identity::mails::OutgoingMail;
use std::time::Duration;

/// The number of mails claimed at once.
const BATCH: i64 = 10;
/// The time after which a mail is retried that a node claimed and did not settle.
const AGAIN: Duration = Duration::from_secs(120);
/// The back-off after the first failure; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(3_600);
/// The age at which an unsent mail is given up: a day.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// The outcome of sending a mail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MailOutcome {
    /// The mail server accepted the mail.
    Sent,
    /// A temporary failure.
    Retry,
    /// A permanent failure.
    Rejected,
}

/// The kind of a mail, which limits how many of it a person gets on a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MailKind {
    /// A link that confirms the address.
    Confirmation,
    /// An invitation to an account.
    Invitation,
    /// A password reset link.
    PasswordReset,
    /// A password reset link, requested in a browser that the person signed in with before.
    KnownPasswordReset,
    /// A security notice.
    Notice,
}

impl MailKind {
    /// Returns the name in counters.
    const fn name(self) -> &'static str {
        match self {
            Self::Confirmation => "confirmation",
            Self::Invitation => "invitation",
            Self::PasswordReset => "reset",
            Self::KnownPasswordReset => "known reset",
            Self::Notice => "notice",
        }
    }

    /// Returns the largest number of such mails to one recipient on one day in UTC.
    pub const fn per_day(self) -> i64 {
        match self {
            Self::Confirmation | Self::Notice => 5,
            Self::Invitation => 3,
            Self::PasswordReset | Self::KnownPasswordReset => 20,
        }
    }
}

/// A mail to queue. Its text contains no words that another user chose, so that nobody sends
/// messages of their own with it.
#[derive(Clone, Copy)]
pub struct NewMail<'a> {
    /// The kind.
    pub kind: MailKind,
    /// The email address of the recipient.
    pub recipient: &'a str,
    /// The subject.
    pub subject: &'a str,
    /// The body.
    pub body: &'a str,
}

/// Queues a mail, and returns whether it did: not when mail is not configured, and not when the
/// recipient has got too many of its kind today.
pub async fn send(cx: &Context, tx: &mut Conn, mail: NewMail<'_>) -> Result<bool> {
    if !cx.settings().sign_up.mail_enabled {
        return Ok(false);
    }
    let subject = format!("{} to {}", mail.kind.name(), mail.recipient);
    if !count(cx, tx, &subject, mail.kind.per_day()).await? {
        return Ok(false);
    }
    let (id, now) = cx.next_id();
    let content = format!("{}\n{}", mail.subject, mail.body);
    mails::insert(tx, id, (mail.recipient, &content), now).await?;
    Ok(true)
}

/// Counts a mail that an account causes.
///
/// # Errors
/// [`Error::LimitReached`] when the account has caused too many today.
pub(crate) async fn count_for_account(
    cx: &Context,
    tx: &mut Conn,
    account: AccountId,
) -> Result<()> {
    let limit = AccountLimit::MailsPerDay;
    let Some(max) = cx.limits.max(account, limit) else { return Ok(()) };
    match count(cx, tx, &format!("account {account}"), i64::from(max)).await? {
        true => Ok(()),
        false => Err(cx.limits.reached(account, limit)),
    }
}

/// Counts a mail with this name today, and returns whether at most `limit` were counted.
async fn count(cx: &Context, tx: &mut Conn, subject: &str, limit: i64) -> Result<bool> {
    Ok(mail_counts::add(tx, today(cx), subject).await? <= limit)
}

/// Deletes the counters of earlier days.
pub async fn delete_old_counts(cx: &Context, tx: &mut Conn) -> Result<()> {
    mail_counts::delete_before(tx, today(cx)).await?;
    Ok(())
}

/// Returns the number of days since 1970 in UTC.
fn today(cx: &Context) -> i64 {
    cx.db.now().millis().div_euclid(86_400_000)
}

/// Returns the subject and the body of a mail.
pub fn subject_and_body(mail: &OutgoingMail) -> (&str, &str) {
    mail.content.split_once('\n').unwrap_or((&mail.content, ""))
}

/// Claims the due mails.
#[boxed]
pub async fn due(cx: &Context) -> Result<Vec<OutgoingMail>> {
    let now = cx.db.now();
    if !mails::any_due(&mut cx.db.read().await?, now).await? {
        return Ok(Vec::new());
    }
    let mut tx = cx.db.write().await?;
    let all = mails::claim(&mut tx, (now, now.after(AGAIN)), BATCH).await?;
    tx.commit().await?;
    Ok(all)
}

/// Stores the outcome of a mail; returns false when the mail was given up.
#[boxed]
pub async fn settle(cx: &Context, mail: &OutgoingMail, outcome: MailOutcome) -> Result<bool> {
    let now = cx.db.now();
    let late = now >= created_at(mail)?.after(PATIENCE);
    let mut tx = cx.db.write().await?;
    let kept = outcome == MailOutcome::Retry && !late;
    if kept {
        mails::postpone(&mut tx, mail.id, now.after(gap(mail.tries))).await?;
    } else {
        mails::delete(&mut tx, mail.id).await?;
    }
    tx.commit().await?;
    Ok(kept || outcome == MailOutcome::Sent)
}

/// Returns the creation time of a mail, which its id contains.
///
/// # Errors
/// [`Error::Internal`] when the id contains no time.
pub fn created_at(mail: &OutgoingMail) -> Result<Timestamp> {
    let at = mail.id.get_timestamp().map(|t| t.to_unix());
    let (seconds, nanos) =
        at.ok_or_else(|| Error::Internal("the id of a mail contains no time".to_owned()))?;
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
    fn back_off_doubles_up_to_an_hour() {
        let seconds = |tries| gap(tries).as_secs();
        assert_eq!([1, 2, 3, 4].map(seconds), [10, 20, 40, 80]);
        assert_eq!([20, i16::MAX].map(seconds), [3_600; 2]);
    }
}
