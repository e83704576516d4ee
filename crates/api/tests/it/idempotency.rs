//! `Idempotency-Key`, on every operation that accepts it.

use crate::exchange::{ApiResponse, request};
use crate::support::TestApi;
use insta::assert_snapshot;

const HELLO: &str = r#"{"originator":"Shop","recipient":"447700900123","text":"Hello"}"#;

/// Path | media type | body | another body.
const OPERATIONS: [[&str; 4]; 4] = [
    [
        "/v1/send/sms",
        "application/json",
        HELLO,
        r#"{"originator":"Shop","recipient":"6598234567","text":"Hi"}"#,
    ],
    ["/v1/optout-lists", "application/json", r#"{"name":"Spring"}"#, r#"{"name":"Summer"}"#],
    [
        "/v1/optout-lists/default/numbers",
        "application/json",
        r#"{"number":"447700900124"}"#,
        r#"{"number":"447700900125"}"#,
    ],
    ["/v1/optout-lists/default/numbers/import", "text/csv", "number\n447700900126\n", "number\n"],
];

async fn post(
    api: &TestApi,
    key: &str,
    [path, kind, body]: [&'static str; 3],
    once: &str,
) -> ApiResponse {
    let request = request("POST", key, path).header("Content-Type", kind);
    api.ask(request.header("Idempotency-Key", once), body).await
}

#[tokio::test]
async fn repeated_request_gets_the_stored_response() {
    let (api, key) = TestApi::with_key().await;
    for [path, kind, body, other] in OPERATIONS {
        let first = post(&api, &key, [path, kind, body], "order 7").await;
        let mut again = post(&api, &key, [path, kind, body], "order 7").await;
        assert!(first.status.is_success(), "{path}: {first}");
        assert!(!first.headers.contains_key("idempotent-replayed"), "{path}");
        assert_eq!(again.headers.remove("idempotent-replayed").unwrap(), "true", "{path}");
        assert_eq!(
            (again.status, &again.headers, &again.body),
            (first.status, &first.headers, &first.body)
        );
        let reused = post(&api, &key, [path, kind, other], "order 7").await;
        assert_eq!(reused.status, 422, "{path}: {reused}");
    }
}

#[tokio::test]
async fn replay_is_marked_and_another_body_refused() {
    let (api, key) = TestApi::with_key().await;
    let list = ["/v1/optout-lists", "application/json", r#"{"name":"Spring"}"#];
    post(&api, &key, list, "k").await;
    assert_snapshot!(post(&api, &key, list, "k").await, @r#"
    201 Created
    content-type: application/json
    idempotent-replayed: true
    location: /v1/optout-lists/[id 1]
    {
      "id": "[id 1]",
      "name": "Spring",
      "default": false,
      "mode": "live",
      "createdAt": "2026-11-20T09:00:00.000Z"
    }
    "#);
    let other = ["/v1/optout-lists", "application/json", r#"{"name":"Summer"}"#];
    assert_snapshot!(
        post(&api, &key, other, "k").await.problem(),
        @"422 idempotency_key_reused: This Idempotency-Key was used with a different body. Use a new key, or send the same body again."
    );
}

#[tokio::test]
async fn invalid_keys_are_refused() {
    let (api, key) = TestApi::with_key().await;
    let list = ["/v1/optout-lists", "application/json", r#"{"name":"Spring"}"#];
    assert_snapshot!(post(&api, &key, list, "").await.problem(), @r"
    400 invalid_request: Invalid Idempotency-Key.
    header:Idempotency-Key invalid_idempotency_key: The header must be sent once, with 1 to 255 printable ASCII characters.
    ");
    assert_eq!(post(&api, &key, list, &"k".repeat(256)).await.status, 400);
    let twice = request("POST", &key, list[0]).header("Content-Type", list[1]);
    let twice = twice.header("Idempotency-Key", "a").header("Idempotency-Key", "b");
    assert_eq!(api.ask(twice, list[2]).await.status, 400);
}
