//! Virtual handsets reply, and each reply finds the client that it is for.

use crate::peer::Peer;
use crate::rig::{LABEL, Rig, Smsc, options, parts, submission};
use heliograph_carrier::smpp::body::ShortMessage;
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::options::SmppOptions;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_carrier::smsc::simulator::ReplyError;
use heliograph_domain::inbound::Incoming;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Concat;
use std::time::Duration;

const ANN: Recipient = Recipient(447_700_900_123);
const SHOP: &str = "447700900000";

/// No receipts to look past.
fn quiet() -> SmscOptions {
    SmscOptions { no_receipts: true, receipt_delay: Duration::ZERO, ..SmscOptions::default() }
}

/// Ann has got a message from the shop's number, with this label.
async fn write(rig: &mut Rig, label: i64) {
    let mut part = submission(1, ANN.0);
    part.originator = SHOP.parse().unwrap();
    part.label = label;
    rig.submissions.send(part).await.unwrap();
    rig.accepted().await;
}

fn from_ann(text: &str, label: Option<i64>) -> Incoming {
    Incoming {
        from: ANN.to_string(),
        to: SHOP.to_owned(),
        text: text.to_owned(),
        concat: None,
        label,
    }
}

#[tokio::test]
async fn a_reply_arrives_as_it_was_written() {
    let smsc = Smsc::start(quiet()).await;
    let mut rig = Rig::bound(options(smsc.port)).await;
    write(&mut rig, LABEL).await;
    for text in ["Yes {please}", "Да, 你好 😀", "", "é€"] {
        smsc.simulator.reply(ANN, SHOP, text, None).unwrap();
        let (handle, incoming) = rig.message().await;
        assert_eq!(incoming, from_ann(text, None));
        rig.ack(handle, true).await;
    }
    let long = "I'd like three of these, please. ".repeat(13);
    smsc.simulator.reply(ANN, SHOP, &long, None).unwrap();
    let mut whole = String::new();
    let mut reference = None;
    for sequence in 1..=3 {
        let (handle, incoming) = rig.message().await;
        let concat = incoming.concat.unwrap();
        let reference = *reference.get_or_insert(concat.reference);
        assert_eq!(concat, Concat { reference, total: 3, sequence });
        whole.push_str(&incoming.text);
        rig.ack(handle, true).await;
    }
    assert_eq!(whole, long);
}

#[tokio::test]
async fn a_label_comes_back_where_it_was_agreed() {
    let smsc = Smsc::start(quiet()).await;
    let labelled = SmppOptions { labelled: true, ..options(smsc.port) };
    let mut rig = Rig::bound(labelled).await;
    for label in [5, -6] {
        write(&mut rig, label).await;
    }
    for (named, expected) in [(None, -6), (Some(5), 5), (Some(7), 7)] {
        smsc.simulator.reply(ANN, SHOP, "Yes", named).unwrap();
        assert_eq!(rig.message().await.1, from_ann("Yes", Some(expected)));
    }
}

#[tokio::test]
async fn a_reply_that_was_not_committed_comes_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let smsc = Smsc::start(SmscOptions { journal: Some(path.clone()), ..quiet() }).await;
    let mut rig = Rig::bound(options(smsc.port)).await;
    write(&mut rig, LABEL).await;
    smsc.simulator.reply(ANN, SHOP, "Yes", None).unwrap();
    for committed in [false, true] {
        let (handle, incoming) = rig.message().await;
        assert_eq!(incoming, from_ann("Yes", None));
        rig.ack(handle, committed).await;
    }
    rig.say_stop();
    assert_eq!(rig.ended().await.len(), 1, "nothing but the unbind");
    smsc.stop().await;
    let journal = std::fs::read_to_string(path).unwrap();
    let last = format!(
        r#"{{"at":1795165200000,"event":"replied","destination":"{SHOP}","source":"{ANN}","text":"Yes","part":1,"parts":1,"id":null,"status":0}}"#
    );
    assert_eq!(journal.lines().skip(1).collect::<Vec<_>>(), [last]);
}

#[tokio::test]
async fn a_reply_without_an_answer_is_left_to_the_next_session() {
    let smsc = Smsc::start(quiet()).await;
    let mut peer = Peer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, "447700900123").await;
    peer.expect(id::SUBMIT_SM_RESP).await;
    smsc.simulator.reply(ANN, "Shop", "Yes", None).unwrap();
    peer.expect(id::DELIVER_SM).await;
    drop(peer);
    let mut peer = Peer::client(smsc.port, id::BIND_RECEIVER, "one").await;
    let (_, body) = peer.expect(id::DELIVER_SM).await;
    let message = ShortMessage::decode(&body).unwrap();
    assert_eq!((message.esm_class & esm::TYPE, message.text), (0, &b"Yes"[..]));
    // An alphanumeric originator stays one.
    let to = message.destination;
    assert_eq!((to.ton, to.npi, to.digits), (5, 0, &b"Shop"[..]));
}

#[tokio::test]
async fn a_reply_goes_to_the_client_that_wrote_or_else_to_any() {
    let smsc = Smsc::start(quiet()).await;
    let reply = |to| smsc.simulator.reply(ANN, to, "Yes", None);
    assert_eq!(reply(SHOP), Err(ReplyError::Nobody));
    let mut one = Peer::client(smsc.port, id::BIND_TRANSMITTER, "one").await;
    assert_eq!(reply(SHOP), Err(ReplyError::Nobody));
    let mut two = Peer::client(smsc.port, id::BIND_RECEIVER, "two").await;
    reply(SHOP).unwrap();
    let (_, body) = two.expect(id::DELIVER_SM).await;
    let to = ShortMessage::decode(&body).unwrap().destination;
    assert_eq!((to.ton, to.npi, to.digits), (1, 1, SHOP.as_bytes()));
    // From now on Ann knows the shop, which is not the other client's.
    one.submit(2, "447700900123").await;
    one.expect(id::SUBMIT_SM_RESP).await;
    assert_eq!(reply("Shop"), Err(ReplyError::Nobody));
    let mut back = Peer::client(smsc.port, id::BIND_RECEIVER, "one").await;
    reply("Shop").unwrap();
    back.expect(id::DELIVER_SM).await;
    two.expect_silence().await;
    assert!(matches!(reply("?"), Err(ReplyError::To(_))));
    let long = "x".repeat(255 * 153 + 1);
    assert_eq!(smsc.simulator.reply(ANN, "Shop", &long, None), Err(ReplyError::TooLong));
}

#[tokio::test]
async fn some_numbers_answer_stop_to_each_message() {
    let smsc = SmscOptions { keep_messages: 0, receipt_delay: Duration::ZERO, ..quiet() };
    let smsc = Smsc::start(SmscOptions { no_receipts: false, ..smsc }).await;
    let labelled = SmppOptions { labelled: true, ..options(smsc.port) };
    let mut rig = Rig::bound(labelled).await;
    for text in ["Hello", &"A long text, ".repeat(20)] {
        for part in parts(1, 15_550_000_009, text) {
            rig.submissions.send(part).await.unwrap();
            rig.accepted().await;
            let (handle, _) = rig.receipt().await;
            rig.ack(handle, true).await;
        }
        let (handle, incoming) = rig.message().await;
        let expected = Incoming {
            from: "15550000009".to_owned(),
            to: "Shop".to_owned(),
            ..from_ann("STOP", Some(LABEL))
        };
        assert_eq!(incoming, expected);
        rig.ack(handle, true).await;
    }
    rig.say_stop();
    assert_eq!(rig.ended().await.len(), 1, "nothing but the unbind");
}
