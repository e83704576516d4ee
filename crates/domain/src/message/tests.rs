//! Tests of the state machine: examples and property tests.

use super::*;
use proptest::prelude::*;

const AT: Timestamp = Timestamp(1_000);

fn rank(s: MessageStatus) -> u8 {
    match s {
        MessageStatus::Queued => 0,
        MessageStatus::Sent => 1,
        MessageStatus::Delivered | MessageStatus::Failed | MessageStatus::Cancelled => 2,
    }
}

fn events() -> impl Strategy<Value = MessageEvent> {
    let failure = Failure::new(FailureCode::Unreachable);
    prop_oneof![
        (0u16..4).prop_map(MessageEvent::PartsAccepted),
        Just(MessageEvent::SendFailed(failure.clone())),
        Just(MessageEvent::InDoubt),
        Just(MessageEvent::PartDelivered),
        Just(MessageEvent::AllPartsDelivered),
        Just(MessageEvent::PartDelivered),
        Just(MessageEvent::PartFailed(failure)),
        Just(MessageEvent::Cancelled),
    ]
}

fn run(parts: u16, events: &[MessageEvent]) -> MessageState {
    events
        .iter()
        .fold(MessageState::accepted(parts, Amount(100)), |s, e| apply(&s, AT, e).unwrap_or(s))
}

#[test]
fn an_accepted_message_is_sent_then_delivered() {
    let sent = run(1, &[MessageEvent::PartsAccepted(1)]);
    assert_eq!(
        (sent.status, sent.captured, sent.reserved),
        (MessageStatus::Sent, Amount(100), Amount::ZERO)
    );
    let done = run(1, &[MessageEvent::PartsAccepted(1), MessageEvent::PartDelivered]);
    assert_eq!((done.status, done.done_at), (MessageStatus::Delivered, Some(AT)));
}

#[test]
fn receipts_of_early_parts_wait_for_the_last_part() {
    let s = run(2, &[MessageEvent::PartsAccepted(1), MessageEvent::PartDelivered]);
    assert_eq!((s.status, s.parts_delivered), (MessageStatus::Queued, 1));
    let s = run(
        2,
        &[
            MessageEvent::PartsAccepted(1),
            MessageEvent::PartDelivered,
            MessageEvent::PartsAccepted(1),
            MessageEvent::PartDelivered,
        ],
    );
    assert_eq!(s.status, MessageStatus::Delivered);
}

#[test]
fn a_rejected_part_captures_sent_parts_and_releases_the_rest() {
    let rejected = MessageEvent::SendFailed(Failure::new(FailureCode::RejectedContent));
    let s = run(3, &[MessageEvent::PartsAccepted(1), rejected]);
    assert_eq!(
        (s.status, s.captured, s.reserved),
        (MessageStatus::Failed, Amount(100), Amount::ZERO)
    );
}

#[test]
fn a_message_with_a_sent_part_cannot_be_cancelled() {
    for before in [MessageEvent::PartsAccepted(1), MessageEvent::InDoubt] {
        assert_eq!(run(2, &[before, MessageEvent::Cancelled]).status, MessageStatus::Queued);
    }
}

#[test]
fn a_late_receipt_only_sets_a_flag() {
    let failed = MessageEvent::PartFailed(Failure::new(FailureCode::Expired));
    let s = run(1, &[MessageEvent::PartsAccepted(1), failed, MessageEvent::PartDelivered]);
    assert_eq!((s.status, s.late_receipt), (MessageStatus::Failed, true));
}

proptest! {
    #[test]
    fn invariants_hold_after_any_events(parts in 1u16..4, events in prop::collection::vec(events(), 0..12)) {
        let (mut s, mut account) = (MessageState::accepted(parts, Amount(100)), (0i64, 100 * i64::from(parts)));
        for event in &events {
            let Some(next) = apply(&s, AT, event) else { continue };
            prop_assert!(rank(next.status) >= rank(s.status));
            prop_assert!(!s.status.is_final() || next.status == s.status);
            let early = next.status == MessageStatus::Queued && next.parts_delivered == parts;
            prop_assert!(early || next.parts_delivered <= next.parts_accepted);
            prop_assert!(next.parts_accepted <= parts);
            prop_assert_eq!(next.status.is_final(), next.done_at.is_some());
            prop_assert_eq!(next.status == MessageStatus::Failed, next.failure.is_some());
            prop_assert_eq!(next.captured, Amount(100) * next.parts_accepted);
            prop_assert!(!next.status.is_final() || next.reserved == Amount::ZERO);
            let (available, reserved) = balance_change(&s, &next);
            account = (account.0 + available.0, account.1 + reserved.0);
            prop_assert_eq!(account.1, next.reserved.0);
            prop_assert_eq!(account.0 + account.1 + next.captured.0, 100 * i64::from(parts));
            s = next;
        }
    }

    #[test]
    fn events_after_delivery_change_nothing(events in prop::collection::vec(events(), 0..8)) {
        let s = run(1, &events);
        if s.status == MessageStatus::Delivered {
            for e in [MessageEvent::PartsAccepted(1), MessageEvent::PartDelivered, MessageEvent::InDoubt, MessageEvent::Cancelled] {
                prop_assert_eq!(apply(&s, AT, &e), None);
            }
        }
    }
}
