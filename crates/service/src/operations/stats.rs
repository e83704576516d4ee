//! Statistics of an account's messages over time.

use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::Result;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Scope;
use heliograph_domain::id::AccountId;
use heliograph_domain::message::FailureCode;
use heliograph_domain::money::Amount;
use heliograph_domain::stats::{HOURS_PER_DAY, LatencyHistogram, Measure, hour_of, hour_start};
use heliograph_domain::time::Timestamp;
use heliograph_store::Conn;
use heliograph_store::operations::stats;
use std::time::Duration;

/// The time for which statistics are kept: a year and the longest range before its end.
const KEPT: Duration = Duration::from_secs(400 * 86_400);

/// A time range up to now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StatsRange {
    /// 24 hours, by the hour.
    Hours24,
    /// 7 days, by the day like all longer ranges.
    #[default]
    Days7,
    /// 30 days.
    Days30,
    /// 90 days.
    Days90,
}

impl StatsRange {
    /// All ranges.
    pub const ALL: [Self; 4] = [Self::Hours24, Self::Days7, Self::Days30, Self::Days90];

    /// Returns the name in the query string.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hours24 => "24h",
            Self::Days7 => "7d",
            Self::Days30 => "30d",
            Self::Days90 => "90d",
        }
    }

    /// Returns the range with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.name() == name)
    }

    /// Returns the hours of one slot and the number of slots.
    const fn shape(self) -> (i32, i32) {
        match self {
            Self::Hours24 => (1, 24),
            Self::Days7 => (HOURS_PER_DAY, 7),
            Self::Days30 => (HOURS_PER_DAY, 30),
            Self::Days90 => (HOURS_PER_DAY, 90),
        }
    }

    /// Returns the first hour, such that the current hour lies in the last slot.
    fn first(self, now: Timestamp) -> i32 {
        let (width, slots) = self.shape();
        (hour_of(now).div_euclid(width) - (slots - 1)) * width
    }
}

/// The counters of a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatsTotals {
    /// Accepted messages.
    pub accepted: i64,
    /// Messages accepted by a carrier.
    pub sent: i64,
    /// Delivered messages.
    pub delivered: i64,
    /// Failed messages.
    pub failed: i64,
    /// Cancelled messages.
    pub cancelled: i64,
    /// Inbound messages.
    pub inbound: i64,
    /// People who opted out by a reply.
    pub opted_out: i64,
    /// The amount spent.
    pub spent: Amount,
}

#[derive(Clone, Default)]
struct Sum {
    figures: StatsTotals,
    times: LatencyHistogram,
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
            Measure::Latency(bucket) => self.times.add(bucket, n),
        }
    }
}

impl StatsTotals {
    /// Returns the share of delivered messages among delivered and failed ones; `None` when there
    /// are none.
    pub fn delivery_rate(&self) -> Option<f64> {
        let ended = self.delivered + self.failed;
        (ended > 0).then(|| self.delivered as f64 / ended as f64)
    }
}

/// An hour or a day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatsSlot {
    /// The start.
    pub begin: Timestamp,
    /// The counters.
    pub totals: StatsTotals,
    /// The median delivery time of the messages delivered in the slot.
    pub median: Option<Duration>,
}

/// The statistics of an account in one mode.
#[derive(Clone, PartialEq, Debug)]
pub struct StatsOverview {
    /// Every hour or day of the range, the oldest first; the last one is still running.
    pub slots: Vec<StatsSlot>,
    /// The counters of the whole range.
    pub total: StatsTotals,
    /// The failure codes with their counts, the most frequent first.
    pub failures: Vec<(FailureCode, i64)>,
    /// The median time from due to delivered.
    pub median: Option<Duration>,
}

/// Returns the statistics of the caller's messages.
#[boxed]
pub async fn overview(cx: &Context, caller: &Caller, range: StatsRange) -> Result<StatsOverview> {
    caller.require_scope(Scope::Read)?;
    let first = range.first(cx.db.now());
    let mut conn = cx.db.read().await?;
    let counted = stats::since(&mut conn, (caller.account, caller.mode), first).await?;
    drop(conn);
    Ok(add_up(range, first, counted))
}

/// Folds the hours of past days into days, and deletes statistics that are too old. Only a week of
/// days is examined: hours that a longer outage left behind stay correct and cost only more to sum.
pub(crate) async fn tidy(
    tx: &mut Conn,
    account: AccountId,
    now: Timestamp,
) -> heliograph_store::StoreResult<()> {
    let yesterday = (hour_of(now).div_euclid(HOURS_PER_DAY) - 1) * HOURS_PER_DAY;
    stats::fold_into_days(tx, account, yesterday - 7 * HOURS_PER_DAY..yesterday).await?;
    stats::delete_older_than(tx, account, hour_of(now.before(KEPT))).await?;
    Ok(())
}

fn add_up(range: StatsRange, first: i32, counted: Vec<(i32, Measure, i64)>) -> StatsOverview {
    let (width, count) = range.shape();
    let slot = |n| (hour_start(first + n * width), Sum::default());
    let mut slots: Vec<_> = (0..count).map(slot).collect();
    let mut total = Sum::default();
    let mut failures: Vec<(FailureCode, i64)> = Vec::new();
    for (hour, measure, n) in counted {
        // Another node's clock may be slightly ahead: its newest counts go into the last slot.
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
    let slot = |(begin, Sum { figures, times })| StatsSlot {
        begin,
        totals: figures,
        median: times.median(),
    };
    let slots = slots.into_iter().map(slot).collect();
    StatsOverview { slots, total: total.figures, failures, median: total.times.median() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_with_the_current_hour_or_day() {
        let now = Timestamp(1_795_168_799_999); // 2026-11-20T09:59:59.999Z
        let first = |range: StatsRange| hour_start(range.first(now)).to_string();
        assert_eq!(first(StatsRange::Hours24), "2026-11-19T10:00:00.000Z");
        assert_eq!(first(StatsRange::Days7), "2026-11-14T00:00:00.000Z");
        assert_eq!(first(StatsRange::Days90), "2026-08-23T00:00:00.000Z");
        for range in StatsRange::ALL {
            assert_eq!(StatsRange::from_name(range.name()), Some(range));
            let all = add_up(range, range.first(now), Vec::new());
            let last = all.slots.last().unwrap().begin;
            let end =
                last.after(Duration::from_secs(3_600) * u32::try_from(range.shape().0).unwrap());
            assert!(last <= now && now < end, "{range:?}");
        }
    }
}
