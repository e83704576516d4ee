//! The simulated SMSC, as a client sees it.

use crate::peer::Peer;
use crate::rig::{Rig, Smsc, options};
use heliograph_carrier::carrier::Event;
use heliograph_carrier::smpp::body::ShortMessage;
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu::Head;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::receipt::Verdict;
use heliograph_domain::submission::Outcome;
use std::time::Duration;

const ANN: &str = "447700900123";

/// Receipts come at once.
fn quick() -> SmscOptions {
    SmscOptions { receipt_delay: Duration::ZERO, ..SmscOptions::default() }
}

fn failed(code: FailureCode, carrier_code: &str) -> Verdict {
    let carrier_code = Some(carrier_code.to_owned());
    Verdict::Failed(Failure { code, carrier_code })
}

async fn accepted(peer: &mut Peer) -> String {
    let (head, body) = peer.expect(id::SUBMIT_SM_RESP).await;
    assert_eq!(head.status, 0);
    String::from_utf8(body).unwrap().trim_end_matches('\0').to_owned()
}

/// The next PDU, which must be a receipt: (its head, its text).
async fn receipt(peer: &mut Peer) -> (Head, String) {
    let (head, body) = peer.expect(id::DELIVER_SM).await;
    let message = ShortMessage::decode(&body).unwrap();
    assert_eq!(message.esm_class, esm::RECEIPT);
    assert_eq!(message.destination.digits, b"Shop");
    (head, String::from_utf8(message.text.to_vec()).unwrap())
}

#[tokio::test]
async fn the_last_digits_choose_what_becomes_of_a_message() {
    let smsc = Smsc::start(quick()).await;
    let mut rig = Rig::bound(options(smsc.port)).await;
    for (number, expected) in [
        (15_550_000_001, failed(FailureCode::Unreachable, "011")),
        (15_550_000_002, failed(FailureCode::Expired, "027")),
        (15_550_000_010, Verdict::Delivered),
    ] {
        rig.submit(number, number).await;
        let (token, smsc_id) = rig.accepted().await;
        let (handle, receipt) = rig.receipt().await;
        assert_eq!((token, receipt.recipient.0), (number, number));
        assert_eq!((receipt.smsc_id, receipt.verdict), (smsc_id, expected));
        rig.ack(handle, true).await;
    }
}

#[tokio::test]
async fn a_number_can_refuse_throttle_or_stay_silent() {
    let smsc = Smsc::start(quick()).await;
    let mut rig = Rig::bound(options(smsc.port)).await;
    rig.submit(3, 15_550_000_003).await;
    match rig.outcome().await {
        (3, Outcome::Refused(failure)) => assert_eq!(failure.code, FailureCode::InvalidRecipient),
        other => panic!("{other:?}"),
    }
    rig.submit(4, 15_550_000_004).await;
    assert_eq!(rig.outcome().await, (4, Outcome::Throttled));
    rig.submit(4, 15_550_000_004).await;
    rig.accepted().await;
    let (handle, _) = rig.receipt().await;
    rig.ack(handle, true).await;
    // Neither of these two has a receipt by the time the third has one.
    for number in [15_550_000_005, 15_550_000_006, 15_550_000_010] {
        rig.submit(number, number).await;
        rig.accepted().await;
    }
    assert_eq!(rig.receipt().await.1.recipient.0, 15_550_000_010);
}

#[tokio::test]
async fn a_receipt_can_come_early_or_twice() {
    let smsc = Smsc::start(quick()).await;
    let mut rig = Rig::bound(options(smsc.port)).await;
    rig.submit(7, 15_550_000_007).await;
    let (_, early) = rig.receipt().await;
    assert_eq!(rig.accepted().await, (7, early.smsc_id));
    rig.submit(8, 15_550_000_008).await;
    let (_, smsc_id) = rig.accepted().await;
    for _ in 0..2 {
        assert_eq!(rig.receipt().await.1.smsc_id, smsc_id);
    }
}

#[tokio::test]
async fn receipts_go_to_a_receiver_of_the_same_system() {
    let smsc = Smsc::start(quick()).await;
    let mut out = Peer::client(smsc.port, id::BIND_TRANSMITTER, "one").await;
    let mut other = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "two").await;
    let mut back = Peer::client(smsc.port, id::BIND_RECEIVER, "one").await;
    out.submit(2, ANN).await;
    let smsc_id = accepted(&mut out).await;
    let (_, text) = receipt(&mut back).await;
    assert!(
        text.starts_with(&format!("id:{smsc_id} sub:001 dlvrd:001 submit date:2611200900 ")),
        "{text}"
    );
    assert!(text.ends_with("stat:DELIVRD err:000 text:Hello from the peer"), "{text}");
    back.submit(3, ANN).await;
    assert_eq!(back.expect(id::SUBMIT_SM_RESP).await.0.status, 0x04);
    other.expect_silence().await;
    out.expect_silence().await;
}

