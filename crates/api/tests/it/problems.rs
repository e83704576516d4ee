//! Problem documents that no single operation causes.

use crate::exchange::request;
use crate::support::TestApi;
use insta::assert_snapshot;
use serde_json::json;

#[tokio::test]
async fn unknown_path_is_not_found() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(api.get(&key, "/v1/campaigns").await, @r#"
    404 Not Found
    content-type: application/problem+json
    {
      "type": "/docs/errors/not_found",
      "title": "Not found",
      "status": 404,
      "detail": "Not found, or you do not have access to it.",
      "code": "not_found",
      "requestId": "test"
    }
    "#);
}

#[tokio::test]
async fn other_method_is_not_allowed() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(api.ask(request("PUT", &key, "/v1/optout-lists"), "").await, @r#"
    405 Method Not Allowed
    allow: GET,HEAD,POST
    content-type: application/problem+json
    {
      "type": "/docs/errors/method_not_allowed",
      "title": "Method not allowed",
      "status": 405,
      "detail": "This path does not support this method. See the Allow header.",
      "code": "method_not_allowed",
      "requestId": "test"
    }
    "#);
}

#[tokio::test]
async fn stopped_writer_is_an_overload() {
    let (mut api, key) = TestApi::with_key().await;
    let context = api.context.clone();
    // The last writer stops; the new one is not connected to the API.
    api.writer = heliograph_testing::writer(&context);
    let body = json!({ "originator": "Shop", "recipient": "447700900123", "text": "Hello" });
    assert_snapshot!(api.post(&key, "/v1/send/sms", &body).await.problem(), @"503 overloaded: The service is temporarily unavailable, and nothing was stored. Retry after the time in Retry-After.");
    assert_eq!(api.get(&key, "/v1/messages").await.json()["data"], json!([]));
}
