//! Replies from virtual handsets, and their routes to clients.

use crate::harness::{Harness, LABEL, Smsc, options, parts, submission};
use crate::scripted_peer::ScriptedPeer;
use heliograph_carrier::smpp::body::ShortMessage;
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::options::SmppOptions;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_carrier::smsc::simulator::ReplyError;
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Concat;
use std::time::Duration;

const ANN: Recipient = Recipient(447_700_900_123);
const SHOP: &str = "447700900000";

/// Returns options without receipts.
fn quiet() -> SmscOptions {
    SmscOptions { no_receipts: true, receipt_delay: Duration::ZERO, ..SmscOptions::default() }
}

/// Sends Ann a message from the shop's number with this label.
async fn send_to_ann(harness: &mut Harness, label: i64) {
    let mut part = submission(1, ANN.0);
    part.originator = SHOP.parse().unwrap();
    part.label = label;
    harness.submissions.send(part).await.unwrap();
    harness.accepted().await;
}

fn from_ann(text: &str, label: Option<i64>) -> IncomingSms {
    IncomingSms {
        from: ANN.to_string(),
        to: SHOP.to_owned(),
        text: text.to_owned(),
        concat: None,
        label,
    }
}

#[tokio::test]
async fn reply_arrives_unchanged() {
    let smsc = Smsc::start(quiet()).await;
    let mut harness = Harness::bound(options(smsc.port)).await;
    send_to_ann(&mut harness, LABEL).await;
    for text in ["Yes {please}", "Да, 你好 😀", "", "é€"] {
        smsc.simulator.reply(ANN, SHOP, text, None).unwrap();
        let (handle, incoming) = harness.message().await;
        assert_eq!(incoming, from_ann(text, None));
        harness.ack(handle, true).await;
    }
    let long = "I'd like three of these, please. ".repeat(13);
    smsc.simulator.reply(ANN, SHOP, &long, None).unwrap();
    let mut complete = String::new();
    let mut reference = None;
    for sequence in 1..=3 {
        let (handle, incoming) = harness.message().await;
        let concat = incoming.concat.unwrap();
        let reference = *reference.get_or_insert(concat.reference);
        assert_eq!(concat, Concat { reference, total: 3, sequence });
        complete.push_str(&incoming.text);
        harness.ack(handle, true).await;
    }
    assert_eq!(complete, long);
}

#[tokio::test]
async fn replies_carry_labels_when_enabled() {
    let smsc = Smsc::start(quiet()).await;
    let labelled = SmppOptions { labelled: true, ..options(smsc.port) };
    let mut harness = Harness::bound(labelled).await;
    for label in [5, -6] {
        send_to_ann(&mut harness, label).await;
    }
    for (label, expected) in [(None, -6), (Some(5), 5), (Some(7), 7)] {
        smsc.simulator.reply(ANN, SHOP, "Yes", label).unwrap();
        assert_eq!(harness.message().await.1, from_ann("Yes", Some(expected)));
    }
}

#[tokio::test]
async fn reply_that_is_not_committed_is_redelivered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let smsc = Smsc::start(SmscOptions { journal: Some(path.clone()), ..quiet() }).await;
    let mut harness = Harness::bound(options(smsc.port)).await;
    send_to_ann(&mut harness, LABEL).await;
    smsc.simulator.reply(ANN, SHOP, "Yes", None).unwrap();
    for committed in [false, true] {
        let (handle, incoming) = harness.message().await;
        assert_eq!(incoming, from_ann("Yes", None));
        harness.ack(handle, committed).await;
    }
    harness.request_stop();
    assert_eq!(harness.join().await.len(), 1, "nothing but the unbind");
    smsc.stop().await;
    let journal = std::fs::read_to_string(path).unwrap();
    let last = format!(
        r#"{{"at":1795165200000,"event":"replied","destination":"{SHOP}","source":"{ANN}","text":"Yes","part":1,"parts":1,"id":null,"status":0}}"#
    );
    assert_eq!(journal.lines().skip(1).collect::<Vec<_>>(), [last]);
}

