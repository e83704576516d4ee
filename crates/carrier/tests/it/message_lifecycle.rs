//! The lifecycle of a message without faults: submitted, accepted, delivered, acknowledged.

use crate::harness::{Harness, Smsc, options, parts};
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::ReceiptOutcome;
use std::time::Duration;

const ANN: u64 = 447_700_900_123;

#[tokio::test]
async fn message_is_accepted_and_delivered() {
    let smsc = SmscOptions { receipt_delay: Duration::ZERO, ..SmscOptions::default() };
    let handsets = smsc.handsets.clone();
    let smsc = Smsc::start(smsc).await;
    let mut harness = Harness::bound(options(smsc.port)).await;
    harness.submit(1, ANN).await;
    let (token, id) = harness.accepted().await;
    let (handle, receipt) = harness.receipt().await;
    assert_eq!(token, 1);
    assert_eq!((receipt.smsc_id, receipt.recipient), (id, Recipient(ANN)));
    assert_eq!(receipt.outcome, ReceiptOutcome::Delivered);
    harness.ack(handle, true).await;
    let received = handsets.messages(Recipient(ANN));
    assert_eq!(received.len(), 1);
    let message = &received[0];
    assert_eq!((message.from.as_str(), message.text.as_str()), ("Shop", "Hello from the test"));
    harness.request_stop();
    harness.join().await;
    smsc.stop().await;
}

#[tokio::test]
async fn handset_joins_the_parts_of_a_message() {
    let options_ = SmscOptions { no_receipts: true, ..SmscOptions::default() };
    let handsets = options_.handsets.clone();
    let smsc = Smsc::start(options_).await;
    let mut harness = Harness::bound(options(smsc.port)).await;
    for text in ["{long} ".repeat(60), "Ünïcödé 😀 ".repeat(30)] {
        for part in parts(1, ANN, &text) {
            harness.submissions.send(part).await.unwrap();
            harness.accepted().await;
        }
        assert_eq!(handsets.messages(Recipient(ANN)).pop().unwrap().text, text);
    }
}