#[tokio::test]
async fn a_receipt_that_was_not_taken_comes_again() {
    let smsc = Smsc::start(quick()).await;
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, ANN).await;
    let smsc_id = accepted(&mut peer).await;
    let (head, first) = receipt(&mut peer).await;
    assert!(first.contains(&smsc_id));
    // Put off: it comes a second later. Not answered at all: it comes with the next bind.
    peer.answer(head, 0x64, "").await;
    let (_, second) = receipt(&mut peer).await;
    assert_eq!(first, second);
    drop(peer);
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    let (head, third) = receipt(&mut peer).await;
    assert_eq!(first, third);
    peer.answer(head, 0, "").await;
    peer.expect_silence().await;
    drop(peer);
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.expect_silence().await;
}

#[tokio::test]
async fn the_receipt_window_holds() {
    let smsc = Smsc::start(SmscOptions { receipt_window: 2, ..quick() }).await;
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    let mut heads = Vec::new();
    for sequence in 2..6 {
        peer.submit(sequence, ANN).await;
        accepted(&mut peer).await;
        if sequence < 4 {
            heads.push(receipt(&mut peer).await.0);
        }
    }
    peer.expect_silence().await;
    peer.answer(heads[0], 0, "").await;
    receipt(&mut peer).await;
    peer.expect_silence().await;
}

#[tokio::test]
async fn nonsense_is_answered_and_nobody_submits_unbound() {
    let smsc = Smsc::start(quick()).await;
    let mut peer = Peer::connect(smsc.port).await;
    peer.submit(1, ANN).await;
    assert_eq!(peer.expect(id::SUBMIT_SM_RESP).await.0.status, 0x04);
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    for (command, status) in
        [(0x0103, None), (id::SUBMIT_SM, Some(0x02)), (id::BIND_RECEIVER, Some(0x05))]
    {
        let head = Head::request(command, 9);
        peer.bare(head).await;
        let expected = status.map_or(head.nack(0x03), |status| head.response(status));
        assert_eq!(peer.next().await.0, expected);
    }
    let unbind = Head::request(id::UNBIND, 10);
    peer.bare(unbind).await;
    assert_eq!(peer.next().await.0, unbind.response(0));
    assert!(peer.read().await.is_none());
}

#[tokio::test]
async fn it_can_lose_answers_and_cut_links() {
    let smsc = Smsc::start(SmscOptions {
        drop_response_every: 3,
        disconnect_every: 5,
        no_receipts: true,
        ..quick()
    })
    .await;
    let mut rig = Rig::bound(options(smsc.port)).await;
    for token in 1..=4 {
        rig.submit(token, 15_550_000_010).await;
    }
    for token in [1, 2, 4] {
        assert_eq!(rig.accepted().await.0, token);
    }
    rig.submit(5, 15_550_000_010).await;
    for token in [3, 5] {
        assert_eq!(rig.outcome().await, (token, Outcome::InDoubt));
    }
    rig.unbound().await;
    assert_eq!(rig.event().await, Event::Bound);
}

#[tokio::test]
async fn it_can_have_troubles_of_its_own() {
    let smsc = Smsc::start(SmscOptions { error_rate: 1.0, ..quick() }).await;
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, ANN).await;
    assert_eq!(peer.expect(id::SUBMIT_SM_RESP).await.0.status, 0x08);
    let smsc = Smsc::start(SmscOptions { throttle: 1, ..quick() }).await;
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSMITTER, "one").await;
    let mut refused = 0;
    for sequence in 2..12 {
        peer.submit(sequence, ANN).await;
        refused += u32::from(peer.expect(id::SUBMIT_SM_RESP).await.0.status == 0x58);
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn ids_can_be_hexadecimal_in_answers() {
    let smsc = Smsc::start(SmscOptions { hex_ids: true, ..quick() }).await;
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, ANN).await;
    let named = u64::from_str_radix(&accepted(&mut peer).await, 16).unwrap();
    let (_, text) = receipt(&mut peer).await;
    assert!(text.starts_with(&format!("id:{named} ")), "{text}");
}

#[tokio::test]
async fn the_journal_tells_what_happened() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let smsc = Smsc::start(SmscOptions { journal: Some(path.clone()), ..quick() }).await;
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, "15550000003").await;
    peer.expect(id::SUBMIT_SM_RESP).await;
    peer.submit(3, ANN).await;
    let smsc_id = accepted(&mut peer).await;
    let (head, _) = receipt(&mut peer).await;
    peer.answer(head, 0, "").await;
    peer.expect_silence().await;
    let at = r#"{"at":1795165200000,"event""#;
    let text = r#""source":"Shop","text":"Hello from the peer","part":1,"parts":1"#;
    let expected = format!(
        r#"{at}:"refused","destination":"15550000003",{text},"id":null,"status":11}}
{at}:"accepted","destination":"{ANN}",{text},"id":"{smsc_id}","status":0}}
{at}:"acknowledged","destination":"{ANN}","source":"Shop","id":"{smsc_id}","status":0}}
"#
    );
    assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
}
