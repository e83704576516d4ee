//! Figures: what became of an account's messages over time.

use crate::caller::Caller;
use crate::context::Context;
use crate::error::Result;
use heliograph_domain::account::Scope;
use heliograph_domain::id::AccountId;
use heliograph_domain::message::FailureCode;
use heliograph_domain::money::Amount;
use heliograph_domain::stats::{DAY, Measure, Times, begin, hour};
use heliograph_domain::time::Timestamp;
use heliograph_store::{Conn, stats};
use std::time::Duration;

/// How long figures are kept: a year, and what one looks back on from its end.
const KEPT: Duration = Duration::from_secs(400 * 86_400);

/// How far back to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Range {
    /// By the hour.
    Hours24,
    /// By the day, as all longer ones.
    #[default]
    Days7,
    /// A month.
    Days30,
    /// A quarter.
    Days90,
}

impl Range {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hours24, Self::Days7, Self::Days30, Self::Days90];

    /// As in an address.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hours24 => "24h",
            Self::Days7 => "7d",
            Self::Days30 => "30d",
            Self::Days90 => "90d",
        }
    }

    /// From its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.name() == name)
    }

    /// Hours of one slot, and how many slots there are.
    const fn shape(self) -> (i32, i32) {
        match self {
            Self::Hours24 => (1, 24),
            Self::Days7 => (DAY, 7),
            Self::Days30 => (DAY, 30),
            Self::Days90 => (DAY, 90),
        }
    }

    /// The hour that it begins with, so that the present one lies in its last slot.
    fn first(self, now: Timestamp) -> i32 {
        let (width, slots) = self.shape();
        (hour(now).div_euclid(width) - (slots - 1)) * width
    }
}

/// What was counted in a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Messages that came into being.
    pub accepted: i64,
    /// Messages that a carrier took.
    pub sent: i64,
    /// Messages that arrived.
    pub delivered: i64,
    /// Messages that never will.
    pub failed: i64,
    /// Messages that were called back.
    pub cancelled: i64,
    /// Messages that people sent.
    pub inbound: i64,
    /// People who opted out by a reply.
    pub opted_out: i64,
    /// What was spent.
    pub spent: Amount,
}

#[derive(Clone, Default)]
struct Sum {
    figures: Figures,
    times: Times,
}

impl Sum {
    fn add(&mut self, measure: Measure, n: i64) {
        let sum = &mut self.figures;
        match measure {
            Measure::Accepted => sum.accepted += n,
            Measure::Sent => sum.sent += n,
            Measure::Delivered => sum.delivered += n,
            Measure::Failed(_) => sum.failed += n,
            Measure::Cancelled => sum.cancelled += n,
            Measure::Inbound => sum.inbound += n,
            Measure::OptedOut => sum.opted_out += n,
            Measure::Spent => sum.spent = sum.spent + Amount(n),
            Measure::Took(bucket) => self.times.add(bucket, n),
        }
    }
}

impl Figures {
    /// Of the messages that ended one way or the other, the share that arrived; `None` when none ended.
    pub fn delivery_rate(&self) -> Option<f64> {
        let ended = self.delivered + self.failed;
        (ended > 0).then(|| self.delivered as f64 / ended as f64)
    }
}

/// An hour, or a day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// When it begins.
    pub begin: Timestamp,
    /// What was counted in it.
    pub figures: Figures,
    /// The time within which half of the messages arrived that arrived in it.
    pub median: Option<Duration>,
}

/// An account at a glance, in one mode.
#[derive(Clone, PartialEq, Debug)]
pub struct Overview {
    /// Each hour or day, none left out, the oldest first; the last one is not over yet.
    pub slots: Vec<Slot>,
    /// All of them together.
    pub total: Figures,
    /// Why messages failed, the most frequent reason first.
    pub failures: Vec<(FailureCode, i64)>,
    /// The time within which half of the messages arrived after they were due.
    pub median: Option<Duration>,
}

/// What became of the caller's messages.
///
/// # Errors
/// [`crate::error::Error::Scope`], or what keeps the database away.
pub async fn overview(cx: &Context, caller: &Caller, range: Range) -> Result<Overview> {
    caller.needs(Scope::Read)?;
    let first = range.first(cx.db.now());
    let mut conn = cx.db.read().await?;
    let counted = stats::since(&mut conn, (caller.account, caller.mode), first).await?;
    drop(conn);
    Ok(add_up(range, first, counted))
}

/// Puts the hours together of the days that nobody looks at by the hour any more, and drops what is too old. A week
/// of days is looked at: what a service that was down for longer left behind is right as it stands, only more to add up.
///
/// # Errors
/// As any write.
pub(crate) async fn tidy(
    tx: &mut Conn,
    account: AccountId,
    now: Timestamp,
) -> heliograph_store::Result<()> {
    let yesterday = (hour(now).div_euclid(DAY) - 1) * DAY;
    stats::fold(tx, account, yesterday - 7 * DAY..yesterday).await?;
    stats::drop_old(tx, account, hour(now.before(KEPT))).await?;
    Ok(())
}

fn add_up(range: Range, first: i32, counted: Vec<(i32, Measure, i64)>) -> Overview {
    let (width, count) = range.shape();
    let slot = |n| (begin(first + n * width), Sum::default());
    let mut slots: Vec<_> = (0..count).map(slot).collect();
    let mut total = Sum::default();
    let mut failures: Vec<(FailureCode, i64)> = Vec::new();
    for (hour, measure, n) in counted {
        // Another node's clock may be a little ahead: what it counted already is shown in the last slot.
        let at = usize::try_from((hour - first) / width).unwrap_or(0).min(slots.len() - 1);
        if let Some((_, sum)) = slots.get_mut(at) {
            sum.add(measure, n);
        }
        total.add(measure, n);
        if let Measure::Failed(code) = measure {
            match failures.iter_mut().find(|(c, _)| *c == code) {
                Some((_, sum)) => *sum += n,
                None => failures.push((code, n)),
            }
        }
    }
    failures.sort_by_key(|(code, n)| (-n, code.code()));
    let slot = |(begin, Sum { figures, times })| Slot { begin, figures, median: times.median() };
    let slots = slots.into_iter().map(slot).collect();
    Overview { slots, total: total.figures, failures, median: total.times.median() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_with_the_present_hour_or_day() {
        let now = Timestamp(1_795_168_799_999); // 2026-11-20T09:59:59.999Z
        let first = |range: Range| begin(range.first(now)).to_string();
        assert_eq!(first(Range::Hours24), "2026-11-19T10:00:00.000Z");
        assert_eq!(first(Range::Days7), "2026-11-14T00:00:00.000Z");
        assert_eq!(first(Range::Days90), "2026-08-23T00:00:00.000Z");
        for range in Range::ALL {
            assert_eq!(Range::from_name(range.name()), Some(range));
            let all = add_up(range, range.first(now), Vec::new());
            let last = all.slots.last().unwrap().begin;
            let end =
                last.after(Duration::from_secs(3_600) * u32::try_from(range.shape().0).unwrap());
            assert!(last <= now && now < end, "{range:?}");
        }
    }
}
