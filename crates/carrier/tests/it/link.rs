//! Broken links, invalid PDUs, keep-alive, reconnection and graceful shutdown.

use crate::bound_pair::bound_pair;
use crate::harness::{Harness, options, submission};
use crate::scripted_peer::ScriptedListener;
use heliograph_carrier::carrier::CarrierEvent;
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu::PduHeader;
use heliograph_domain::submission::SubmitOutcome;
use std::time::Duration;
use tokio::net::TcpListener;

const ANN: u64 = 447_700_900_123;

#[tokio::test]
async fn missing_response_closes_the_session_and_is_reported_as_in_doubt() {
    let (mut harness, mut peer, listener) =
        bound_pair(|o| o.response_timeout = Duration::from_millis(200)).await;
    for token in 0..3 {
        harness.submit(token, ANN).await;
    }
    peer.expect(id::SUBMIT_SM).await;
    let (second, _) = peer.expect(id::SUBMIT_SM).await;
    peer.expect(id::SUBMIT_SM).await;
    peer.answer(second, 0, "x").await;
    assert_eq!(harness.accepted().await.0, 1);
    for token in [0, 2] {
        assert_eq!(harness.outcome().await, (token, SubmitOutcome::InDoubt));
    }
    assert!(harness.unbound().await.contains("submit_sm_resp"));
    // A late response to an earlier session is ignored.
    let mut next = listener.accept_and_bind().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
    next.answer(second, 0, "late").await;
    next.expect_silence().await;
    harness.submit(7, ANN).await;
    let (header, _) = next.expect(id::SUBMIT_SM).await;
    next.answer(header, 0, "y").await;
    assert_eq!(harness.accepted().await, (7, "y".to_owned()));
}

#[tokio::test]
async fn disconnect_inside_a_pdu_is_reported_as_in_doubt() {
    let (mut harness, mut peer, listener) = bound_pair(|_| ()).await;
    harness.submit(1, ANN).await;
    peer.expect(id::SUBMIT_SM).await;
    peer.write_bytes(&[0, 0, 0, 20, 0x80, 0, 0, 4, 0]).await;
    drop(peer);
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::InDoubt));
    harness.unbound().await;
    listener.accept_and_bind().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
}

#[tokio::test]
async fn unknown_command_gets_generic_nack_and_the_session_continues() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    let unknown = PduHeader::request(0x0103, 5);
    peer.write_header(unknown).await;
    assert_eq!(peer.next().await.0, unknown.nack(0x03));
    // A deliver_sm without a body, stray responses, and a vendor-specific response.
    let broken = PduHeader::request(id::DELIVER_SM, 6);
    peer.write_header(broken).await;
    assert_eq!(peer.next().await.0, broken.response(0x65));
    for command in [id::SUBMIT_SM_RESP, id::GENERIC_NACK, 0x8001_0000, id::ALERT_NOTIFICATION] {
        peer.write_header(PduHeader::request(command, 99)).await;
    }
    peer.expect_silence().await;
    harness.submit(1, ANN).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    peer.answer(header, 0, "x").await;
    harness.accepted().await;
}

#[tokio::test]
async fn invalid_command_length_ends_the_session() {
    for length in [0u32, 15, 65_537, u32::MAX] {
        let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
        peer.write_bytes(&length.to_be_bytes()).await;
        assert!(harness.unbound().await.contains("command_length"));
    }
}

#[tokio::test]
async fn pdu_in_single_bytes_is_reassembled() {
    let (_rig, mut peer, _listener) = bound_pair(|_| ()).await;
    for byte in [0, 0, 0, 16, 0, 0, 0, 0x15, 0, 0, 0, 0, 0, 0, 0, 9] {
        peer.write_bytes(&[byte]).await;
    }
    let header = PduHeader::request(id::ENQUIRE_LINK, 9);
    assert_eq!(peer.next().await.0, header.response(0));
}

#[tokio::test]
async fn incomplete_pdu_times_out() {
    let (mut harness, mut peer, _listener) =
        bound_pair(|o| o.read_timeout = Duration::from_millis(100)).await;
    peer.write_bytes(&[0, 0, 0, 16, 0, 0, 0, 0x15]).await;
    assert!(harness.unbound().await.contains("rest of a PDU"));
}

#[tokio::test]
async fn silent_smsc_gets_enquire_link_and_is_disconnected_without_response() {
    let (mut harness, mut peer, _listener) = bound_pair(|o| {
        o.enquire_interval = Duration::from_millis(50);
        o.enquire_timeout = Duration::from_millis(200);
    })
    .await;
    for _ in 0..3 {
        let (header, _) = peer.expect(id::ENQUIRE_LINK).await;
        peer.write_header(header.response(0)).await;
    }
    peer.expect(id::ENQUIRE_LINK).await;
    assert!(harness.unbound().await.contains("enquire_link_resp"));
}

#[tokio::test]
async fn carrier_answers_unbind_and_reconnects() {
    let (mut harness, mut peer, listener) = bound_pair(|_| ()).await;
    let unbind = PduHeader::request(id::UNBIND, 5);
    peer.write_header(unbind).await;
    assert_eq!(peer.next().await.0, unbind.response(0));
    assert!(peer.read().await.is_none());
    harness.unbound().await;
    listener.accept_and_bind().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
}

