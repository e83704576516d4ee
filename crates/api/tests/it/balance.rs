//! `GET /v1/balance`.

use crate::support::TestApi;
use insta::assert_snapshot;

#[tokio::test]
async fn balance_shows_available_and_reserved_amounts() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(api.get(&key, "/v1/balance").await, @r#"
    200 OK
    content-type: application/json
    {
      "available": "1.0000",
      "reserved": "0.0000",
      "currency": "EUR",
      "mode": "live"
    }
    "#);
    assert_snapshot!(api.get(&key, "/v1/balance?currency=GBP").await.problem(), @r"
    400 invalid_request: This endpoint takes no query parameters.
    query unknown_field: This endpoint takes no query parameters.
    ");
}
