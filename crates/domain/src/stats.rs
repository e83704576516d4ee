//! Statistics: hourly counters, and a histogram of delivery latency.

use crate::account::Mode;
use crate::id::AccountId;
use crate::message::FailureCode;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR: i64 = 3_600_000;
/// The number of hours of a day.
pub const HOURS_PER_DAY: i32 = 24;
/// The offset of the codes of failures.
const FAILED: i16 = 100;
/// The offset of the codes of latency buckets.
const LATENCY: i16 = 200;

/// A counter of the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Measure {
    /// Messages accepted.
    Accepted,
    /// Messages of which a carrier accepted all parts.
    Sent,
    /// Messages delivered.
    Delivered,
    /// Messages failed, by reason.
    Failed(FailureCode),
    /// Messages cancelled.
    Cancelled,
    /// Inbound messages.
    Inbound,
    /// Opt-outs by reply.
    OptedOut,
    /// Money captured, in millionths.
    Spent,
    /// Messages delivered with a latency, from their due time, in this bucket.
    Latency(LatencyBucket),
}

impl Measure {
    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Accepted => 1,
            Self::Sent => 2,
            Self::Delivered => 3,
            Self::Cancelled => 4,
            Self::Inbound => 5,
            Self::OptedOut => 6,
            Self::Spent => 7,
            Self::Failed(code) => FAILED + code.code(),
            Self::Latency(bucket) => LATENCY + bucket.0 as i16,
        }
    }

    /// Returns the value of a stored code.
    pub fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Accepted),
            2 => Some(Self::Sent),
            3 => Some(Self::Delivered),
            4 => Some(Self::Cancelled),
            5 => Some(Self::Inbound),
            6 => Some(Self::OptedOut),
            7 => Some(Self::Spent),
            FAILED..LATENCY => FailureCode::from_code(code - FAILED).map(Self::Failed),
            _ => {
                let bucket = u8::try_from(code.checked_sub(LATENCY)?).ok()?;
                (bucket < LatencyBucket::COUNT).then_some(Self::Latency(LatencyBucket(bucket)))
            }
        }
    }
}

/// A bucket of the latency histogram. The first bucket ends at 10 ms, each upper bound is twice the
/// previous one, and the last bucket begins at about two days and has no upper bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LatencyBucket(u8);

impl LatencyBucket {
    /// The number of buckets.
    pub const COUNT: u8 = 26;
    /// The upper bound of the first bucket, in milliseconds.
    const FIRST: u64 = 10;

    /// Returns the bucket that contains `time`.
    pub fn containing(time: Duration) -> Self {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        // The smallest n with millis ≤ FIRST · 2ⁿ.
        let steps = millis.div_ceil(Self::FIRST).max(1);
        let n = u64::BITS - (steps - 1).leading_zeros();
        Self(u8::try_from(n).unwrap_or(u8::MAX).min(Self::COUNT - 1))
    }

    /// Returns the exclusive lower bound.
    pub const fn lower_bound(self) -> Duration {
        match self.0 {
            0 => Duration::ZERO,
            n => Duration::from_millis(Self::FIRST << (n - 1)),
        }
    }

    /// Returns the inclusive upper bound; `None` for the last bucket.
    pub fn upper_bound(self) -> Option<Duration> {
        (self.0 + 1 < Self::COUNT).then(|| Duration::from_millis(Self::FIRST << self.0))
    }
}

/// A histogram of delivery latency: the number of messages of each bucket.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LatencyHistogram([i64; LatencyBucket::COUNT as usize]);

impl LatencyHistogram {
    /// Adds messages to a bucket.
    pub fn add(&mut self, bucket: LatencyBucket, messages: i64) {
        if let Some(count) = self.0.get_mut(usize::from(bucket.0)) {
            *count = count.saturating_add(messages);
        }
    }

    /// Returns the median latency, interpolated within its bucket, or `None` if the histogram is
    /// empty.
    pub fn median(&self) -> Option<Duration> {
        let all: i64 = self.0.iter().sum();
        let half = all as f64 / 2.0;
        let mut before = 0.0;
        for (n, count) in (0u8..).zip(self.0).filter(|(_, count)| *count > 0) {
            let count = count as f64;
            if before + count >= half {
                let (from, to) = (LatencyBucket(n).lower_bound(), LatencyBucket(n).upper_bound());
                let share = (half - before) / count;
                let width = to.map_or(Duration::ZERO, |to| to - from);
                return Some(from + width.mul_f64(share.clamp(0.0, 1.0)));
            }
            before += count;
        }
        None
    }
}

/// Returns the hour of a point in time, counted from 1970 in UTC.
pub fn hour_of(at: Timestamp) -> i32 {
    i32::try_from(at.millis().div_euclid(HOUR)).unwrap_or(i32::MAX)
}

