//! What people send: handed over as text, and acknowledged when the engine says so.

use crate::pair::pair;
use crate::peer::put_deliver;
use crate::rig::LABEL;
use bytes::BytesMut;
use heliograph_carrier::smpp::body::{Address, ShortMessage};
use heliograph_carrier::smpp::command::{esm, id, tag};
use heliograph_domain::inbound::Incoming;
use heliograph_domain::text::Concat;

const ANN: &str = "447700900123";

/// From Ann to our number.
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

fn expected(text: &str, concat: Option<Concat>) -> Incoming {
    Incoming {
        from: ANN.to_owned(),
        to: "447700900000".to_owned(),
        text: text.to_owned(),
        concat,
        label: None,
    }
}

#[tokio::test]
async fn a_message_is_acknowledged_only_when_it_is_committed() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    for (sequence, committed, status) in [(7, false, 0x64), (8, true, 0)] {
        peer.deliver(sequence, ANN, 0, "STOP").await;
        let (handle, incoming) = rig.message().await;
        assert_eq!((handle.session, handle.sequence), (1, sequence));
        assert_eq!(incoming, Incoming { to: "Shop".to_owned(), ..expected("STOP", None) });
        peer.expect_silence().await;
        rig.ack(handle, committed).await;
        let (head, body) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((head.status, head.sequence, body), (status, sequence, vec![0]));
    }
}

#[tokio::test]
async fn texts_are_decoded_by_their_data_coding() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
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
        // What looks like a receipt, but does not say that it is one.
        (from_ann(0, 0, b"id:1 stat:DELIVRD"), &[], expected("id:1 stat:DELIVRD", None)),
        (from_ann(0, 0, b""), &[], expected("", None)),
    ] {
        peer.incoming(3, message, optional).await;
        let (handle, incoming) = rig.message().await;
        assert_eq!(incoming, expected);
        rig.ack(handle, true).await;
        assert_eq!(peer.expect(id::DELIVER_SM_RESP).await.0.status, 0);
    }
    // From nobody, to nobody.
    peer.incoming(3, ShortMessage { text: b"hi", ..ShortMessage::default() }, &[]).await;
    let nobody = Incoming { from: String::new(), to: String::new(), ..expected("hi", None) };
    assert_eq!(rig.message().await.1, nobody);
}

#[tokio::test]
async fn a_label_is_neither_sent_nor_read_unless_it_was_agreed() {
    let label = [(tag::LABEL, &0x0102_0304_0506_0708i64.to_be_bytes()[..])];
    for (labelled, sent, read) in
        [(false, None, None), (true, Some(LABEL), Some(0x0102_0304_0506_0708))]
    {
        let (mut rig, mut peer, _door) = pair(|o| o.labelled = labelled).await;
        rig.submit(1, 447_700_900_123).await;
        let (_, body) = peer.expect(id::SUBMIT_SM).await;
        let submitted = ShortMessage::decode(&body).unwrap();
        let value = submitted.optional.get(tag::LABEL);
        assert_eq!(value.map(|value| i64::from_be_bytes(value.try_into().unwrap())), sent);
        peer.incoming(3, from_ann(0, 0, b"hi"), &label).await;
        assert_eq!(rig.message().await.1.label, read);
    }
}

#[tokio::test]
async fn a_flood_of_messages_is_bounded() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    let mut flood = BytesMut::new();
    for sequence in 1..=4_100 {
        put_deliver(&mut flood, sequence, ANN, 0, "hi");
    }
    peer.raw(&flood).await;
    for sequence in 4_097..=4_100 {
        let (head, _) = peer.expect(id::DELIVER_SM_RESP).await;
        assert_eq!((head.status, head.sequence), (0x64, sequence));
    }
    peer.expect_silence().await;
    for sequence in 1..=4_096 {
        let (handle, _) = rig.message().await;
        assert_eq!(handle.sequence, sequence);
    }
}
