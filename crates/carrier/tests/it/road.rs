//! The ordinary road: submitted, accepted, delivered, acknowledged.

use crate::rig::{Rig, Smsc, options, parts};
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::Verdict;
use std::time::Duration;

const ANN: u64 = 447_700_900_123;

#[tokio::test]
async fn a_message_is_accepted_and_delivered() {
    let smsc = SmscOptions { receipt_delay: Duration::ZERO, ..SmscOptions::default() };
    let handsets = smsc.handsets.clone();
    let smsc = Smsc::start(smsc).await;
    let mut rig = Rig::bound(options(smsc.port)).await;
    rig.submit(1, ANN).await;
    let (token, id) = rig.accepted().await;
    let (handle, receipt) = rig.receipt().await;
    assert_eq!(token, 1);
    assert_eq!((receipt.smsc_id, receipt.recipient), (id, Recipient(ANN)));
    assert_eq!(receipt.verdict, Verdict::Delivered);
    rig.ack(handle, true).await;
    let shown = handsets.messages(Recipient(ANN));
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].from.as_str(), shown[0].text.as_str()), ("Shop", "Hello from the test"));
    rig.say_stop();
    rig.ended().await;
    smsc.stop().await;
}

#[tokio::test]
async fn the_parts_of_a_message_meet_on_the_handset() {
    let options_ = SmscOptions { no_receipts: true, ..SmscOptions::default() };
    let handsets = options_.handsets.clone();
    let smsc = Smsc::start(options_).await;
    let mut rig = Rig::bound(options(smsc.port)).await;
    for text in ["{long} ".repeat(60), "Ünïcödé 😀 ".repeat(30)] {
        for part in parts(1, ANN, &text) {
            rig.submissions.send(part).await.unwrap();
            rig.accepted().await;
        }
        assert_eq!(handsets.messages(Recipient(ANN)).pop().unwrap().text, text);
    }
}
