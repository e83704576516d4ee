//! Figures to look at: what is counted hour by hour, and the time that messages take.

use crate::account::Mode;
use crate::id::AccountId;
use crate::message::FailureCode;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR: i64 = 3_600_000;
/// Hours of a day.
pub const DAY: i32 = 24;
/// Where the codes of the failures begin: each is added to it.
const FAILED: i16 = 100;
/// Where the codes of the times begin.
const TOOK: i16 = 200;

/// Something that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Measure {
    /// Messages that came into being.
    Accepted,
    /// Messages of which a carrier took all parts.
    Sent,
    /// Messages that arrived.
    Delivered,
    /// Messages that never will, by reason.
    Failed(FailureCode),
    /// Messages that were called back.
    Cancelled,
    /// Messages that people sent.
    Inbound,
    /// People who opted out by a reply.
    OptedOut,
    /// Money that was spent, in millionths.
    Spent,
    /// Messages that arrived within the time of this bucket after they were due.
    Took(Bucket),
}

impl Measure {
    /// As stored.
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
            Self::Took(bucket) => TOOK + bucket.0 as i16,
        }
    }

    /// From the stored form.
    pub fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Accepted),
            2 => Some(Self::Sent),
            3 => Some(Self::Delivered),
            4 => Some(Self::Cancelled),
            5 => Some(Self::Inbound),
            6 => Some(Self::OptedOut),
            7 => Some(Self::Spent),
            FAILED..TOOK => FailureCode::from_code(code - FAILED).map(Self::Failed),
            _ => {
                let bucket = u8::try_from(code.checked_sub(TOOK)?).ok()?;
                (bucket < Bucket::COUNT).then_some(Self::Took(Bucket(bucket)))
            }
        }
    }
}

/// A span of durations: each bucket reaches twice as far as the one before it, the first up to 10 ms, the last from
/// two days on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bucket(u8);

impl Bucket {
    /// How many there are.
    pub const COUNT: u8 = 26;
    /// What the first one holds, in milliseconds.
    const FIRST: u64 = 10;

    /// The one that `time` falls into.
    pub fn of(time: Duration) -> Self {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        // The smallest n with millis ≤ FIRST · 2ⁿ.
        let steps = millis.div_ceil(Self::FIRST).max(1);
        let n = u64::BITS - (steps - 1).leading_zeros();
        Self(u8::try_from(n).unwrap_or(u8::MAX).min(Self::COUNT - 1))
    }

    /// More than this falls into it.
    pub const fn above(self) -> Duration {
        match self.0 {
            0 => Duration::ZERO,
            n => Duration::from_millis(Self::FIRST << (n - 1)),
        }
    }

    /// No more than this falls into it; `None` for the last one.
    pub fn up_to(self) -> Option<Duration> {
        (self.0 + 1 < Self::COUNT).then(|| Duration::from_millis(Self::FIRST << self.0))
    }
}

/// How many messages took how long.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Times([i64; Bucket::COUNT as usize]);

impl Times {
    /// Adds so many messages of one bucket.
    pub fn add(&mut self, bucket: Bucket, messages: i64) {
        if let Some(count) = self.0.get_mut(usize::from(bucket.0)) {
            *count = count.saturating_add(messages);
        }
    }

    /// The time within which half of them arrived, as exactly as the buckets tell; `None` when there are none.
    pub fn median(&self) -> Option<Duration> {
        let all: i64 = self.0.iter().sum();
        let half = all as f64 / 2.0;
        let mut before = 0.0;
        for (n, count) in (0u8..).zip(self.0).filter(|(_, count)| *count > 0) {
            let count = count as f64;
            if before + count >= half {
                let (from, to) = (Bucket(n).above(), Bucket(n).up_to());
                let share = (half - before) / count;
                let width = to.map_or(Duration::ZERO, |to| to - from);
                return Some(from + width.mul_f64(share.clamp(0.0, 1.0)));
            }
            before += count;
        }
        None
    }
}

/// The hour that an instant lies in, counted from 1970 in UTC.
pub fn hour(at: Timestamp) -> i32 {
    i32::try_from(at.millis().div_euclid(HOUR)).unwrap_or(i32::MAX)
}

/// When an hour begins.
pub fn begin(hour: i32) -> Timestamp {
    Timestamp(i64::from(hour) * HOUR)
}

/// Whose, in which world, and what: a key in the order in which rows are locked.
type Counted = (AccountId, Mode, i16);

/// What one transaction counts, added up: however many messages it is about, there are few sums.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally(BTreeMap<Counted, i64>);

impl Tally {
    /// Adds so much of something.
    pub fn add(&mut self, (account, mode): (AccountId, Mode), measure: Measure, n: i64) {
        if n != 0 {
            let sum = self.0.entry((account, mode, measure.code())).or_default();
            *sum = sum.saturating_add(n);
        }
    }

    /// Adds all that another one has.
    pub fn extend(&mut self, other: Self) {
        for (key, n) in other.0 {
            *self.0.entry(key).or_default() += n;
        }
    }

    /// The sums, by account, mode and the measure's code.
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
        plain.into_iter().chain(failed).chain((0..26).map(|n| Took(Bucket(n))))
    }

    #[test]
    fn each_measure_has_a_code_of_its_own_that_leads_back() {
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
            (hour(Timestamp(0)), hour(Timestamp(HOUR - 1)), hour(Timestamp(HOUR))),
            (0, 0, 1)
        );
        let nine = Timestamp(1_795_165_200_120); // 2026-11-20T09:00:00.120Z
        assert_eq!((hour(nine) % 24, begin(hour(nine))), (9, Timestamp(1_795_165_200_000)));
    }

    #[test]
    fn a_tally_adds_up_and_keeps_its_order() {
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
    fn nothing_has_no_median() {
        assert_eq!(Times::default().median(), None);
    }

    proptest! {
        #[test]
        fn a_time_lies_within_its_bucket(millis in 0u64..1 << 40) {
            let time = Duration::from_millis(millis);
            let bucket = Bucket::of(time);
            prop_assert!(bucket.above() < time || bucket == Bucket(0));
            prop_assert!(bucket.up_to().is_none_or(|most| time <= most));
        }

        #[test]
        fn a_median_is_off_by_its_bucket_at_most(mut millis in prop::collection::vec(0u64..1 << 30, 1..200)) {
            let mut times = Times::default();
            for m in &millis {
                times.add(Bucket::of(Duration::from_millis(*m)), 1);
            }
            millis.sort_unstable();
            let middle = millis[(millis.len() - 1) / 2];
            let bucket = Bucket::of(Duration::from_millis(middle));
            let median = times.median().unwrap();
            prop_assert!(bucket.above() <= median, "{median:?}, not {middle} ms");
            prop_assert!(bucket.up_to().is_none_or(|most| median <= most), "{median:?}, not {middle} ms");
        }
    }
}
