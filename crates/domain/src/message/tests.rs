//! The state machine, step by step and by chance.

use super::*;
use proptest::prelude::*;

const AT: Timestamp = Timestamp(1_000);

fn rank(s: Status) -> u8 {
    match s {
        Status::Queued => 0,
        Status::Sent => 1,
        Status::Delivered | Status::Failed | Status::Cancelled => 2,
    }
}

fn events() -> impl Strategy<Value = Event> {
    let failure = Failure::plain(FailureCode::Unreachable);
    prop_oneof![
        (0u16..4).prop_map(Event::PartsAccepted),
        Just(Event::SendFailed(failure.clone())),
        Just(Event::InDoubt),
        Just(Event::PartDelivered),
        Just(Event::PartDelivered),
        Just(Event::PartFailed(failure)),
        Just(Event::Cancelled),
    ]
}

fn run(parts: u16, events: &[Event]) -> State {
    events.iter().fold(State::accepted(parts, Amount(100)), |s, e| apply(&s, AT, e).unwrap_or(s))
}

#[test]
fn the_ordinary_road() {
    let sent = run(1, &[Event::PartsAccepted(1)]);
    assert_eq!(
        (sent.status, sent.captured, sent.reserved),
        (Status::Sent, Amount(100), Amount::ZERO)
    );
    let done = run(1, &[Event::PartsAccepted(1), Event::PartDelivered]);
    assert_eq!((done.status, done.done_at), (Status::Delivered, Some(AT)));
}

#[test]
fn receipts_of_early_parts_wait_for_the_last_part() {
    let s = run(2, &[Event::PartsAccepted(1), Event::PartDelivered]);
    assert_eq!((s.status, s.parts_delivered), (Status::Queued, 1));
    let s = run(
        2,
        &[
            Event::PartsAccepted(1),
            Event::PartDelivered,
            Event::PartsAccepted(1),
            Event::PartDelivered,
        ],
    );
    assert_eq!(s.status, Status::Delivered);
}

#[test]
fn a_refused_part_pays_what_was_taken_and_frees_the_rest() {
    let refused = Event::SendFailed(Failure::plain(FailureCode::RejectedContent));
    let s = run(3, &[Event::PartsAccepted(1), refused]);
    assert_eq!((s.status, s.captured, s.reserved), (Status::Failed, Amount(100), Amount::ZERO));
}

#[test]
fn a_message_with_a_part_out_cannot_be_called_back() {
    for before in [Event::PartsAccepted(1), Event::InDoubt] {
        assert_eq!(run(2, &[before, Event::Cancelled]).status, Status::Queued);
    }
}

#[test]
fn a_receipt_after_failure_is_only_noted() {
    let failed = Event::PartFailed(Failure::plain(FailureCode::Expired));
    let s = run(1, &[Event::PartsAccepted(1), failed, Event::PartDelivered]);
    assert_eq!((s.status, s.late_receipt), (Status::Failed, true));
}

proptest! {
    #[test]
    fn whatever_happens(parts in 1u16..4, events in prop::collection::vec(events(), 0..12)) {
        let (mut s, mut account) = (State::accepted(parts, Amount(100)), (0i64, 100 * i64::from(parts)));
        for event in &events {
            let Some(next) = apply(&s, AT, event) else { continue };
            prop_assert!(rank(next.status) >= rank(s.status));
            prop_assert!(!s.status.is_final() || next.status == s.status);
            prop_assert!(next.parts_delivered <= next.parts_accepted && next.parts_accepted <= parts);
            prop_assert_eq!(next.status.is_final(), next.done_at.is_some());
            prop_assert_eq!(next.status == Status::Failed, next.failure.is_some());
            prop_assert_eq!(next.captured, Amount(100) * next.parts_accepted);
            prop_assert!(!next.status.is_final() || next.reserved == Amount::ZERO);
            let (available, reserved) = money(&s, &next);
            account = (account.0 + available.0, account.1 + reserved.0);
            prop_assert_eq!(account.1, next.reserved.0);
            prop_assert_eq!(account.0 + account.1 + next.captured.0, 100 * i64::from(parts));
            s = next;
        }
    }

    #[test]
    fn a_final_event_told_twice_changes_nothing(events in prop::collection::vec(events(), 0..8)) {
        let s = run(1, &events);
        if s.status == Status::Delivered {
            for e in [Event::PartsAccepted(1), Event::PartDelivered, Event::InDoubt, Event::Cancelled] {
                prop_assert_eq!(apply(&s, AT, &e), None);
            }
        }
    }
}
