//! The rate limit of API keys, which uses the time of the process.

use crate::exchange::json_request;
use crate::support::TestApi;
use axum::body::{Body, Bytes};
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::account_limit::AccountLimit;
use insta::assert_snapshot;
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;

#[tokio::test]
async fn response_shows_the_state_of_the_limit() {
    let (api, key) = TestApi::with_key().await;
    api.limit("ann@example.com", AccountLimit::RequestsPerSecond, 5).await;
    assert_snapshot!(api.get(&key, "/v1/balance").await, @r#"
    200 OK
    content-type: application/json
    ratelimit-policy: "key";q=5;w=1
    ratelimit: "key";r=4;t=1
    {
      "available": "1.0000",
      "reserved": "0.0000",
      "currency": "EUR",
      "mode": "live"
    }
    "#);
    let public = api.get("", "/healthz").await;
    assert!(!public.headers.contains_key("ratelimit"));
}

#[tokio::test]
async fn requests_above_the_limit_are_refused() {
    let (api, key) = TestApi::with_key().await;
    api.limit("ann@example.com", AccountLimit::RequestsPerSecond, 1).await;
    let mut response = api.get(&key, "/v1/balance").await;
    // On a busy machine, a request can take so long that the next one is below the limit.
    while response.status == 200 {
        response = api.get(&key, "/v1/balance").await;
    }
    assert_snapshot!(response, @r#"
    429 Too Many Requests
    content-type: application/problem+json
    ratelimit-policy: "key";q=1;w=1
    ratelimit: "key";r=0;t=1
    retry-after: 1
    {
      "type": "/docs/errors/rate_limited",
      "title": "Too many requests",
      "status": 429,
      "detail": "The API key exceeded its rate limit, and this request had no effect. Retry after the time in Retry-After.",
      "code": "rate_limited",
      "requestId": "test"
    }
    "#);
    let other = api.live_key("bob@example.com", 0).await;
    assert_eq!(api.get(&other, "/v1/balance").await.status, 200, "the limit is for one account");
    api.limit("ann@example.com", AccountLimit::RequestsPerSecond, 0).await;
    let unlimited = api.get(&key, "/v1/balance").await;
    assert_eq!(unlimited.status, 200);
    assert!(!unlimited.headers.contains_key("ratelimit"));
}

#[tokio::test]
async fn test_messages_above_the_daily_limit_are_refused() {
    let api = TestApi::start().await;
    let account = api.account("ann@example.com", 1_000_000).await;
    let test = api.key(account, Mode::Test, Scopes::ALL).await;
    let live = api.key(account, Mode::Live, Scopes::ALL).await;
    let body = json!({ "originator": "Shop", "recipient": "+447700900123", "text": "Hello" });
    let send = async |key: &str| api.post(key, "/v1/send/sms", &body).await;
    assert_eq!(send(&test).await.status, 201);
    api.limit("ann@example.com", AccountLimit::TestMessagesPerDay, 2).await;
    assert_eq!(send(&test).await.status, 201);
    assert_snapshot!(send(&test).await, @r#"
    429 Too Many Requests
    content-type: application/problem+json
    retry-after: 3600
    {
      "type": "/docs/errors/rate_limited",
      "title": "Too many requests",
      "status": 429,
      "detail": "The account has reached its limit of 2 test messages per day. The count begins again at midnight UTC: wait until then, or ask the operator for a higher limit.",
      "code": "rate_limited",
      "requestId": "test"
    }
    "#);
    assert_eq!(send(&live).await.status, 201, "live messages are not limited");
    api.db.clock.advance(Duration::from_secs(86_400));
    assert_eq!(send(&test).await.status, 201, "the next day");
}

#[tokio::test]
async fn an_account_has_a_share_of_the_open_requests() {
    let (api, key) = TestApi::with_key().await;
    let other = api.live_key("bob@example.com", 0).await;
    assert_eq!(api.get(&key, "/v1/balance").await.status, 200);
    let stalled = (0..api.drain.gate().max_open_share()).map(|_| {
        let never = futures_util::stream::pending::<Result<Bytes, Infallible>>();
        api.ask(json_request(&key, "/v1/send/sms"), Body::from_stream(never))
    });
    let others =
        async { (api.get(&key, "/v1/balance").await, api.get(&other, "/v1/balance").await) };
    let (refused, served) = tokio::select! {
        biased;
        _ = futures_util::future::join_all(stalled) => panic!("the bodies never arrive"),
        responses = others => responses,
    };
    assert_snapshot!(
        refused.problem(),
        @"429 rate_limited: Too many requests of this client are open at the same time, and this one had no effect. Retry after the time in Retry-After, with fewer requests at a time."
    );
    assert_eq!(served.status, 200);
    assert_eq!(api.get(&key, "/v1/balance").await.status, 200, "stalled requests are forgotten");
}
