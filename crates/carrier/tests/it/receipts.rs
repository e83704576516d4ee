//! Receipts: acknowledged when the engine says so, and not a moment earlier.

use crate::pair::pair;
use crate::peer::{Door, put_deliver};
use crate::rig::{Rig, options};
use bytes::BytesMut;
use heliograph_carrier::carrier::{Ack, Event};
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu;

const ANN: &str = "447700900123";

#[tokio::test]
async fn a_receipt_is_acknowledged_only_when_it_is_committed() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    for (sequence, committed, status) in [(7, true, 0), (8, false, 0x64)] {
        peer.receipt(sequence, ANN, "x").await;
        let (handle, receipt) = rig.receipt().await;
        assert_eq!((handle.session, handle.sequence), (1, sequence));
        assert_eq!(receipt.smsc_id, "x");
        peer.expect_silence().await;
        rig.ack(handle, committed).await;
        let (head, body) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((head.status, head.sequence, body), (status, sequence, vec![0]));
    }
}

#[tokio::test]
async fn what_is_no_final_receipt_is_answered_at_once() {
    let (_rig, mut peer, _door) = pair(|_| ()).await;
    for (esm_class, text) in [
        (esm::RECEIPT, "id:1 stat:ENROUTE"),
        (esm::RECEIPT, "id:1 stat:ACCEPTD"),
        (esm::RECEIPT, "nothing of the kind"),
        (esm::INTERMEDIATE, "id:1 stat:DELIVRD"),
    ] {
        peer.deliver(3, ANN, esm_class, text).await;
        let (head, _) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!(head.status, 0, "{text}");
    }
    // Nothing of it reached the engine: the next event is this one.
    peer.expect_silence().await;
}

#[tokio::test]
async fn receipts_right_behind_the_bind_are_not_lost() {
    let door = Door::open().await;
    let mut rig = Rig::start(options(door.port()));
    let (mut peer, head) = door.knock().await;
    peer.say(|out| {
        pdu::put_id(out, head.response(0), b"peer");
        put_deliver(out, 1, ANN, esm::RECEIPT, "id:1 stat:DELIVRD");
    })
    .await;
    assert_eq!(rig.event().await, Event::Bound);
    assert_eq!(rig.receipt().await.1.smsc_id, "1");
}

#[tokio::test]
async fn an_acknowledgement_of_an_earlier_session_is_dropped() {
    let (mut rig, mut peer, door) = pair(|_| ()).await;
    peer.receipt(1, ANN, "x").await;
    let (old, _) = rig.receipt().await;
    drop(peer);
    rig.unbound().await;
    let mut peer = door.bind().await;
    assert_eq!(rig.event().await, Event::Bound);
    peer.receipt(1, ANN, "x").await;
    let (new, _) = rig.receipt().await;
    assert_ne!(old, new);
    rig.ack(old, true).await;
    rig.ack(new, false).await;
    let (head, _) = peer.expect(id::DELIVER_SM_RESP).await;
    assert_eq!(head.status, 0x64);
    peer.expect_silence().await;
}

#[tokio::test]
async fn a_flood_of_receipts_is_bounded_and_blocks_nothing() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    let mut flood = BytesMut::new();
    for sequence in 1..=5_000 {
        put_deliver(&mut flood, sequence, ANN, esm::RECEIPT, "id:1 stat:DELIVRD");
    }
    peer.raw(&flood).await;
    // The engine takes nothing; what it can't hold is refused.
    for sequence in 4_097..=5_000 {
        let (head, _) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((head.status, head.sequence), (0x64, sequence));
    }
    peer.expect_silence().await;
    let mut handles = Vec::new();
    for _ in 0..4_096 {
        handles.push(rig.receipt().await.0);
    }
    let acks = handles.iter().map(|handle| Ack { handle: *handle, committed: true });
    rig.acks.send(acks.collect()).await.unwrap();
    for handle in handles {
        let (head, _) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((head.status, head.sequence), (0, handle.sequence));
    }
    peer.receipt(9_999, ANN, "x").await;
    rig.receipt().await;
}
