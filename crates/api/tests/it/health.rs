//! `/healthz`, `/readyz` and `/metrics`.

use crate::support::TestApi;
use insta::assert_snapshot;
use std::time::Duration;

#[tokio::test]
async fn monitoring_needs_no_key_and_continues_during_a_shutdown() {
    let api = TestApi::start().await;
    let metrics = api.get("", "/metrics").await.to_string();
    let head = "200 OK\ncontent-type: text/plain; version=0.0.4; charset=utf-8\n";
    assert!(metrics.starts_with(head), "{metrics}");
    assert!(metrics.contains("\nheliograph_accepted_total 0\n"), "{metrics}");
    assert!(!api.drain.drain(Duration::ZERO).await, "no request is in flight");
    assert_snapshot!(api.get("", "/healthz").await, @r"
    200 OK
    content-type: text/plain; charset=utf-8
    ok
    ");
    assert_snapshot!(api.get("", "/readyz").await, @r"
    503 Service Unavailable
    content-type: text/plain; charset=utf-8
    shutting down
    ");
    assert_snapshot!(api.get("", "/v1/balance").await, @r#"
    503 Service Unavailable
    connection: close
    content-type: application/problem+json
    retry-after: 1
    {
      "type": "/docs/errors/overloaded",
      "title": "Service unavailable",
      "status": 503,
      "detail": "The service is temporarily unavailable, and nothing was stored. Retry after the time in Retry-After.",
      "code": "overloaded",
      "requestId": "test"
    }
    "#);
}

#[tokio::test]
async fn node_is_ready_if_the_clock_of_the_database_agrees() {
    let api = TestApi::start().await;
    let ready = api.get("", "/readyz").await;
    // SQLite uses the clock of the node, which stands still in a test; PostgreSQL has its own.
    let expected = match api.db.db.is_shared() {
        false => (200, "ready\n"),
        true => (503, "clock skew between node and database exceeds 2 s\n"),
    };
    assert_eq!((ready.status.as_u16(), &*ready.body), expected);
}
