//! The window: the content of submit_sm, and the matching of responses to submissions.

use crate::bound_pair::bound_pair;
use crate::harness::{parts, submission};
use heliograph_carrier::smpp::body::ShortMessage;
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu::PduHeader;
use heliograph_carrier::smpp::status::StatusMeaning;
use heliograph_domain::lease::STOP_AFTER;
use heliograph_domain::message::FailureCode;
use heliograph_domain::submission::SubmitOutcome;
use std::time::{Duration, Instant};

const ANN: u64 = 447_700_900_123;

#[tokio::test]
async fn submit_sm_carries_the_submission() {
    let (harness, mut peer, _listener) = bound_pair(|_| ()).await;
    for originator in ["Shop", "60777", "447700900999"] {
        let mut part = parts(1, ANN, &"x".repeat(200)).remove(1);
        part.originator = originator.parse().unwrap();
        harness.submissions.send(part).await.unwrap();
    }
    for (originator, ton, npi) in [("Shop", 5, 0), ("60777", 3, 0), ("447700900999", 1, 1)] {
        let (_, body) = peer.expect(id::SUBMIT_SM).await;
        let m = ShortMessage::decode(&body).unwrap();
        assert_eq!(m.source.digits, originator.as_bytes());
        assert_eq!((m.source.ton, m.source.npi), (ton, npi));
        assert_eq!(m.destination.digits, b"447700900123");
        assert_eq!((m.destination.ton, m.destination.npi), (1, 1));
        assert_eq!((m.esm_class, m.data_coding, m.registered_delivery), (esm::UDH, 0, 1));
        assert_eq!(m.validity, b"000002000000000R");
        assert_eq!(m.text[..6], [5, 0, 3, 7, 2, 2]);
    }
}

#[tokio::test]
async fn the_window_is_never_exceeded() {
    let (mut harness, mut peer, _listener) = bound_pair(|o| o.window = 3).await;
    for token in 0..10 {
        harness.submit(token, ANN).await;
    }
    let mut unanswered = Vec::new();
    for _ in 0..3 {
        unanswered.push(peer.expect(id::SUBMIT_SM).await.0);
    }
    peer.expect_silence().await;
    for token in 0..7 {
        let header = unanswered.remove(0);
        peer.answer(header, 0, "x").await;
        assert_eq!(harness.accepted().await.0, token);
        unanswered.push(peer.expect(id::SUBMIT_SM).await.0);
        peer.expect_silence().await;
    }
}

#[tokio::test]
async fn outcomes_that_the_engine_has_not_received_occupy_the_window() {
    let (mut harness, mut peer, _listener) = bound_pair(|o| o.window = 4).await;
    let mut token = 0;
    // The capacity of the event channel, in batches of one, plus the window.
    for _ in 0..16 + 4 {
        harness.submit(token, ANN).await;
        let (header, _) = peer.expect(id::SUBMIT_SM).await;
        peer.answer(header, 0, "x").await;
        peer.expect_silence().await;
        token += 1;
    }
    harness.submit(token, ANN).await;
    peer.expect_silence().await;
    for expected in 0..token {
        assert_eq!(harness.accepted().await.0, expected);
    }
    peer.expect(id::SUBMIT_SM).await;
}

#[tokio::test]
async fn responses_in_any_order_are_matched_by_sequence() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    for token in 0..3 {
        harness.submit(token, ANN).await;
    }
    let mut headers = Vec::new();
    for _ in 0..3 {
        headers.push(peer.expect(id::SUBMIT_SM).await.0);
    }
    for n in [2, 0, 1] {
        peer.answer(headers[n], 0, &format!("id{n}")).await;
    }
    for n in [2, 0, 1] {
        assert_eq!(harness.accepted().await, (n, format!("id{n}")));
    }
}

#[tokio::test]
async fn error_without_a_message_id_or_as_generic_nack_is_understood() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    for token in 0..3 {
        harness.submit(token, ANN).await;
    }
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    peer.write_header(header.response(0x0B)).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    peer.write_header(header.nack(0x03)).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    peer.write_header(header.nack(0)).await;
    for expected in [Some(FailureCode::InvalidRecipient), Some(FailureCode::CarrierError), None] {
        match (harness.outcome().await.1, expected) {
            (SubmitOutcome::Refused(failure), Some(code)) => assert_eq!(failure.code, code),
            (SubmitOutcome::Ambiguous { status: 0xFF }, None) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn generic_nack_with_a_temporary_status_is_ambiguous() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    harness.submit(1, ANN).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    peer.write_header(header.nack(0x08)).await;
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::Ambiguous { status: 0x08 }));
}

