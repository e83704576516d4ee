//! Delivery receipts: acknowledged only after the engine's ack.

use crate::bound_pair::bound_pair;
use crate::harness::{Harness, options};
use crate::scripted_peer::{ScriptedListener, put_deliver};
use bytes::BytesMut;
use heliograph_carrier::carrier::{Ack, AckResult, CarrierEvent};
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu;

const ANN: &str = "447700900123";

#[tokio::test]
async fn receipt_is_acknowledged_only_when_committed() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    for (sequence, committed, status) in [(7, true, 0), (8, false, 0x64)] {
        peer.receipt(sequence, ANN, "x").await;
        let (handle, receipt) = harness.receipt().await;
        assert_eq!((handle.session, handle.sequence), (1, sequence));
        assert_eq!(receipt.smsc_id, "x");
        peer.expect_silence().await;
        harness.ack(handle, committed).await;
        let (header, body) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((header.status, header.sequence, body), (status, sequence, vec![0]));
    }
}

#[tokio::test]
async fn a_receipt_that_can_never_be_committed_is_rejected_for_good() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    peer.receipt(7, ANN, "x").await;
    let (handle, _) = harness.receipt().await;
    harness.acks.send(vec![Ack { handle, result: AckResult::Rejected }]).await.unwrap();
    let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
    assert_eq!((header.status, header.sequence), (0x65, 7));
}

#[tokio::test]
async fn a_receipt_with_a_long_message_id_is_acknowledged_and_ignored() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    peer.receipt(1, ANN, &"7".repeat(65)).await;
    let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
    assert_eq!((header.status, header.sequence), (0, 1));
    peer.receipt(2, ANN, &"7".repeat(64)).await;
    assert_eq!(harness.receipt().await.1.smsc_id, "7".repeat(64));
}

#[tokio::test]
async fn receipts_that_are_not_final_are_acknowledged_at_once() {
    let (_rig, mut peer, _listener) = bound_pair(|_| ()).await;
    for (esm_class, text) in [
        (esm::RECEIPT, "id:1 stat:ENROUTE"),
        (esm::RECEIPT, "id:1 stat:ACCEPTD"),
        (esm::RECEIPT, "not a receipt"),
        (esm::INTERMEDIATE, "id:1 stat:DELIVRD"),
    ] {
        peer.deliver(3, ANN, esm_class, text).await;
        let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!(header.status, 0, "{text}");
    }
    // None of them reached the engine.
    peer.expect_silence().await;
}

#[tokio::test]
async fn receipts_in_the_same_packet_as_the_bind_response_are_not_lost() {
    let listener = ScriptedListener::open().await;
    let mut harness = Harness::start(options(listener.port()));
    let (mut peer, header) = listener.accept_bind().await;
    peer.write(|out| {
        pdu::put_message_id(out, header.response(0), b"peer");
        put_deliver(out, 1, ANN, esm::RECEIPT, "id:1 stat:DELIVRD");
    })
    .await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
    assert_eq!(harness.receipt().await.1.smsc_id, "1");
}

#[tokio::test]
async fn acks_for_an_earlier_session_are_dropped() {
    let (mut harness, mut peer, listener) = bound_pair(|_| ()).await;
    peer.receipt(1, ANN, "x").await;
    let (old, _) = harness.receipt().await;
    drop(peer);
    harness.unbound().await;
    let mut peer = listener.accept_and_bind().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
    peer.receipt(1, ANN, "x").await;
    let (new, _) = harness.receipt().await;
    assert_ne!(old, new);
    harness.ack(old, true).await;
    harness.ack(new, false).await;
    let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
    assert_eq!(header.status, 0x64);
    peer.expect_silence().await;
}

#[tokio::test]
async fn unacknowledged_receipts_are_bounded_and_do_not_block_the_session() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    let mut flood = BytesMut::new();
    for sequence in 1..=5_000 {
        put_deliver(&mut flood, sequence, ANN, esm::RECEIPT, "id:1 stat:DELIVRD");
    }
    peer.write_bytes(&flood).await;
    // The engine receives nothing; receipts beyond the limit are refused.
    for sequence in 4_097..=5_000 {
        let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((header.status, header.sequence), (0x64, sequence));
    }
    peer.expect_silence().await;
    let mut handles = Vec::new();
    for _ in 0..4_096 {
        handles.push(harness.receipt().await.0);
    }
    let acks = handles.iter().map(|handle| Ack { handle: *handle, result: AckResult::Committed });
    harness.acks.send(acks.collect()).await.unwrap();
    for handle in handles {
        let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((header.status, header.sequence), (0, handle.sequence));
    }
    peer.receipt(9_999, ANN, "x").await;
    harness.receipt().await;
}
