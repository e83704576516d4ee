//! The composer: size, price and sending.

use crate::support::site::Site;
use axum::body::Body;
use axum::extract::Request;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::money::Amount;
use insta::assert_snapshot;

const ANN: &str = "+447700900123";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_message_is_sent_once() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/send?recipient=%2B447700900123").await;
    assert_snapshot!(page.main(), @"
    200
    Send message
    Test messages arrive on the Phone page and are free.
    To [+447700900123]
    Include the country code: +44 7700 900123.
    From []
    A phone number, or a name of up to 11 characters.
    Text []
    More options
    Reference []
    Your own ID for this message. Included in webhooks.
    Validity period [2 days]
    Stop trying to deliver after this time.
    Max segments []
    Reject the message if it needs more.
    [ ] Send even if the recipient opted out / Only for essential messages, such as a requested sign-in code.
    (Send test message)
    (Update size)
    Message size
    GSM-7
    Characters | 0
    Segments | 1
    Price | Free
    160 characters left.
    ");
    let typed = [("originator", "Shop"), ("text", "Your order is on its way")];
    for _ in 0..2 {
        assert_eq!(ann.send(&page, "/send", &typed).await.head(), "303 /phone/447700900123");
    }
    assert_eq!(site.lease(Mode::Test).await.len(), 1);
    let other = ann.send(&page, "/send", &[("originator", "Shop"), ("text", "Later")]).await;
    assert_snapshot!(
        other.notice(),
        @"422 ✗ This form was already submitted with different content, and that message was sent. Submit it again to send another message."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_are_at_their_fields() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/send").await;
    let typed = [
        ("recipient", "07700 900123"),
        ("originator", "Much too long a name"),
        ("text", " "),
        ("validity", "59"),
        ("maxParts", "0"),
    ];
    let refused = ann.send(&page, "/send", &typed).await;
    assert_snapshot!(refused.part("aria-label=\"Message\""), @"
    422
    To [07700 900123]
    ✗ The country code is missing: replace a leading 0 with it, or remove a leading 00.
    From [Much too long a name]
    ✗ The originator is too long: a name can have at most 11 characters.
    Text [ ]
    ✗ The text must not be empty.
    More options
    Reference []
    Your own ID for this message. Included in webhooks.
    Validity period []
    ✗ The value must be between 60 and 259200.
    Max segments [0]
    ✗ The value must be between 1 and 255.
    [ ] Send even if the recipient opted out / Only for essential messages, such as a requested sign-in code.
    (Send test message)
    (Update size)
    ");
    let long = "a".repeat(161);
    let typed = [("recipient", ANN), ("originator", "Shop"), ("text", &long), ("maxParts", "1")];
    let refused = ann.send(&page, "/send", &typed).await;
    assert_snapshot!(
        refused.error("text"),
        @"422 ✗ The text needs 2 segments, but at most 1 is allowed."
    );
    assert_snapshot!(ann.post("/send", &typed).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_size_of_a_text_is_shown_while_it_is_typed() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/send").await;
    let typed = [("recipient", ANN), ("text", "It’s 5 €… → “open”")];
    assert_snapshot!(
        ann.press(&page, ("/send", "/send/count"), &typed).await.section("counted"),
        @r#"
    200
    Message size
    Unicode (UCS-2)
    Characters | 18
    Segments | 1
    Price | Free
    52 characters left.
    The marked characters are not in the GSM alphabet, so a segment holds 70 characters instead of 160.
    It’s 5 €… → “open”
    ’ right single quotation mark → '
    … ellipsis → ...
    →
    “ left double quotation mark → "
    ” right double quotation mark → "
    (Replace special characters)
    "#
    );
    let plain = ann.press(&page, ("/send", "/send/plain"), &typed).await;
    assert_snapshot!(plain.part("<textarea"), @r#"
    200
    [It's 5 €... → "open"
    "#);
    let csrf = ann.csrf().await;
    let request = Request::post("/send/count").header("hx-request", "true");
    let fragment = ann.request(request.body(Body::from(format!("csrf={csrf}&text=Hi"))).unwrap());
    let fragment = fragment.await;
    assert_snapshot!(fragment.section("counted"), @"
    200
    Message size
    GSM-7
    Characters | 2
    Segments | 1
    Price | Free
    158 characters left.
    ");
    assert!(!fragment.has("<html"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_message_is_sent_after_its_price_is_confirmed() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.go_live(Amount(250)).await;
    let typed = [("recipient", ANN), ("originator", "Shop"), ("text", "Your order is on its way")];
    let page = ann.get("/send").await;
    assert_snapshot!(page.part("class=\"lead\""), @"
    200
    Your balance is 0.00025 EUR. You will see the price before the message is sent.
    ");
    let asked = ann.send(&page, "/send", &typed).await;
    assert_snapshot!(asked.main(), @"
    200
    Send this message?
    This message goes to a real phone and costs 0.0001 EUR. Your balance is 0.00025 EUR.
    To | +447700900123
    From | Shop
    Segments | 1 (GSM-7)
    Price | 0.0001 EUR
    Your order is on its way
    [Your order is on its way]
    (Send for 0.0001 EUR)
    (Edit)
    ");
    let other_price = ann.send(&asked, "/send", &[("agreed", "0.0002 EUR")]).await;
    assert_snapshot!(other_price.part("class=\"lead\""), @"
    200
    This message goes to a real phone and costs 0.0001 EUR. Your balance is 0.00025 EUR.
    ");
    let edited = ann.press(&asked, ("/send", "/send/count"), &[]).await;
    assert_snapshot!(edited.part("<textarea"), @"
    200
    [Your order is on its way
    ");
    assert_snapshot!(ann.send(&asked, "/send", &[]).await.head(), @"303 /messages/…");
    let long = "a".repeat(161);
    let typed = [("recipient", ANN), ("originator", "Shop"), ("text", long.as_str())];
    let refused = ann.fill("/send", "/send", &typed).await;
    assert_snapshot!(
        refused.notice(),
        @"422 ✗ Insufficient balance: the message costs 0.0002 EUR, and 0.00015 EUR are available. The message was not sent. Ask the operator of this service to add credit."
    );
    assert_snapshot!(refused.section("counted"), @"
    422
    Message size
    GSM-7
    Characters | 161
    Segments | 2
    Price | 0.0002 EUR
    145 characters left in segment 2.
    ✗ Insufficient balance. Ask the operator of this service to add credit.
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recipient_who_opted_out_is_refused() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.opt_out("+447700900123").await;
    let typed = [("recipient", ANN), ("originator", "Shop"), ("text", "Hello")];
    let refused = ann.fill("/send", "/send", &typed).await;
    assert_snapshot!(
        refused.error("recipient"),
        @"422 ✗ This recipient has opted out (STOP), so the message was not sent. The recipient can text START to opt back in."
    );
    assert_snapshot!(refused.section("counted"), @"
    422
    Message size
    GSM-7
    Characters | 5
    Segments | 1
    Price | Free
    155 characters left.
    ✗ This recipient has opted out (STOP). The message will be rejected unless you override this under “More options”.
    ");
    let overridden = ann.send(&refused, "/send", &[("overrideOptout", "yes")]).await;
    assert_snapshot!(overridden.head(), @"303 /phone/447700900123");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_cannot_send() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    assert_snapshot!(vic.get("/send").await.head(), @"403");
    for action in ["/send", "/send/count", "/send/plain"] {
        assert_eq!(vic.submit(action, &[]).await.status, 403, "{action}");
    }
}
