//! Webhook endpoints: adding, testing and changing them.

use crate::support::client::Client;
use crate::support::page::Page;
use crate::support::site::Site;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::money::Amount;
use insta::assert_snapshot;

const HOOKS: &str = "/settings/webhooks";

/// Adds an endpoint; returns the path of its page.
async fn add(client: &Client<'_>) -> String {
    let added = client.fill(HOOKS, HOOKS, &[("url", "https://example.com/hook")]).await;
    added.header("location").split('?').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_is_added_once() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(HOOKS).await;
    assert_snapshot!(page.main(), @"
    200
    Webhooks
    Receive delivery receipts and replies as HTTP POST requests to your server. Requests are signed and retried for three days.
    Add endpoint
    Add webhook endpoint
    ()
    URL []
    An HTTPS URL on the public internet.
    Events to send
    [x] Delivered / Message delivered to the handset
    [x] Failed / Message failed
    [x] Received / Inbound message received
    (Add endpoint)
    Endpoints Test
    0
    No endpoints yet
    Add the URL of your server, then send a test event to see the request and the response.
    How to verify signatures
    ");
    let typed = [("url", "https://example.com/hook"), ("kind", "message.failed")];
    let added = ann.send(&page, HOOKS, &typed).await;
    assert_snapshot!(added.head(), @"303 /settings/webhooks/1?done=added");
    assert_eq!(ann.send(&page, HOOKS, &typed).await.header("location"), added.header("location"));
    assert_snapshot!(ann.follow(&added).await.main(), @"
    200
    Endpoint added. Send a test event to check that it works.
    Webhooks
    https://example.com/hook
    Enabled Test Added DATE
    (Disable)
    Test delivery
    Event type [message.delivered]
    (Send test event)
    Waiting for the endpoint to respond. This takes up to 15 seconds.
    Deliveries
    All Failed Pending
    Replay failed
    Replay failed events?
    Sends all failed events of the last three days again.
    ()
    (Replay)
    No deliveries yet
    Events sent to this endpoint appear here.
    Signing secret
    Use this secret to verify that requests come from Heliograph. How to verify signatures
    (Reveal secret)
    Rotate secret
    Rotate secret?
    The old secret stays valid for 24 hours.
    ()
    (Rotate secret)
    Settings
    URL [https://example.com/hook]
    Events to send
    [ ] Delivered
    [x] Failed
    [ ] Received
    (Save changes)
    Pending events are sent to the new URL.
    Remove endpoint
    Pending events are discarded.
    Remove endpoint
    Remove endpoint?
    This endpoint will not receive any more events.
    ()
    (Remove endpoint)
    ");
    assert_snapshot!(ann.get(HOOKS).await.section("endpoints"), @"
    200
    Endpoints Test
    1
    https://example.com/hook Enabled
    message.failed
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_a_new_endpoint_are_at_their_fields() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(HOOKS).await;
    let typed = [("url", "https://inside.example.com/hook"), ("kind", "message.failed")];
    assert_snapshot!(ann.send(&page, HOOKS, &typed).await.part("action=\"/settings/webhooks\""), @"
    422
    URL [https://inside.example.com/hook]
    ✗ 10.0.0.1 is not a public address: webhooks can reach a private address only if [webhooks] allow_private includes it.
    Events to send
    [ ] Delivered / Message delivered to the handset
    [x] Failed / Message failed
    [ ] Received / Inbound message received
    (Add endpoint)
    ");
    let typed = [("url", ""), ("kind", "")];
    assert_snapshot!(ann.send(&page, HOOKS, &typed).await.part("action=\"/settings/webhooks\""), @"
    422
    URL []
    ✗ Enter the URL of your server, starting with https://.
    Events to send
    [ ] Delivered / Message delivered to the handset
    [ ] Failed / Message failed
    [ ] Received / Inbound message received
    ✗ Select at least one event type.
    (Add endpoint)
    ");
    let error = async |url| ann.send(&page, HOOKS, &[("url", url)]).await.error("url");
    assert_snapshot!(
        error("example.com").await,
        @"422 ✗ Invalid URL: it does not begin with https:// (example: https://example.com/webhooks)."
    );
    assert_snapshot!(
        error("http://example.com/").await,
        @"422 ✗ Plain http:// to 93.184.216.34 is not allowed: use https://, or add the network to [webhooks] allow_private."
    );
    assert_snapshot!(
        error("https://nowhere.example.com/").await,
        @"422 ✗ The host nowhere.example.com can't be resolved: entity not found."
    );
    assert_snapshot!(ann.post(HOOKS, &typed).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_is_changed_and_removed() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let here = add(&ann).await;
    let page = ann.get(&here).await;
    let none = ann.send(&page, &here, &[("kind", "")]).await;
    assert_snapshot!(none.section("settings"), @"
    422
    Settings
    URL [https://example.com/hook]
    Events to send
    [ ] Delivered
    [ ] Failed
    [ ] Received
    ✗ Select at least one event type.
    (Save changes)
    Pending events are sent to the new URL.
    ");
    let private = [("url", "https://inside.example.com/hook")];
    assert_snapshot!(
        ann.send(&page, &here, &private).await.error("url"),
        @"422 ✗ 10.0.0.1 is not a public address: webhooks can reach a private address only if [webhooks] allow_private includes it."
    );
    let moved = ann.send(&page, &here, &[("url", "https://example.com/moved")]).await;
    assert_snapshot!(ann.follow(&moved).await.part("<h1"), @"
    200
    https://example.com/moved
    ");
    ann.send(&page, &here, &[("url", "https://example.com/hook")]).await;
    let changed = ann.send(&page, &here, &[("kind", "message.received")]).await;
    let changed = ann.follow(&changed).await;
    assert_snapshot!(changed.notice(), @"200 Changes saved. They apply to new events.");
    assert_snapshot!(changed.section("settings"), @"
    200
    Settings
    URL [https://example.com/hook]
    Events to send
    [ ] Delivered
    [ ] Failed
    [x] Received
    (Save changes)
    Pending events are sent to the new URL.
    ");

    let secret = format!("{here}/secret#signing");
    let revealed = ann.send(&page, &secret, &[]).await;
    assert!(revealed.content("whsec").starts_with("whsec_"));
    let rotate = format!("{here}/rotate");
    let rotated = ann.send(&page, &rotate, &[]).await;
    assert_snapshot!(
        ann.follow(&rotated).await.notice(),
        @"200 Signing secret rotated. Update your server within 24 hours; until then, both secrets are valid."
    );
    assert_snapshot!(ann.get(&here).await.section("secret"), @"
    200
    Signing secret
    Use this secret to verify that requests come from Heliograph. How to verify signatures
    (Reveal secret)
    The previous secret stays valid until DATE.
    Rotate secret
    Rotate secret?
    The old secret stays valid for 24 hours.
    ()
    (Rotate secret)
    ");

    let disabled = ann.send(&page, &format!("{here}/disable"), &[]).await;
    let disabled = ann.follow(&disabled).await;
    assert_snapshot!(
        disabled.notice(),
        @"200 Endpoint disabled. Events are kept and can be replayed later."
    );
    assert_snapshot!(disabled.part("role=\"alert\""), @"
    200
    ✗ Disabled since DATE: the endpoint was disabled manually. After enabling it, you can replay missed events.
    ");
    let enabled = ann.send(&disabled, &format!("{here}/enable"), &[]).await;
    assert_snapshot!(
        ann.follow(&enabled).await.notice(),
        @"200 Endpoint enabled. You can replay missed events."
    );

    let removed = ann.send(&page, &format!("{here}/remove"), &[]).await;
    assert_snapshot!(ann.follow(&removed).await.notice(), @"200 The endpoint was removed.");
    assert_snapshot!(ann.get(&here).await.head(), @"404");
}

/// Returns the part of a test's result that is before the request, which has a signature, and the
/// response.
fn outcome(tested: &Page) -> String {
    let section = tested.section("test");
    let (outcome, rest) = section.split_once("\nRequest\nPOST /hook host: example.com").unwrap();
    format!("{outcome}{}", &rest[rest.find("\nResponse").unwrap()..])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_shows_request_response_and_advice() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let here = add(&ann).await;
    let page = ann.get(&here).await;
    let action = format!("{here}/test#test-delivery");
    let test = async |kind, status, body| {
        let answer = async {
            while site.answer(&here, status, body).await == 0 {
                tokio::task::yield_now().await;
            }
        };
        let typed = [("kind", kind)];
        tokio::join!(ann.send(&page, &action, &typed), answer).0
    };
    let good = test("message.delivered", 200, "Thank you").await;
    assert_snapshot!(outcome(&good), @"
    200
    Test delivery
    Event type [message.delivered]
    (Send test event)
    Waiting for the endpoint to respond. This takes up to 15 seconds.
    Response 200 in 7 ms
    Response
    HTTP 200 Thank you
    ");
    let bad = test("message.received", 404, "Not here").await;
    assert_snapshot!(outcome(&bad), @"
    200
    Test delivery
    Event type [message.received]
    (Send test event)
    Waiting for the endpoint to respond. This takes up to 15 seconds.
    Response 404 in 7 ms
    The path was not found
    Compare the path of the URL with the routes of your server, and check whether a proxy strips a prefix.
    Response
    HTTP 404 Not here
    ");
    assert_snapshot!(ann.send(&page, &action, &[("kind", "x")]).await.head(), @"400");
    assert_snapshot!(ann.get(&here).await.section("deliveries"), @r#"
    200
    Deliveries
    All Failed Pending
    Replay failed
    Replay failed events?
    Sends all failed events of the last three days again.
    ()
    (Replay)
    Failed message.received Test DATE
    Event | …
    Responded with 404 DATE, 7 msNot here
    ()
    Payload
    {"type":"webhook.test","timestamp":"DATE","data":{"type":"message.received","timestamp":"DATE","data":{"id":"…","from":"447700900123","to":"447700900000","text":"Yes, please","receivedAt":"DATE","inReplyTo":"…","keyword":null,"mode":"test","complete":true,"textTruncated":false}}}
    ()
    Delivered message.delivered Test DATE
    Event | …
    Responded with 200 DATE, 7 msThank you
    ()
    Payload
    {"type":"webhook.test","timestamp":"DATE","data":{"type":"message.delivered","timestamp":"DATE","data":{"id":"…","recipient":"447700900123","originator":"Heliograph","reference":"sample","campaignId":null,"mode":"test","status":"DELIVERED","failure":null,"parts":1,"price":"0.0000","currency":"EUR","createdAt":"DATE","sentAt":"DATE","doneAt":"DATE"}}}
    ()
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_are_listed_and_replayed() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let here = add(&ann).await;
    let replay = format!("{here}/replay");
    let nothing = ann.fill(&here, &replay, &[]).await;
    assert_snapshot!(
        nothing.notice(),
        @"200 Nothing to replay: events were delivered or are pending."
    );
    ann.send_text("+447700900123", "Your order is on its way").await;
    site.deliver(Mode::Test).await;
    let pending = format!("{here}?show=pending");
    assert_snapshot!(ann.get(&pending).await.section("deliveries"), @r#"
    200
    Deliveries
    All Failed Pending
    Replay failed
    Replay failed events?
    Sends all failed events of the last three days again.
    ()
    (Replay)
    Pending message.delivered DATE
    Event | …
    Subject | Message to +447700900123
    Scheduled | DATE
    Payload
    {"type":"message.delivered","timestamp":"DATE","data":{"id":"…","recipient":"447700900123","originator":"Shop","reference":null,"campaignId":null,"mode":"test","status":"DELIVERED","failure":null,"parts":1,"price":"0.0000","currency":"EUR","createdAt":"DATE","sentAt":"DATE","doneAt":"DATE"}}
    ()
    "#);
    assert_eq!(site.answer(&here, 500, "Out of order").await, 1);
    let failed = ann.get(&format!("{here}?show=failed")).await;
    assert_snapshot!(failed.section("deliveries"), @r#"
    200
    Deliveries
    All Failed Pending
    Replay failed
    Replay failed events?
    Sends all failed events of the last three days again.
    ()
    (Replay)
    Retrying message.delivered DATE
    Event | …
    Subject | Message to +447700900123
    Next attempt | DATE
    Responded with 500 DATE, 7 msOut of order
    ()
    Payload
    {"type":"message.delivered","timestamp":"DATE","data":{"id":"…","recipient":"447700900123","originator":"Shop","reference":null,"campaignId":null,"mode":"test","status":"DELIVERED","failure":null,"parts":1,"price":"0.0000","currency":"EUR","createdAt":"DATE","sentAt":"DATE","doneAt":"DATE"}}
    ()
    "#);
    assert_snapshot!(
        ann.get(&here).await.notice(),
        @"200 ✗ All deliveries have failed since DATE. Failed events are retried; the endpoint is disabled after five days of failures."
    );
    let invalid = ann.send(&failed, &replay, &[("all", ""), ("event", "x")]).await;
    assert_snapshot!(invalid.head(), @"400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_cannot_change_endpoints() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let here = add(&ann).await;
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    assert_snapshot!(vic.get(HOOKS).await.main(), @"
    200
    Webhooks
    Receive delivery receipts and replies as HTTP POST requests to your server. Requests are signed and retried for three days.
    Endpoints Test
    1
    https://example.com/hook Enabled
    message.delivered, message.failed, message.received
    ");
    assert_snapshot!(vic.get(&here).await.main(), @"
    200
    Webhooks
    https://example.com/hook
    Enabled Test Added DATE
    Deliveries
    All Failed Pending
    No deliveries yet
    Events sent to this endpoint appear here.
    ");
    let fields = [("kind", "message.failed")];
    for action in ["", "/test", "/secret", "/rotate", "/enable", "/disable", "/remove", "/replay"] {
        let refused = vic.submit(&format!("{here}{action}"), &fields).await;
        assert_eq!(refused.status, 403, "{action}");
    }
    assert_eq!(vic.submit(HOOKS, &fields).await.status, 403);
    ann.go_live(Amount::ZERO).await;
    assert_eq!(ann.get(&here).await.status, 404, "the endpoint is in test mode");
    assert_eq!(ann.get("/settings/webhooks/x").await.status, 404);
}
