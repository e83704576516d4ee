//! Inbound messages: decoded, and acknowledged only after the engine's ack.

use crate::bound_pair::bound_pair;
use crate::harness::LABEL;
use crate::scripted_peer::put_deliver;
use bytes::BytesMut;
use heliograph_carrier::smpp::body::{Address, ShortMessage};
use heliograph_carrier::smpp::command::{esm, id, tag};
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::text::Concat;

const ANN: &str = "447700900123";

/// Returns a message from Ann to our number.
fn from_ann(data_coding: u8, esm_class: u8, text: &[u8]) -> ShortMessage<'_> {
    ShortMessage {
        source: Address { ton: 1, npi: 1, digits: b"+447700900123" },
        destination: Address { ton: 1, npi: 1, digits: b"447700900000" },
        data_coding,
        esm_class,
        text,
        ..ShortMessage::default()
    }
}

fn expected(text: &str, concat: Option<Concat>) -> IncomingSms {
    IncomingSms {
        from: ANN.to_owned(),
        to: "447700900000".to_owned(),
        text: text.to_owned(),
        concat,
        label: None,
    }
}

#[tokio::test]
async fn message_is_acknowledged_only_when_committed() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    for (sequence, committed, status) in [(7, false, 0x64), (8, true, 0)] {
        peer.deliver(sequence, ANN, 0, "STOP").await;
        let (handle, incoming) = harness.message().await;
        assert_eq!((handle.session, handle.sequence), (1, sequence));
        assert_eq!(incoming, IncomingSms { to: "Shop".to_owned(), ..expected("STOP", None) });
        peer.expect_silence().await;
        harness.ack(handle, committed).await;
        let (header, body) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((header.status, header.sequence, body), (status, sequence, vec![0]));
    }
}

#[tokio::test]
async fn texts_are_decoded_by_their_data_coding() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    let place = |reference| Some(Concat { reference, total: 3, sequence: 2 });
    let sar = [
        (tag::SAR_MSG_REF_NUM, &[1, 2][..]),
        (tag::SAR_TOTAL_SEGMENTS, &[3]),
        (tag::SAR_SEGMENT_SEQNUM, &[2]),
    ];
    let long = "Yes please ".repeat(100);
    for (message, optional, expected) in [
        (from_ann(0, 0, b"\x1B\x65 50 \x05"), &[][..], expected("€ 50 é", None)),
        (from_ann(3, 0, b"Gr\xFC\xDFe"), &[], expected("Grüße", None)),
        (from_ann(8, 0, &[0x4F, 0x60, 0x59, 0x7D]), &[], expected("你好", None)),
        (from_ann(8, 0, &[0xD8, 0x3D, 0, 0]), &[], expected("\u{fffd}", None)),
        (from_ann(0, esm::UDH, b"\x05\x00\x03\x09\x03\x02two"), &[], expected("two", place(9))),
        (from_ann(0, 0, b"two"), &sar, expected("two", place(0x0102))),
        (from_ann(3, esm::UDH, b"9two"), &[], expected("9two", None)),
        (from_ann(0, 0, long.as_bytes()), &[], expected(&long, None)),
        // A text that looks like a receipt, without the receipt bit in esm_class.
        (from_ann(0, 0, b"id:1 stat:DELIVRD"), &[], expected("id:1 stat:DELIVRD", None)),
        (from_ann(0, 0, b""), &[], expected("", None)),
    ] {
        peer.deliver_message(3, message, optional).await;
        let (handle, incoming) = harness.message().await;
        assert_eq!(incoming, expected);
        harness.ack(handle, true).await;
        assert_eq!(peer.expect(id::DELIVER_SM_RESP).await.0.status, 0);
    }
    // Empty source and destination addresses.
    peer.deliver_message(3, ShortMessage { text: b"hi", ..ShortMessage::default() }, &[]).await;
    let anonymous = IncomingSms { from: String::new(), to: String::new(), ..expected("hi", None) };
    assert_eq!(harness.message().await.1, anonymous);
}

#[tokio::test]
async fn labels_are_sent_and_read_only_when_enabled() {
    let label = [(tag::LABEL, &0x0102_0304_0506_0708i64.to_be_bytes()[..])];
    for (labelled, sent, read) in
        [(false, None, None), (true, Some(LABEL), Some(0x0102_0304_0506_0708))]
    {
        let (mut harness, mut peer, _listener) = bound_pair(|o| o.labelled = labelled).await;
        harness.submit(1, 447_700_900_123).await;
        let (_, body) = peer.expect(id::SUBMIT_SM).await;
        let submitted = ShortMessage::decode(&body).unwrap();
        let value = submitted.optional.get(tag::LABEL);
        assert_eq!(value.map(|value| i64::from_be_bytes(value.try_into().unwrap())), sent);
        peer.deliver_message(3, from_ann(0, 0, b"hi"), &label).await;
        assert_eq!(harness.message().await.1.label, read);
    }
}

#[tokio::test]
async fn unacknowledged_messages_are_bounded() {
    let (mut harness, mut peer, _listener) = bound_pair(|_| ()).await;
    let mut flood = BytesMut::new();
    for sequence in 1..=4_100 {
        put_deliver(&mut flood, sequence, ANN, 0, "hi");
    }
    peer.write_bytes(&flood).await;
    for sequence in 4_097..=4_100 {
        let (header, _) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((header.status, header.sequence), (0x64, sequence));
    }
    peer.expect_silence().await;
    for sequence in 1..=4_096 {
        let (handle, _) = harness.message().await;
        assert_eq!(handle.sequence, sequence);
    }
}
