//! The overview.

use crate::support::site::Site;
use heliograph_domain::account::Mode;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::money::Amount;
use heliograph_domain::submission::SubmitOutcome;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_account_has_first_steps() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    assert_snapshot!(ann.get("/overview").await.main(), @"
    200
    Overview
    24 hours 7 days 30 days 90 days
    Get started
    0 of 3
    Create an API key
    Your app uses it to authenticate. Test keys are free to use.
    Create key
    Send a message
    Use the API, or send one from the Phone page.
    Open Phone page
    Set up a webhook
    Receive delivery receipts and replies on your server.
    Add endpoint
    No messages in this period
    Delivery rates, delivery times and failures appear here once you send messages.
    Send a test message
    ");
    let keys = "/settings/api-keys";
    ann.fill(keys, keys, &[("name", "Shop")]).await;
    ann.go_live(Amount::ZERO).await;
    assert_snapshot!(ann.get("/overview").await.section("first"), @"
    200
    Get started
    1 of 3
    Create an API key : done
    Your app uses it to authenticate. Test keys are free to use.
    Send a message
    Use the API, or send one from the dashboard.
    Send message
    Set up a webhook
    Receive delivery receipts and replies on your server.
    Add endpoint
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_counted() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.go_live(Amount(1_000)).await;
    ann.send_text("+447700900123", "Your order is on its way").await;
    site.deliver(Mode::Live).await;
    ann.send_text("+447700900124", "Your order is on its way").await;
    let failure = Failure { code: FailureCode::InvalidRecipient, carrier_code: None };
    site.submit(Mode::Live, &SubmitOutcome::Refused(failure)).await;
    let page = ann.get("/overview?range=7d").await;
    assert_snapshot!(page.part("<dl"), @"
    200
    Accepted | 2 | 0.0001 EUR spent
    Delivery rate | 50.0% | of completed messages
    Median delivery time | 5 ms | from accepted to delivered
    Received | 0 | 0 opted out
    ");
    assert_snapshot!(page.section("failures"), @"
    200
    Failure reasons
    View failed messages
    The carrier reports that this number does not exist 1
    ");
    let ranges = page.part("aria-label=\"Period\"");
    assert_eq!(ann.get("/overview?range=century").await.part("aria-label=\"Period\""), ranges);
}
