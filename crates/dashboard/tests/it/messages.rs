//! The list of messages, and one message.

use crate::support::site::Site;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::money::Amount;
use heliograph_domain::submission::SubmitOutcome;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_listed_and_filtered() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    assert_snapshot!(ann.get("/messages").await.main(), @"
    200
    Messages
    Outbound messages, newest first. Updates live.
    Send message
    Search
    []
    Status []
    Period []
    (Filter)
    More filters
    Sent after (UTC) []
    Sent before (UTC) []
    No messages yet
    Send a message from here or through the API. It appears as soon as it is accepted.
    Create an API key
    ");
    ann.go_live(Amount(1_000)).await;
    ann.send_text("+447700900123", "Your order is on its way").await;
    ann.send_text("+6598234567", "Your code is 4711").await;
    assert_snapshot!(ann.get("/messages").await.part("id=\"log\""), @"
    200
    To | Text | Status | From | Segments | Price | Accepted
    +6598234567 | Your code is 4711 | Queued | Shop | 1 | 0.0001 EUR | DATE
    +447700900123 | Your order is on its way | Queued | Shop | 1 | 0.0001 EUR | DATE
    ");
    for search in ["%2B65+9823+4567", "9823", "CODE+IS", "shop"] {
        let found = ann.get(&format!("/messages?q={search}&period=24h")).await;
        assert!(found.part("id=\"log\"").contains("Your code is 4711"), "{search}");
    }
    let found = ann.get("/messages?status=QUEUED&q=4567").await;
    assert_snapshot!(found.part("id=\"log\""), @"
    200
    To | Text | Status | From | Segments | Price | Accepted
    +6598234567 | Your code is 4711 | Queued | Shop | 1 | 0.0001 EUR | DATE
    ");
    let none = ann.get("/messages?status=FAILED").await;
    assert_snapshot!(none.part("id=\"log\""), @"
    200
    No messages match
    Try another search, or remove a filter.
    Clear filters
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_filters_are_at_their_fields() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let wrong = "/messages?q=0770&status=LOST&from=yesterday&to=2026-02-30T00:00";
    assert_snapshot!(ann.get(wrong).await.part("aria-label=\"Messages\""), @"
    422
    Search
    [0770]
    Status []
    ✗ Select one of the statuses.
    Period []
    (Filter)
    Clear
    More filters
    Sent after (UTC) [yesterday]
    ✗ Enter a date and time, such as 2026-11-20T09:00.
    Sent before (UTC) [2026-02-30T00:00]
    ✗ Enter a date and time, such as 2026-11-20T09:00.
    Fix the filters above
    One or more filters are invalid.
    Clear filters
    ");
    let empty = ann.get("/messages?from=2026-11-20T09:00&to=2026-11-20T09:00").await;
    assert_snapshot!(empty.error("to"), @"422 ✗ Must be later than “Sent after”.");
    assert_snapshot!(ann.get("/messages?before=x").await.head(), @"404");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_message_is_cancelled() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.go_live(Amount(1_000)).await;
    let here = ann.send_text("+447700900123", "Your order is on its way").await;
    let page = ann.get(&here).await;
    assert_snapshot!(page.main(), @"
    200
    Messages
    To +447700900123
    Queued Live From Shop, DATE
    Send again
    Cancel message
    Cancel message?
    The message has not been sent yet.
    ()
    (Cancel message)
    Text
    24 characters, 1 segment
    Your order is on its way
    Details
    ()
    ID | …
    Reference | None
    Encoding | GSM-7
    Price | 0.0001 EUR
    Charged | 0.0000 EUR
    Sent by | ann@example.com (dashboard)
    Expires | DATE
    Timeline
    Accepted TIME
    Waiting to be sent
    ");
    let cancel = format!("{here}/cancel");
    assert_snapshot!(ann.post(&cancel, &[]).await.head(), @"403");
    let cancelled = ann.send(&page, &cancel, &[]).await;
    assert_snapshot!(cancelled.head(), @"303 /messages/…?done=cancelled");
    let cancelled = ann.follow(&cancelled).await;
    assert_snapshot!(
        cancelled.notice(),
        @"200 Message cancelled. It will not be sent, and the reserved amount was released."
    );
    assert_snapshot!(cancelled.section("timeline"), @"
    200
    Timeline
    Accepted TIME
    Cancelled TIME
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivered_message_cannot_be_cancelled() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.go_live(Amount(1_000)).await;
    let here = ann.send_text("+447700900123", "Your order is on its way").await;
    let before = ann.get(&here).await;
    site.deliver(Mode::Live).await;
    let late = ann.send(&before, &format!("{here}/cancel"), &[]).await;
    assert_snapshot!(
        late.notice(),
        @"409 ✗ This message can no longer be cancelled. The message was delivered."
    );
    assert_snapshot!(late.section("timeline"), @"
    409
    Timeline
    Accepted TIME
    Sent to carrier TIME
    Delivered TIME
    ");
    assert_snapshot!(late.section("facts"), @"
    409
    Details
    ()
    ID | …
    Reference | None
    Encoding | GSM-7
    Price | 0.0001 EUR
    Charged | 0.0001 EUR
    Sent by | ann@example.com (dashboard)
    Expires | DATE
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_message_has_a_reason_and_advice() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.go_live(Amount(1_000)).await;
    let here = ann.send_text("+447700900123", "Your order is on its way").await;
    let carrier_code = Some("0x0000000B".to_owned());
    let failure = Failure { code: FailureCode::InvalidRecipient, carrier_code };
    site.submit(Mode::Live, &SubmitOutcome::Refused(failure)).await;
    let page = ann.get(&here).await;
    assert_snapshot!(page.part("notice-bad"), @"
    200
    ✗ The carrier reports that this number does not exist.
    Check the number for typos. If it is correct, remove it from your lists. Carrier code: 0x0000000B.
    ");
    assert_snapshot!(page.section("timeline"), @"
    200
    Timeline
    Accepted TIME
    Failed TIME
    The carrier reports that this number does not exist.
    ");
    assert_snapshot!(ann.get("/messages").await.part("id=\"log\""), @"
    200
    To | Text | Status | From | Segments | Price | Accepted
    +447700900123 | Your order is on its way The carrier reports that this number does not exist. | Failed | Shop | 1 | 0.0000 EUR | DATE
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_sees_a_message_but_cannot_cancel_it() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let phone = ann.send_text("+447700900123", "It’s on its way, Ann").await;
    assert_eq!(phone, "/phone/447700900123");
    let here = ann.get("/messages").await.link("+447700900123");
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    let page = vic.get(&here).await;
    assert_snapshot!(page.section("facts"), @"
    200
    Details
    ()
    ID | …
    Reference | None
    Encoding | Unicode (UCS-2), because of ’
    Price | Free (test mode)
    Sent by | ann@example.com (dashboard)
    Expires | DATE
    ");
    assert!(!page.has("/cancel"));
    assert_snapshot!(vic.submit(&format!("{here}/cancel"), &[]).await.head(), @"403");
    vic.go_live(Amount::ZERO).await;
    assert_snapshot!(vic.get(&here).await.head(), @"303 /messages/…?mode=test");
    assert_snapshot!(vic.get("/messages/x").await.head(), @"404");
}
