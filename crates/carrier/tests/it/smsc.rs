//! The simulated SMSC from a client's point of view.

use crate::harness::{Harness, Smsc, options};
use crate::scripted_peer::ScriptedPeer;
use heliograph_carrier::carrier::CarrierEvent;
use heliograph_carrier::smpp::body::ShortMessage;
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu::PduHeader;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::receipt::ReceiptOutcome;
use heliograph_domain::submission::SubmitOutcome;
use std::time::Duration;

const ANN: &str = "447700900123";

/// Returns options with immediate receipts.
fn quick() -> SmscOptions {
    SmscOptions { receipt_delay: Duration::ZERO, ..SmscOptions::default() }
}

fn failed(code: FailureCode, carrier_code: &str) -> ReceiptOutcome {
    let carrier_code = Some(carrier_code.to_owned());
    ReceiptOutcome::Failed(Failure { code, carrier_code })
}

async fn accepted(peer: &mut ScriptedPeer) -> String {
    let (header, body) = peer.expect(id::SUBMIT_SM_RESP).await;
    assert_eq!(header.status, 0);
    String::from_utf8(body).unwrap().trim_end_matches('\0').to_owned()
}

/// Returns the next PDU, which must be a receipt: (its header, its text).
async fn receipt(peer: &mut ScriptedPeer) -> (PduHeader, String) {
    let (header, body) = peer.expect(id::DELIVER_SM).await;
    let message = ShortMessage::decode(&body).unwrap();
    assert_eq!(message.esm_class, esm::RECEIPT);
    assert_eq!(message.destination.digits, b"Shop");
    (header, String::from_utf8(message.text.to_vec()).unwrap())
}

#[tokio::test]
async fn last_digits_select_the_final_state() {
    let smsc = Smsc::start(quick()).await;
    let mut harness = Harness::bound(options(smsc.port)).await;
    for (number, expected) in [
        (15_550_000_001, failed(FailureCode::Unreachable, "011")),
        (15_550_000_002, failed(FailureCode::Expired, "027")),
        (15_550_000_010, ReceiptOutcome::Delivered),
    ] {
        harness.submit(number, number).await;
        let (token, smsc_id) = harness.accepted().await;
        let (handle, receipt) = harness.receipt().await;
        assert_eq!((token, receipt.recipient.0), (number, number));
        assert_eq!((receipt.smsc_id, receipt.outcome), (smsc_id, expected));
        harness.ack(handle, true).await;
    }
}

#[tokio::test]
async fn last_digits_select_refusal_throttling_or_missing_receipt() {
    let smsc = Smsc::start(quick()).await;
    let mut harness = Harness::bound(options(smsc.port)).await;
    harness.submit(3, 15_550_000_003).await;
    match harness.outcome().await {
        (3, SubmitOutcome::Refused(failure)) => {
            assert_eq!(failure.code, FailureCode::InvalidRecipient)
        }
        other => panic!("{other:?}"),
    }
    harness.submit(4, 15_550_000_004).await;
    assert_eq!(harness.outcome().await, (4, SubmitOutcome::Throttled));
    harness.submit(4, 15_550_000_004).await;
    harness.accepted().await;
    let (handle, _) = harness.receipt().await;
    harness.ack(handle, true).await;
    // The third message has a receipt before the first two.
    for number in [15_550_000_005, 15_550_000_006, 15_550_000_010] {
        harness.submit(number, number).await;
        harness.accepted().await;
    }
    assert_eq!(harness.receipt().await.1.recipient.0, 15_550_000_010);
}

#[tokio::test]
async fn receipts_can_be_early_or_duplicated() {
    let smsc = Smsc::start(quick()).await;
    let mut harness = Harness::bound(options(smsc.port)).await;
    harness.submit(7, 15_550_000_007).await;
    let (_, early) = harness.receipt().await;
    assert_eq!(harness.accepted().await, (7, early.smsc_id));
    harness.submit(8, 15_550_000_008).await;
    let (_, smsc_id) = harness.accepted().await;
    for _ in 0..2 {
        assert_eq!(harness.receipt().await.1.smsc_id, smsc_id);
    }
}