#[tokio::test]
async fn lost_bind_state_leads_to_a_new_bind() {
    let (mut harness, mut peer, listener) = bound_pair(|_| ()).await;
    harness.submit(1, ANN).await;
    harness.submit(2, ANN).await;
    let (first, _) = peer.expect(id::SUBMIT_SM).await;
    let (second, _) = peer.expect(id::SUBMIT_SM).await;
    peer.answer(first, 0x04, "").await;
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::NotSent));
    // Pending submissions still get their responses; nothing new is sent.
    harness.submit(3, ANN).await;
    peer.expect_silence().await;
    peer.answer(second, 0, "x").await;
    assert_eq!(harness.accepted().await.0, 2);
    let (unbind, _) = peer.expect(id::UNBIND).await;
    peer.write_header(unbind.response(0)).await;
    assert!(harness.unbound().await.contains("ESME_RINVBNDSTS"));
    assert_eq!(harness.outcome().await, (3, SubmitOutcome::NotSent));
    listener.accept_and_bind().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
}

#[tokio::test]
async fn submissions_wait_for_the_first_bind_attempt_and_are_not_sent_after_it_fails() {
    let listener = ScriptedListener::open().await;
    let mut harness = Harness::start(options(listener.port()));
    harness.submit(1, ANN).await;
    let (mut peer, header) = listener.accept_bind().await;
    peer.answer(header, 0x0D, "").await;
    assert!(harness.unbound().await.contains("0x0000000d"));
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::NotSent));
    harness.submit(2, ANN).await;
    assert_eq!(harness.outcome().await, (2, SubmitOutcome::NotSent));
}

#[tokio::test]
async fn unreachable_host_is_reported_once() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let mut harness = Harness::start(options(port));
    harness.unbound().await;
    for token in 0..5 {
        harness.submit(token, ANN).await;
        assert_eq!(harness.outcome().await, (token, SubmitOutcome::NotSent));
    }
    harness.request_stop();
    assert_eq!(harness.join().await, []);
}

#[tokio::test]
async fn bind_without_response_times_out() {
    let listener = ScriptedListener::open().await;
    let mut options = options(listener.port());
    options.bind_timeout = Duration::from_millis(100);
    let mut harness = Harness::start(options);
    let _silent = listener.accept_bind().await;
    assert!(harness.unbound().await.contains("no answer"));
    let _next = listener.accept_and_bind().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
}

#[tokio::test]
async fn shutdown_waits_for_responses_and_returns_unsent_submissions() {
    let (harness, mut peer, _listener) = bound_pair(|o| o.window = 2).await;
    for token in 0..4 {
        harness.submit(token, ANN).await;
    }
    let (first, _) = peer.expect(id::SUBMIT_SM).await;
    let (second, _) = peer.expect(id::SUBMIT_SM).await;
    peer.deliver(1, "447700900123", esm::RECEIPT, "id:1 stat:DELIVRD").await;
    harness.request_stop();
    let mut harness = harness;
    let mut outcomes = Vec::new();
    let mut handle = None;
    while handle.is_none() || outcomes.len() < 2 {
        match harness.event().await {
            CarrierEvent::Receipt { handle: received, .. } => handle = Some(received),
            CarrierEvent::Submitted { token, outcome, .. } => outcomes.push((token, outcome)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(outcomes, [(2, SubmitOutcome::NotSent), (3, SubmitOutcome::NotSent)]);
    assert!(harness.submissions.try_send(submission(5, ANN)).is_err());
    peer.answer(second, 0, "b").await;
    peer.answer(first, 0, "a").await;
    assert_eq!(harness.accepted().await.0, 1);
    assert_eq!(harness.accepted().await.0, 0);
    // An ack is still missing; new receipts are refused because they would delay the shutdown.
    peer.receipt(2, "447700900123", "2").await;
    let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
    assert_eq!((header.status, header.sequence), (0x64, 2));
    peer.expect_silence().await;
    harness.ack(handle.unwrap(), true).await;
    let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
    assert_eq!((header.status, header.sequence), (0, 1));
    let (unbind, _) = peer.expect(id::UNBIND).await;
    peer.write_header(unbind.response(0)).await;
    assert!(peer.read().await.is_none());
    assert_eq!(harness.join().await, [CarrierEvent::Unbound("shutting down".to_owned())]);
}

#[tokio::test]
async fn shutdown_does_not_exceed_the_drain_timeout() {
    let (mut harness, mut peer, _listener) =
        bound_pair(|o| o.drain_timeout = Duration::from_millis(100)).await;
    harness.submit(1, ANN).await;
    peer.expect(id::SUBMIT_SM).await;
    harness.request_stop();
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::InDoubt));
    harness.unbound().await;
    assert_eq!(harness.join().await, []);
}

#[tokio::test]
async fn carrier_ends_when_the_engine_drops_its_channels() {
    let (harness, mut peer, _listener) = bound_pair(|_| ()).await;
    harness.submit(1, ANN).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    let tasks = harness.abandon();
    peer.answer(header, 0, "x").await;
    tasks.join_all().await;
}

#[tokio::test]
async fn link_status_follows_the_session() {
    let (mut harness, mut peer, listener) = bound_pair(|_| ()).await;
    let seen = harness.link_status.snapshot();
    assert_eq!(
        (seen.bound, seen.unanswered, seen.throttled, seen.last_error),
        (true, 0, false, None)
    );
    harness.submit(1, ANN).await;
    let (header, _) = peer.expect(id::SUBMIT_SM).await;
    assert_eq!(harness.link_status.snapshot().unanswered, 1);
    peer.answer(header, 0x58, "").await;
    assert_eq!(harness.outcome().await, (1, SubmitOutcome::Throttled));
    let seen = harness.link_status.snapshot();
    assert_eq!((seen.unanswered, seen.throttled), (0, true));
    assert!(!harness.link_status.snapshot().throttled, "a snapshot resets the flag");
    drop(peer);
    harness.unbound().await;
    let seen = harness.link_status.snapshot();
    let (error, _) = seen.last_error.unwrap();
    assert!(!seen.bound && error.starts_with("bind lost: "), "{error}");
    let _peer = listener.accept_and_bind().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
    assert!(harness.link_status.snapshot().bound);
}
