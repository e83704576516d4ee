//! Conversations, and replies to recipients.

use crate::support::site::Site;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::money::Amount;
use insta::assert_snapshot;

const HERE: &str = "/conversations/447700900123";
const REPLY: &str = "/conversations/447700900123/reply";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_page_explains_conversations() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    assert_snapshot!(ann.get("/conversations").await.main(), @"
    200
    Conversations
    People who replied to your messages, the latest reply first.
    No conversations yet
    Replies to your messages appear here.
    Reply to a test message on the Phone page
    ");
    assert_snapshot!(ann.get(HERE).await.part("id=\"conversation\""), @"
    200
    +447700900123
    No messages with this number yet. Send a message
    ");
    assert_snapshot!(ann.get("/conversations/ann").await.head(), @"404");
    assert_snapshot!(ann.get("/conversations/447700900123?before=x").await.head(), @"404");
    let found = ann.get("/conversations?number=%2B44+7700+900123").await;
    assert_snapshot!(found.head(), @"303 /conversations/447700900123");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recipient_writes_and_is_answered() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.send_text("+447700900123", "Your order is on its way").await;
    site.deliver(Mode::Test).await;
    site.receive(&ann, "447700900123", "Shop", "Thank you!").await;
    let page = ann.get(HERE).await;
    assert_snapshot!(page.main(), @"
    200
    Conversations
    People who replied to your messages, the latest reply first.
    Search by number
    []
    +447700900123 Thank you! DATE
    +447700900123
    Replying as Shop
    DATE
    You: Your order is on its way
    TIME Delivered Details
    Recipient: Thank you!
    TIME
    Reply to +447700900123 []
    (Send)
    ");
    let empty = ann.send(&page, REPLY, &[("text", " ")]).await;
    assert_snapshot!(empty.part("id=\"composer\""), @"
    422
    Reply to +447700900123 [ ]
    (Send)
    ✗ The text must not be empty.
    ");
    for _ in 0..2 {
        let answered = ann.send(&page, REPLY, &[("text", "You’re welcome")]).await;
        assert_eq!(answered.head(), format!("303 {HERE}"));
    }
    let other = ann.send(&page, REPLY, &[("text", "Until nine")]).await;
    assert_snapshot!(
        other.notice(),
        @"422 ✗ This form was already submitted with different content, and that message was sent. Submit it again to send another message."
    );
    assert_snapshot!(other.part("id=\"thread\""), @"
    422
    DATE
    You: Your order is on its way
    TIME Delivered Details
    Recipient: Thank you!
    TIME
    You: You’re welcome
    TIME Queued Details
    ");
    let nobody = ann.send(&page, REPLY, &[("from", ""), ("text", "Hello")]).await;
    assert_snapshot!(nobody.part("id=\"composer\""), @"
    422
    Reply to +447700900123 [Hello]
    (Send)
    ✗ There are no messages with this number yet. Send the first message from the Send page.
    ");
    assert_snapshot!(ann.post(REPLY, &[("text", "Hello")]).await.head(), @"403");
    let list = ann.get("/conversations?number=0123").await;
    assert_snapshot!(list.part("id=\"conversations\""), @"
    200
    +447700900123 Thank you! DATE
    ");
    let none = ann.get("/conversations?number=999").await;
    assert_snapshot!(none.part("id=\"conversations\""), @"
    200
    No conversation matches. Enter a full number to see the messages to someone who has not replied.
    ");
}

/// Hundreds of newer outbound messages do not hide a conversation, and neither does another page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_people_who_replied_are_listed_until_a_member_has_read_them() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    for n in 0..51 {
        site.receive(&ann, &format!("4477009001{n:02}"), "447700900800", "Hello").await;
    }
    let first = ann.get("/conversations").await;
    let list = first.part("id=\"conversations\"");
    assert_eq!(list.matches("Unread").count(), 50, "{list}");
    assert!(list.contains("+447700900150 Unread") && !list.contains("+447700900100"), "{list}");
    let second = ann.get(&first.link("Older")).await.part("id=\"conversations\"");
    assert!(second.contains("+447700900100 Unread") && !second.contains("+447700900150"));
    let found = ann.get("/conversations?number=0100").await.part("id=\"conversations\"");
    assert!(found.contains("+447700900100 Unread"), "{found}");
    // A viewer leaves the mark to those who can answer.
    let read = "/conversations/447700900150";
    for (who, unread) in [(&vic, 50), (&ann, 49)] {
        who.get(read).await;
        let list = ann.get("/conversations").await.part("id=\"conversations\"");
        assert_eq!(list.matches("Unread").count(), unread);
    }
    site.receive(&ann, "447700900150", "447700900800", "Anybody there?").await;
    let list = ann.get("/conversations").await.part("id=\"conversations\"");
    assert!(
        list.contains("+447700900150 Unread / Anybody there?")
            || list.matches("Unread").count() == 50
    );
    assert!(
        site.owner("bob@example.com")
            .await
            .get("/conversations")
            .await
            .main()
            .contains("No conversations yet")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recipient_who_opted_out_gets_no_answer() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.send_text("+447700900123", "Your order is on its way").await;
    let before = ann.get(HERE).await;
    site.receive(&ann, "447700900123", "Shop", "STOP").await;
    assert_snapshot!(ann.get(HERE).await.part("id=\"conversation\""), @"
    200
    +447700900123
    Replying as Shop
    Opted out
    DATE
    You: Your order is on its way
    TIME Queued Details
    Recipient: STOP
    TIME Keyword STOP
    This recipient has opted out. They can text START to opt back in.
    ");
    let refused = ann.send(&before, REPLY, &[("text", "But why?")]).await;
    assert_snapshot!(refused.part("id=\"composer\""), @"
    422
    This recipient has opted out. They can text START to opt back in.
    ✗ This recipient has opted out (STOP), so the message was not sent. The recipient can text START to opt back in.
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_reads_conversations() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.send_text("+447700900123", "Your order is on its way").await;
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    assert_snapshot!(vic.get(HERE).await.part("id=\"composer\""), @"
    200
    You have read-only access. Ask a member to reply.
    ");
    assert_snapshot!(vic.submit(REPLY, &[("from", "Shop")]).await.head(), @"403");
    vic.go_live(Amount::ZERO).await;
    assert_snapshot!(vic.get("/conversations").await.main(), @"
    200
    Conversations
    People who replied to your messages, the latest reply first.
    No conversations yet
    Replies to your messages appear here.
    ");
}
