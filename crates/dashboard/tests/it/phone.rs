//! The virtual handsets.

use crate::support::site::Site;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::money::Amount;
use insta::assert_snapshot;

const SEND: &str = "/phone/send";
const KEY: &str = "0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30";
const HERE: &str = "/phone/447700900123";
const REPLY: &str = "/phone/447700900123/reply";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_message_arrives_and_is_answered() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/phone").await;
    assert_snapshot!(page.main(), @r#"
    200
    Phone
    A virtual handset for test messages. Reply to see receipts, inbound messages and webhooks in action.
    No messages yet
    Send a test message to see it arrive here.
    Send your first message
    To [+447700900123]
    Any number. In test mode, each number is a virtual handset.
    From [+447700900800]
    A number, or a name of up to 11 characters, which cannot receive replies.
    Text [Hello from Heliograph 👋 Reply to this message!]
    (Send test message)
    Or use the API
    ()
    curl http://localhost/v1/send/sms -H 'Authorization: Bearer YOUR_TEST_KEY' -H 'Content-Type: application/json' -d '{"originator":"+447700900800","recipient":"+447700900123","text":"Hello, world"}'
    Replace YOUR_TEST_KEY with a test key: create an API key.
    "#);
    assert_snapshot!(ann.send(&page, SEND, &[]).await.head(), @"303 /phone/447700900123");
    site.deliver(Mode::Test).await;
    let page = ann.get("/phone").await;
    assert_snapshot!(page.part("id=\"phone\""), @"
    200
    +447700900123 Hello from Heliograph 👋 Reply to this message! TIME
    Send a test message
    To [+447700900123]
    Any number. In test mode, each number is a virtual handset.
    From [+447700900800]
    A number, or a name of up to 11 characters, which cannot receive replies.
    Text [Hello from Heliograph 👋 Reply to this message!]
    (Send test message)
    +447700900800
    to +447700900123
    DATE
    Hello from Heliograph 👋 Reply to this message!
    TIME Delivered Details
    Reply as +447700900123 []
    ()
    Timeline
    Accepted 0 ms
    1 segment, Unicode (UCS-2)
    Sent to carrier 0 ms
    Delivered 0 ms
    Webhooks
    No webhook endpoints. Add an endpoint to receive receipts and replies.
    ");
    let blank = ann.send(&page, REPLY, &[("reply", " ")]).await;
    assert_snapshot!(blank.error("reply"), @"422 ✗ Enter a reply, or select one above.");
    for _ in 0..2 {
        assert_eq!(
            ann.send(&page, REPLY, &[("reply", "Hi!")]).await.head(),
            format!("303 {HERE}?sender=447700900800")
        );
    }
    let replies = site.db.query_raw("SELECT text FROM handset_replies").await;
    assert_eq!(replies, [["Hi!"]]);
    site.receive(&ann, "447700900123", "447700900800", "STOP").await;
    assert_snapshot!(ann.get(HERE).await.part("id=\"bubbles\""), @"
    200
    DATE
    Hello from Heliograph 👋 Reply to this message!
    TIME Delivered Details
    You: STOP
    TIME
    This handset has opted out. Messages to it are rejected until it texts START.
    ");
    let refused = ann.send(&page, SEND, &[]).await;
    assert_snapshot!(refused.part("action=\"/phone/send\""), @"
    422
    To [+447700900123]
    ✗ This recipient has opted out (STOP), so the message was not sent. The recipient can text START to opt back in.
    From [+447700900800]
    A number, or a name of up to 11 characters, which cannot receive replies.
    Text [Hello from Heliograph 👋 Reply to this message!]
    (Send test message)
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sender_has_a_thread_and_names_cannot_be_answered() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    for (originator, text) in [("+447700900800", "From a number"), ("Shop", "From a name")] {
        let typed = [("originator", originator), ("text", text)];
        ann.fill("/phone", SEND, &typed).await;
    }
    let page = ann.get(HERE).await;
    assert_snapshot!(page.part("aria-label=\"Senders\""), @"
    200
    Shop +447700900800
    ");
    assert_snapshot!(page.part("aria-label=\"Phone of +447700900123\""), @"
    200
    Shop
    to +447700900123
    Shop +447700900800
    DATE
    From a name
    TIME Queued Details
    A phone cannot reply to a name. Send from a number to receive replies.
    ");
    let reply = [("reply", "Hi!"), ("sender", "Shop"), ("idempotency_key", KEY)];
    assert_snapshot!(ann.submit(REPLY, &reply).await.head(), @"404");
    let thread = ann.get(&page.link("+447700900800")).await;
    let bubbles = thread.part("id=\"bubbles\"");
    assert!(bubbles.contains("From a number") && !bubbles.contains("From a name"), "{bubbles}");
    let typed = ann.send(&thread, REPLY, &[("reply", "Hi!")]).await;
    assert_eq!(typed.head(), format!("303 {HERE}?sender=447700900800"));
    let stranger = ann.get("/phone/447700900999").await;
    assert!(stranger.main().contains("No messages to this number"), "{}", stranger.main());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_a_test_message_are_at_their_fields() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let typed = [("recipient", "abc"), ("originator", "<Shop>"), ("text", "")];
    let refused = ann.fill("/phone", SEND, &typed).await;
    assert_snapshot!(refused.part("action=\"/phone/send\""), @"
    422
    To [abc]
    ✗ 'a' is not allowed in a phone number: use the international format, like +447700900123.
    From [<Shop>]
    ✗ '<' is not allowed in an originator: use the letters A to Z, digits, spaces and + - _ & ..
    Text []
    ✗ The text must not be empty.
    (Send test message)
    ");
    assert_snapshot!(ann.post(SEND, &typed).await.head(), @"403");
    assert_snapshot!(ann.get("/phone/x").await.head(), @"404");
    let reply = [("reply", "Hi!"), ("sender", "447700900800"), ("idempotency_key", KEY)];
    assert_snapshot!(ann.submit(REPLY, &reply).await.head(), @"404");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_and_live_mode_cannot_use_the_handsets() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/phone").await;
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    assert!(vic.get("/phone").await.main().contains("You have read-only access."));
    let message = [
        ("recipient", "+447700900123"),
        ("originator", "Shop"),
        ("text", "Hello"),
        ("idempotency_key", "0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30"),
    ];
    assert_snapshot!(vic.submit(SEND, &message).await.head(), @"403");
    ann.go_live(Amount::ZERO).await;
    assert_snapshot!(ann.get("/phone").await.head(), @"303 /messages");
    assert_snapshot!(ann.send(&page, SEND, &[]).await.head(), @"409");
    assert_snapshot!(ann.submit(SEND, &[]).await.head(), @"404");
}
