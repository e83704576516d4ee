//! `GET /v1/messages`.

use crate::support::TestApi;
use heliograph_domain::time::Timestamp;
use insta::assert_snapshot;
use serde_json::json;
use std::time::Duration;

/// Sends messages with the references 1, 2 and 3, a second apart.
async fn with_messages() -> (TestApi, String) {
    let (api, key) = TestApi::with_key().await;
    for (recipient, reference) in
        [("+447700900123", "1"), ("+6598234567", "2"), ("+447700900123", "3")]
    {
        let body = json!({
            "originator": "Shop", "recipient": recipient, "text": "Hello", "reference": reference,
        });
        assert_eq!(api.post(&key, "/v1/send/sms", &body).await.status, 201);
        api.db.clock.advance(Duration::from_secs(1));
    }
    (api, key)
}

/// Returns the references of the listed messages.
async fn references(api: &TestApi, key: &str, query: &str) -> String {
    let page = api.get(key, &format!("/v1/messages?{query}")).await.json();
    let messages = page["data"].as_array().unwrap().iter();
    messages.map(|m| m["reference"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn list_has_the_same_fields_as_a_message() {
    let (api, key) = with_messages().await;
    let page = api.get(&key, "/v1/messages?reference=2").await;
    let message = &page.json()["data"][0];
    let id = message["id"].as_str().unwrap();
    assert_eq!(api.get(&key, &format!("/v1/messages/{id}")).await.json(), *message);
    assert_snapshot!(api.get(&key, "/v1/messages?reference=4").await, @r#"
    200 OK
    content-type: application/json
    {
      "data": [],
      "nextCursor": null
    }
    "#);
}

#[tokio::test]
async fn pages_are_newest_first() {
    let (api, key) = with_messages().await;
    let first = api.get(&key, "/v1/messages?limit=2").await.json();
    let cursor = first["nextCursor"].as_str().unwrap();
    assert_eq!(references(&api, &key, "limit=2").await, "3 2");
    assert_eq!(references(&api, &key, &format!("limit=2&cursor={cursor}")).await, "1");
    assert_eq!(api.get(&key, "/v1/messages").await.json()["nextCursor"], json!(null));
}

#[tokio::test]
async fn filters_are_combined() {
    let (api, key) = with_messages().await;
    let second = Timestamp(api.context.db.now().0 - 2_000).to_string();
    let mut table = String::new();
    for query in [
        "status=QUEUED",
        "status=DELIVERED",
        "recipient=%2B44%207700%20900123",
        "recipient=447700900123&reference=3",
        "from=TIME",
        "to=TIME",
        "from=TIME&recipient=447700900123",
        "campaignId=0190b0a0-0000-7000-8000-000000000000",
    ] {
        let found = references(&api, &key, &query.replace("TIME", &second)).await;
        table += &format!("{query}: [{found}]\n");
    }
    assert_snapshot!(table, @r"
    status=QUEUED: [3 2 1]
    status=DELIVERED: []
    recipient=%2B44%207700%20900123: [3 1]
    recipient=447700900123&reference=3: [3]
    from=TIME: [3 2]
    to=TIME: [1]
    from=TIME&recipient=447700900123: [3]
    campaignId=0190b0a0-0000-7000-8000-000000000000: []
    ");
}

#[tokio::test]
async fn invalid_parameters_are_listed_together() {
    let (api, key) = TestApi::with_key().await;
    let query = "status=sent&recipient=Ann&reference=%00&campaignId=7&from=today&limit=101\
                 &cursor=x&to=2026-11-20T09:00:00Z&to=2026-11-20T09:00:00Z&order=desc";
    assert_snapshot!(api.get(&key, &format!("/v1/messages?{query}")).await.problem(), @r"
    400 invalid_request: Invalid query parameters. See 'errors'.
    query:limit out_of_range: Limit must be a number between 1 and 100.
    query:cursor invalid_cursor: Invalid cursor: pass nextCursor of the previous page unchanged.
    query:status invalid_value: Must be one of QUEUED, SENT, DELIVERED, FAILED, CANCELLED.
    query:recipient invalid_number: 'A' is not allowed in a phone number: use the international format, like +447700900123.
    query:reference invalid_character: The value must not contain the character NUL.
    query:campaignId invalid_value: CampaignId must be a UUID.
    query:from invalid_time: Invalid timestamp: use RFC 3339 with an offset, like 2026-11-20T09:00:00Z.
    query:to duplicate_field: Duplicate parameter.
    query:order unknown_field: Unknown parameter. Supported parameters: limit, cursor, status, recipient, reference, campaignId, from, to.
    ");
}