/// Returns the start of an hour.
pub fn hour_start(hour: i32) -> Timestamp {
    Timestamp(i64::from(hour) * HOUR)
}

/// The account, mode and code of a measure, in the order in which rows are locked.
type CounterKey = (AccountId, Mode, i16);

/// The counters of one transaction, summed up so that a transaction writes few rows however many
/// messages it changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally(BTreeMap<CounterKey, i64>);

impl Tally {
    /// Adds `n` to a counter.
    pub fn add(&mut self, (account, mode): (AccountId, Mode), measure: Measure, n: i64) {
        if n != 0 {
            let sum = self.0.entry((account, mode, measure.code())).or_default();
            *sum = sum.saturating_add(n);
        }
    }

    /// Adds all counters of another tally.
    pub fn extend(&mut self, other: Self) {
        for (key, n) in other.0 {
            *self.0.entry(key).or_default() += n;
        }
    }

    /// Returns the sums as (account, mode, code of the measure, sum), in this order.
    pub fn iter(&self) -> impl Iterator<Item = (AccountId, Mode, i16, i64)> {
        self.0.iter().map(|((account, mode, measure), n)| (*account, *mode, *measure, *n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> impl Iterator<Item = Measure> {
        use Measure::*;
        let plain = [Accepted, Sent, Delivered, Cancelled, Inbound, OptedOut, Spent];
        let failed = FailureCode::ALL.iter().map(|code| Failed(*code));
        plain.into_iter().chain(failed).chain((0..26).map(|n| Latency(LatencyBucket(n))))
    }

    #[test]
    fn codes_of_measures_are_unique_and_round_trip() {
        let mut codes: Vec<_> = all().map(Measure::code).collect();
        for measure in all() {
            assert_eq!(Measure::from_code(measure.code()), Some(measure));
        }
        let known = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), known);
        for code in [i16::MIN, -1, 0, 8, 100, 112, 199, 226, i16::MAX] {
            assert_eq!(Measure::from_code(code), None, "{code}");
        }
    }

    #[test]
    fn hours_are_counted_in_utc() {
        assert_eq!(
            (hour_of(Timestamp(0)), hour_of(Timestamp(HOUR - 1)), hour_of(Timestamp(HOUR))),
            (0, 0, 1)
        );
        let nine = Timestamp(1_795_165_200_120); // 2026-11-20T09:00:00.120Z
        assert_eq!(
            (hour_of(nine) % 24, hour_start(hour_of(nine))),
            (9, Timestamp(1_795_165_200_000))
        );
    }

    #[test]
    fn a_tally_sums_up_in_key_order() {
        let (ann, bob) = ((AccountId(1), Mode::Live), (AccountId(2), Mode::Test));
        let (mut tally, mut more) = (Tally::default(), Tally::default());
        tally.add(bob, Measure::Accepted, 1);
        tally.add(ann, Measure::Sent, 2);
        tally.add(ann, Measure::Accepted, 3);
        tally.add(ann, Measure::Spent, 0);
        more.add(ann, Measure::Sent, 5);
        tally.extend(more);
        let sums: Vec<_> = tally.iter().map(|(a, _, measure, n)| (a.0, measure, n)).collect();
        assert_eq!(sums, [(1, 1, 3), (1, 2, 7), (2, 1, 1)]);
    }

    #[test]
    fn an_empty_histogram_has_no_median() {
        assert_eq!(LatencyHistogram::default().median(), None);
    }

    proptest! {
        #[test]
        fn a_latency_lies_within_its_bucket(millis in 0u64..1 << 40) {
            let time = Duration::from_millis(millis);
            let bucket = LatencyBucket::containing(time);
            prop_assert!(bucket.lower_bound() < time || bucket == LatencyBucket(0));
            prop_assert!(bucket.upper_bound().is_none_or(|most| time <= most));
        }

        #[test]
        fn the_median_is_accurate_to_its_bucket(mut millis in prop::collection::vec(0u64..1 << 30, 1..200)) {
            let mut times = LatencyHistogram::default();
            for m in &millis {
                times.add(LatencyBucket::containing(Duration::from_millis(*m)), 1);
            }
            millis.sort_unstable();
            let middle = millis[(millis.len() - 1) / 2];
            let bucket = LatencyBucket::containing(Duration::from_millis(middle));
            let median = times.median().unwrap();
            prop_assert!(bucket.lower_bound() <= median, "{median:?}, not {middle} ms");
            prop_assert!(bucket.upper_bound().is_none_or(|most| median <= most), "{median:?}, not {middle} ms");
        }
    }
}
