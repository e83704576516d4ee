//! `GET /v1/messages`.

use crate::support::TestApi;
use heliograph_domain::time::Timestamp;
use insta::assert_snapshot;
use serde_json::{Value, json};
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
    assert_eq!(references(&api, &key, "status=QUEUED&status=SENT&originator=Shop").await, "3 2 1");
    assert_eq!(references(&api, &key, "status=SENT&status=FAILED").await, "");
    assert_eq!(references(&api, &key, "originator=Shop2").await, "");
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
    assert_snapshot!(api.get(&key, &format!("/v1/messages?{query}")).await.problem(), @"
    400 invalid_request: Invalid query parameters. See 'errors'.
    query:limit out_of_range: Limit must be a number between 1 and 100.
    query:cursor invalid_cursor: Invalid cursor: pass nextCursor of the previous page unchanged.
    query:status invalid_value: Must be one of QUEUED, SENT, DELIVERED, FAILED, CANCELLED.
    query:recipient invalid_number: 'A' is not allowed in a phone number: use the international format, like +447700900123.
    query:reference invalid_character: The value must not contain the character NUL.
    query:campaignId invalid_value: CampaignId must be a UUID.
    query:from invalid_time: Invalid time: use RFC 3339 with an offset, like 2026-11-20T09:00:00Z.
    query:to duplicate_field: Duplicate parameter.
    query:order unknown_field: Unknown parameter. Supported parameters: limit, cursor, status, recipient, originator, reference, campaignId, from, to.
    ");
}

#[tokio::test]
async fn dates_are_whole_days_in_utc() {
    let (api, key) = with_messages().await;
    let listed = api.get(&key, "/v1/messages").await.json();
    let messages: Vec<_> = listed["data"].as_array().unwrap().iter().collect();
    let field = |m: &Value, name: &str| m[name].as_str().unwrap().to_owned();
    let expected = |is_listed: &dyn Fn(&str) -> bool| {
        let listed = messages.iter().filter(|m| is_listed(&field(m, "createdAt")));
        listed.map(|m| field(m, "reference")).collect::<Vec<_>>().join(" ")
    };
    let now = api.context.db.now().0;
    for days in [-1, 0, 1] {
        let day = Timestamp(now + days * 86_400_000).to_string()[..10].to_owned();
        let found = references(&api, &key, &format!("from={day}")).await;
        assert_eq!(found, expected(&|at| at[..10] >= *day), "from {day}");
        let found = references(&api, &key, &format!("to={day}")).await;
        assert_eq!(found, expected(&|at| at[..10] <= *day), "to {day}");
        let found = references(&api, &key, &format!("from={day}&to={day}")).await;
        assert_eq!(found, expected(&|at| at[..10] == *day), "on {day}");
    }
    for query in ["to=9999-12-31", "to=9999-12-31T23:59:59Z", "from=0000-01-01"] {
        assert_eq!(references(&api, &key, query).await, "3 2 1", "{query}");
    }
    let in_paris = Timestamp(now - 2_000 + 3_600_000).to_string().replace('Z', "");
    for offset in ["%2B01:00", "+01:00"] {
        let found = references(&api, &key, &format!("from={in_paris}{offset}")).await;
        assert_eq!(found, "3 2", "{offset}");
    }
    let query = "from=2026-11-20T09:00:00%2B25:00&to=2026-11-31";
    assert_snapshot!(api.get(&key, &format!("/v1/messages?{query}")).await.problem(), @"
    400 invalid_request: Invalid query parameters. See 'errors'.
    query:from invalid_time: Invalid time: use RFC 3339 with an offset, like 2026-11-20T09:00:00Z.
    query:to invalid_time: Invalid time: use RFC 3339 with an offset, like 2026-11-20T09:00:00Z.
    ");
}

#[tokio::test]
async fn cursor_belongs_to_its_list_and_filters() {
    let (api, key) = with_messages().await;
    for name in ["a", "b"] {
        api.post(&key, "/v1/optout-lists", &json!({ "name": name })).await;
    }
    let cursor = async |path: &str| {
        let page = api.get(&key, path).await.json();
        page["nextCursor"].as_str().unwrap_or_else(|| panic!("{path}: {page}")).to_owned()
    };
    let filters = "limit=1&recipient=447700900123&status=QUEUED";
    let filtered = cursor(&format!("/v1/messages?{filters}")).await;
    let lists = cursor("/v1/optout-lists?limit=1").await;
    // The order of the parameters and the limit do not matter.
    let same = format!("status=QUEUED&recipient=447700900123&limit=5&cursor={filtered}");
    assert_eq!(references(&api, &key, &same).await, "1");
    let mut table = String::new();
    for (what, path) in [
        ("no filters", format!("/v1/messages?cursor={filtered}")),
        (
            "another value",
            format!("/v1/messages?recipient=447700900123&status=SENT&cursor={filtered}"),
        ),
        ("one more", format!("/v1/messages?{filters}&from=2026-11-19&cursor={filtered}")),
        ("list", format!("/v1/inbound-messages?cursor={lists}")),
        ("list", format!("/v1/messages?cursor={lists}")),
        (
            "old cursor",
            "/v1/optout-lists?cursor=MDFhMWZkMTMtZmRhYy03MWI1LWFmNmEtZWYwZmI1YzFiY2Vh".to_owned(),
        ),
    ] {
        let problem = api.get(&key, &path).await.problem();
        table += &format!("{what}: {}\n", problem.lines().nth(1).unwrap());
    }
    assert_snapshot!(table, @"
    no filters: query:cursor invalid_cursor: This cursor is of another list or of other filters: use it with the path and the filters of the page that returned it.
    another value: query:cursor invalid_cursor: This cursor is of another list or of other filters: use it with the path and the filters of the page that returned it.
    one more: query:cursor invalid_cursor: This cursor is of another list or of other filters: use it with the path and the filters of the page that returned it.
    list: query:cursor invalid_cursor: This cursor is of another list or of other filters: use it with the path and the filters of the page that returned it.
    list: query:cursor invalid_cursor: This cursor is of another list or of other filters: use it with the path and the filters of the page that returned it.
    old cursor: query:cursor invalid_cursor: Invalid cursor: pass nextCursor of the previous page unchanged.
    ");
}

#[tokio::test]
async fn at_most_100_unknown_parameters_are_listed() {
    let (api, key) = TestApi::with_key().await;
    let query = (0..3_000).map(|i| format!("p{i}=1")).collect::<Vec<_>>().join("&");
    let many = api.get(&key, &format!("/v1/messages?{query}")).await;
    let problem = many.json();
    assert_eq!(
        problem["detail"],
        "3000 invalid query parameters. The first 100 are listed in 'errors'."
    );
    assert_eq!(problem["errors"].as_array().unwrap().len(), 100);
    let long = api.get(&key, &format!("/v1/messages?{}=1", "x".repeat(30_000))).await.json();
    let pointer = format!("query:{}…", "x".repeat(100));
    assert_eq!(long["errors"][0]["pointer"], pointer);
}
