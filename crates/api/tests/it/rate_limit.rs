//! The rate limit of API keys, which uses the time of the process.

use crate::support::TestApi;
use insta::assert_snapshot;

#[tokio::test]
async fn response_shows_the_state_of_the_limit() {
    let (api, key) = TestApi::with_key().await;
    api.rate_limit.send_replace(5);
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
    api.rate_limit.send_replace(1);
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
    assert_eq!(api.get(&other, "/v1/balance").await.status, 200);
    api.rate_limit.send_replace(0);
    let unlimited = api.get(&key, "/v1/balance").await;
    assert_eq!(unlimited.status, 200);
    assert!(!unlimited.headers.contains_key("ratelimit"));
}