#[tokio::test]
async fn unacknowledged_reply_goes_to_the_next_session() {
    let smsc = Smsc::start(quiet()).await;
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_TRANSCEIVER, "one").await;
    peer.submit(2, "447700900123").await;
    peer.expect(id::SUBMIT_SM_RESP).await;
    smsc.simulator.reply(ANN, "Shop", "Yes", None).unwrap();
    peer.expect(id::DELIVER_SM).await;
    drop(peer);
    let mut peer = ScriptedPeer::client(smsc.port, id::BIND_RECEIVER, "one").await;
    let (_, body) = peer.expect(id::DELIVER_SM).await;
    let message = ShortMessage::decode(&body).unwrap();
    assert_eq!((message.esm_class & esm::TYPE, message.text), (0, &b"Yes"[..]));
    // An alphanumeric originator keeps its type of number.
    let to = message.destination;
    assert_eq!((to.ton, to.npi, to.digits), (5, 0, &b"Shop"[..]));
}

#[tokio::test]
async fn reply_goes_to_the_client_that_sent_the_message_or_else_to_any() {
    let smsc = Smsc::start(quiet()).await;
    let reply = |to| smsc.simulator.reply(ANN, to, "Yes", None);
    assert_eq!(reply(SHOP), Err(ReplyError::NoReceiver));
    let mut one = ScriptedPeer::client(smsc.port, id::BIND_TRANSMITTER, "one").await;
    assert_eq!(reply(SHOP), Err(ReplyError::NoReceiver));
    let mut two = ScriptedPeer::client(smsc.port, id::BIND_RECEIVER, "two").await;
    reply(SHOP).unwrap();
    let (_, body) = two.expect(id::DELIVER_SM).await;
    let to = ShortMessage::decode(&body).unwrap().destination;
    assert_eq!((to.ton, to.npi, to.digits), (1, 1, SHOP.as_bytes()));
    // From now on the shop belongs to the first client, even while another one is bound.
    one.submit(2, "447700900123").await;
    one.expect(id::SUBMIT_SM_RESP).await;
    assert_eq!(reply("Shop"), Err(ReplyError::NoReceiver));
    let mut back = ScriptedPeer::client(smsc.port, id::BIND_RECEIVER, "one").await;
    reply("Shop").unwrap();
    back.expect(id::DELIVER_SM).await;
    two.expect_silence().await;
    assert!(matches!(reply("?"), Err(ReplyError::InvalidOriginator(_))));
    let long = "x".repeat(255 * 153 + 1);
    assert_eq!(smsc.simulator.reply(ANN, "Shop", &long, None), Err(ReplyError::TooLong));
}

#[tokio::test]
async fn number_ending_in_0009_replies_stop_to_each_message() {
    let smsc = SmscOptions { keep_messages: 0, receipt_delay: Duration::ZERO, ..quiet() };
    let smsc = Smsc::start(SmscOptions { no_receipts: false, ..smsc }).await;
    let labelled = SmppOptions { labelled: true, ..options(smsc.port) };
    let mut harness = Harness::bound(labelled).await;
    for text in ["Hello", &"A long text, ".repeat(20)] {
        for part in parts(1, 15_550_000_009, text) {
            harness.submissions.send(part).await.unwrap();
            harness.accepted().await;
            let (handle, _) = harness.receipt().await;
            harness.ack(handle, true).await;
        }
        let (handle, incoming) = harness.message().await;
        let expected = IncomingSms {
            from: "15550000009".to_owned(),
            to: "Shop".to_owned(),
            ..from_ann("STOP", Some(LABEL))
        };
        assert_eq!(incoming, expected);
        harness.ack(handle, true).await;
    }
    harness.request_stop();
    assert_eq!(harness.join().await.len(), 1, "nothing but the unbind");
}