#[tokio::test]
async fn statuses_follow_the_map_of_the_carrier() {
    let (mut harness, mut peer, _listener) = bound_pair(|o| {
        o.status_map.insert(0x401, StatusMeaning::Temporary);
    })
    .await;
    for (token, status) in [(1, 0x401), (2, 0x61), (3, 0xFE)] {
        harness.submit(token, ANN).await;
        let (header, _) = peer.expect(id::SUBMIT_SM).await;
        peer.answer(header, status, "").await;
        assert_eq!(harness.outcome().await, (token, SubmitOutcome::Temporary { status }));
    }
}

#[tokio::test]
async fn a_long_message_id_counts_as_accepted_without_an_id() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    for (token, length, kept) in [(1, 64, 64), (2, 65, 0), (3, 60_000, 0)] {
        harness.submit(token, ANN).await;
        let (header, _) = peer.expect(id::SUBMIT_SM).await;
        peer.answer(header, 0, &"7".repeat(length)).await;
        assert_eq!(harness.accepted().await, (token, "7".repeat(kept)));
    }
}

#[tokio::test]
async fn submission_with_an_expired_lease_is_not_sent() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    let mut late = submission(1, ANN);
    late.leased_at = Instant::now().checked_sub(STOP_AFTER).unwrap();
    harness.submissions.send(late).await.unwrap();
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::NotSent));
    peer.expect_silence().await;
}

#[tokio::test]
async fn throttling_pauses_submissions_for_a_second() {
    let (mut harness, mut peer, _listener) = bound_pair(|o| o.window = 1).await;
    harness.submit(1, ANN).await;
    harness.submit(2, ANN).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    let before = Instant::now();
    peer.answer(header, 0x58, "").await;
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::Throttled));
    peer.expect_silence().await;
    peer.expect(id::SUBMIT_SM).await;
    assert!(before.elapsed() >= Duration::from_secs(1));
}

/// A test number that throttles does not delay the other test messages.
#[tokio::test]
async fn throttling_of_the_simulated_smsc_pauses_nothing() {
    let (mut harness, mut peer, _listener) =
        bound_pair(|o| (o.window, o.labelled) = (1, true)).await;
    harness.submit(1, ANN).await;
    harness.submit(2, ANN).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    let before = Instant::now();
    peer.answer(header, 0x58, "").await;
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::Throttled));
    peer.expect(id::SUBMIT_SM).await;
    assert!(before.elapsed() < Duration::from_secs(1));
}

/// As of a node that was stopped while others may have taken its leases.
#[tokio::test]
async fn submission_under_a_void_lease_is_not_sent() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    harness.fence.void_leases(Instant::now() + Duration::from_secs(1));
    harness.submit(1, ANN).await;
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::NotSent));
    peer.expect_silence().await;
}

#[tokio::test]
async fn rate_limit_is_kept() {
    let (harness, mut peer, _listener) = bound_pair(|o| (o.window, o.rate) = (100, 40)).await;
    for token in 0..20 {
        harness.submit(token, ANN).await;
    }
    let before = Instant::now();
    for _ in 0..20 {
        peer.expect(id::SUBMIT_SM).await;
    }
    // 20 at 40 per second, with a burst of 4.
    assert!(before.elapsed() >= Duration::from_millis(375), "{:?}", before.elapsed());
}

#[tokio::test]
async fn duplicate_and_stray_responses_are_ignored() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    harness.submit(1, ANN).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    peer.answer(PduHeader { sequence: header.sequence + 1, ..header }, 0, "stray").await;
    peer.answer(header, 0, "first").await;
    peer.answer(header, 0, "second").await;
    assert_eq!(harness.accepted().await, (1, "first".to_owned()));
    harness.submit(2, ANN).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    peer.answer(header, 0, "third").await;
    assert_eq!(harness.accepted().await, (2, "third".to_owned()));
}
