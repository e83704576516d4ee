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
      "detail": "Campaigns are not available yet.",
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

#[tokio::test]
async fn probable_address_is_named() {
    let (api, key) = TestApi::with_key().await;
    let mut table = String::new();
    for path in ["/send/sms", "/v1/send/sms/", "/v1/send/campaign", "/v1/send", "/v1/messages/"] {
        let problem = api.post(&key, path, &json!({})).await.problem();
        table += &format!("{path}: {problem}\n");
    }
    assert_snapshot!(table, @"
    /send/sms: 404 not_found: There is no such path. The address of this endpoint is '/v1/send/sms'.
    /v1/send/sms/: 404 not_found: There is no such path. The address of this endpoint is '/v1/send/sms'.
    /v1/send/campaign: 404 not_found: Campaigns are not available yet.
    /v1/send: 404 not_found: There is no such path. All endpoints are listed at /docs.
    /v1/messages/: 404 not_found: There is no such path. The address of this endpoint is '/v1/messages'.
    ");
    assert_snapshot!(api.get(&key, "/v1/messages/7").await.problem(), @"404 not_found: Not found, or you do not have access to it.");
}
