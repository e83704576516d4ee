//! `/v1/inbound-messages`.

use crate::fake_carrier::FakeCarrier;
use crate::support::TestApi;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::id::AccountId;
use heliograph_service::operations::numbers;
use insta::assert_snapshot;
use serde_json::json;
use std::time::Duration;

const INBOUND: &str = "/v1/inbound-messages";
const NUMBER: &str = "447700900000";
const PERSON: &str = "447700900123";

/// Starts the API with Ann's account, to which the number belongs, and with an account of Bob.
async fn start() -> (TestApi, AccountId, String) {
    let api = TestApi::start().await;
    let ann = api.account("ann@example.com", 100).await;
    let bob_key = api.live_key("bob@example.com", 0).await;
    numbers::assign(&api.context, NUMBER, ann).await.unwrap();
    (api, ann, bob_key)
}

#[tokio::test]
async fn inbound_message_shows_its_keyword_and_the_message_it_replies_to() {
    let (api, ann, _) = start().await;
    let key = api.key(ann, Mode::Live, Scopes::ALL).await;
    let body =
        json!({ "originator": NUMBER, "recipient": PERSON, "text": "Sale!", "reference": "1" });
    let sent = api.post(&key, "/v1/send/sms", &body).await.id();
    let carrier = FakeCarrier::new(&api).await;
    carrier.accept_all().await;
    api.db.clock.advance(Duration::from_secs(1));
    carrier.deliver(PERSON, NUMBER, "Stop!").await;
    let page = api.get(&key, INBOUND).await;
    let message = &page.json()["data"][0];
    assert_eq!(message["inReplyTo"], sent);
    assert_snapshot!(page, @r#"
    200 OK
    content-type: application/json
    {
      "data": [
        {
          "id": "[id 2]",
          "from": "447700900123",
          "to": "447700900000",
          "text": "Stop!",
          "receivedAt": "2026-11-20T09:00:01.000Z",
          "inReplyTo": "[id 1]",
          "keyword": "STOP",
          "mode": "live",
          "complete": true
        }
      ],
      "nextCursor": null
    }
    "#);
    let path = format!("{INBOUND}/{}", message["id"].as_str().unwrap());
    assert_eq!(api.get(&key, &path).await.json(), *message);
    assert_snapshot!(api.get(&key, "/v1/optout-lists/default/numbers").await, @r#"
    200 OK
    content-type: application/json
    {
      "data": [
        {
          "number": "447700900123",
          "source": "reply",
          "inboundMessageId": "[id 2]",
          "originator": "447700900000",
          "note": null,
          "createdAt": "2026-11-20T09:00:01.000Z"
        }
      ],
      "nextCursor": null
    }
    "#);
}

#[tokio::test]
async fn messages_of_others_and_unknown_ids_are_not_found() {
    let (api, ann, bob_key) = start().await;
    FakeCarrier::new(&api).await.deliver(PERSON, NUMBER, "Hello").await;
    let key = api.key(ann, Mode::Live, Scopes::ALL).await;
    let test_key = api.key(ann, Mode::Test, Scopes::ALL).await;
    let page = api.get(&key, INBOUND).await.json();
    let message = format!("{INBOUND}/{}", page["data"][0]["id"].as_str().unwrap());
    assert_eq!(api.get(&bob_key, INBOUND).await.json()["data"], json!([]));
    for (key, path) in [
        (&bob_key, &*message),
        (&test_key, &message),
        (&key, "/v1/inbound-messages/7"),
        (&key, "/v1/inbound-messages/%ff"),
    ] {
        assert_eq!(api.get(key, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn invalid_parameters_are_refused() {
    let (api, key) = TestApi::with_key().await;
    let path = "/v1/inbound-messages?limit=0&from=447700900123";
    assert_snapshot!(api.get(&key, path).await.problem(), @r"
    400 invalid_request: Invalid query parameters. See 'errors'.
    query:limit out_of_range: Limit must be a number between 1 and 100.
    query:from unknown_field: Unknown parameter. Supported parameters: limit, cursor.
    ");
    assert_eq!(api.get(&key, "/v1/inbound-messages/7?limit=1").await.status, 400);
}