#[tokio::test]
async fn receipts_go_to_a_receiver_with_the_same_system_id() {
    let smsc = Smsc::start(quick()).await;
    let mut out = ScriptedPeer::client(smsc.port, id::BIND_TRANSMITTER, "one").await;
    let mut other = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "two").await;
    let mut back = ScriptedPeer::client(smsc.port, id::BIND_RECEIVER, "one").await;
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
async fn unacknowledged_receipt_is_redelivered() {
    let smsc = Smsc::start(quick()).await;
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, ANN).await;
    let smsc_id = accepted(&mut peer).await;
    let (header, first) = receipt(&mut peer).await;
    assert!(first.contains(&smsc_id));
    // After ESME_RX_T_APPN it is sent again a second later; without a response, after the next
    // bind.
    peer.answer(header, 0x64, "").await;
    let (_, second) = receipt(&mut peer).await;
    assert_eq!(first, second);
    drop(peer);
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    let (header, third) = receipt(&mut peer).await;
    assert_eq!(first, third);
    peer.answer(header, 0, "").await;
    peer.expect_silence().await;
    drop(peer);
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.expect_silence().await;
}

#[tokio::test]
async fn receipt_window_is_never_exceeded() {
    let smsc = Smsc::start(SmscOptions { receipt_window: 2, ..quick() }).await;
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    let mut headers = Vec::new();
    for sequence in 2..6 {
        peer.submit(sequence, ANN).await;
        accepted(&mut peer).await;
        if sequence < 4 {
            headers.push(receipt(&mut peer).await.0);
        }
    }
    peer.expect_silence().await;
    peer.answer(headers[0], 0, "").await;
    receipt(&mut peer).await;
    peer.expect_silence().await;
}

#[tokio::test]
async fn invalid_pdus_and_unbound_submits_are_refused() {
    let smsc = Smsc::start(quick()).await;
    let mut peer = ScriptedPeer::connect(smsc.port).await;
    peer.submit(1, ANN).await;
    assert_eq!(peer.expect(id::SUBMIT_SM_RESP).await.0.status, 0x04);
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    for (command, status) in
        [(0x0103, None), (id::SUBMIT_SM, Some(0x02)), (id::BIND_RECEIVER, Some(0x05))]
    {
        let header = PduHeader::request(command, 9);
        peer.write_header(header).await;
        let expected = status.map_or(header.nack(0x03), |status| header.response(status));
        assert_eq!(peer.next().await.0, expected);
    }
    let unbind = PduHeader::request(id::UNBIND, 10);
    peer.write_header(unbind).await;
    assert_eq!(peer.next().await.0, unbind.response(0));
    assert!(peer.read().await.is_none());
}

#[tokio::test]
async fn responses_can_be_dropped_and_sessions_disconnected() {
    let smsc = Smsc::start(SmscOptions {
        drop_response_every: 3,
        disconnect_every: 5,
        no_receipts: true,
        ..quick()
    })
    .await;
    let mut harness = Harness::bound(options(smsc.port)).await;
    for token in 1..=4 {
        harness.submit(token, 15_550_000_010).await;
    }
    for token in [1, 2, 4] {
        assert_eq!(harness.accepted().await.0, token);
    }
    harness.submit(5, 15_550_000_010).await;
    for token in [3, 5] {
        assert_eq!(harness.outcome().await, (token, SubmitOutcome::InDoubt));
    }
    harness.unbound().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
}

#[tokio::test]
async fn submits_can_fail_at_random_or_be_throttled() {
    let smsc = Smsc::start(SmscOptions { error_rate: 1.0, ..quick() }).await;
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, ANN).await;
    assert_eq!(peer.expect(id::SUBMIT_SM_RESP).await.0.status, 0x08);
    let smsc = Smsc::start(SmscOptions { throttle: 1, ..quick() }).await;
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSMITTER, "one").await;
    let mut refused = 0;
    for sequence in 2..12 {
        peer.submit(sequence, ANN).await;
        refused += u32::from(peer.expect(id::SUBMIT_SM_RESP).await.0.status == 0x58);
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn response_ids_can_be_hexadecimal() {
    let smsc = Smsc::start(SmscOptions { hex_ids: true, ..quick() }).await;
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, ANN).await;
    let id = u64::from_str_radix(&accepted(&mut peer).await, 16).unwrap();
    let (_, text) = receipt(&mut peer).await;
    assert!(text.starts_with(&format!("id:{id} ")), "{text}");
}

#[tokio::test]
async fn journal_records_submits_and_receipts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let smsc = Smsc::start(SmscOptions { journal: Some(path.clone()), ..quick() }).await;
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, "15550000003").await;
    peer.expect(id::SUBMIT_SM_RESP).await;
    peer.submit(3, ANN).await;
    let smsc_id = accepted(&mut peer).await;
    let (header, _) = receipt(&mut peer).await;
    peer.answer(header, 0, "").await;
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
