//! `/v1/optout-lists` and `/v1/optout-lists/{id}`.

use crate::support::TestApi;
use insta::assert_snapshot;
use serde_json::json;
use std::time::Duration;

const LISTS: &str = "/v1/optout-lists";

#[tokio::test]
async fn created_list_can_be_read_and_deleted() {
    let (api, key) = TestApi::with_key().await;
    api.db.clock.advance(Duration::from_secs(1));
    let created = api.post(&key, LISTS, &json!({ "name": " Newsletter " })).await;
    assert_snapshot!(created, @r#"
    201 Created
    content-type: application/json
    location: /v1/optout-lists/[id 1]
    {
      "id": "[id 1]",
      "name": "Newsletter",
      "default": false,
      "mode": "live",
      "createdAt": "2026-11-20T09:00:01.000Z"
    }
    "#);
    let path = created.headers["location"].to_str().unwrap();
    assert_eq!(api.get(&key, path).await.json(), created.json());
    assert_snapshot!(api.get(&key, LISTS).await, @r#"
    200 OK
    content-type: application/json
    {
      "data": [
        {
          "id": "[id 2]",
          "name": "default",
          "default": true,
          "mode": "live",
          "createdAt": "2026-11-20T09:00:00.000Z"
        },
        {
          "id": "[id 1]",
          "name": "Newsletter",
          "default": false,
          "mode": "live",
          "createdAt": "2026-11-20T09:00:01.000Z"
        }
      ],
      "nextCursor": null
    }
    "#);
    assert_snapshot!(api.delete(&key, path).await, @"204 No Content");
    assert_eq!(api.delete(&key, path).await.status, 404);
    assert_eq!(api.get(&key, path).await.status, 404);
}

#[tokio::test]
async fn default_list_cannot_be_deleted() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(
        api.delete(&key, "/v1/optout-lists/default").await.problem(),
        @"409 conflict: The default list can't be removed: an account always has one."
    );
}

#[tokio::test]
async fn name_is_required_and_limited() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(api.post(&key, LISTS, &json!({})).await.problem(), @r"
    400 invalid_request: 1 validation error. See 'errors'.
    #/name required: This field is required.
    ");
    let body = json!({ "name": "n".repeat(101), "nmae": "Spring" });
    assert_snapshot!(api.post(&key, LISTS, &body).await.problem(), @r"
    400 invalid_request: 2 validation errors. See 'errors'.
    #/name invalid_name: The name must have 1 to 100 printable characters.
    #/nmae unknown_field: Unknown field. Did you mean 'name'?
    ");
    assert_eq!(api.post(&key, "/v1/optout-lists?a=b", &json!({ "name": "x" })).await.status, 400);
}

#[tokio::test]
async fn lists_of_others_and_unknown_ids_are_not_found() {
    let (api, key) = TestApi::with_key().await;
    let bob_key = api.live_key("bob@example.com", 0).await;
    let list = api.post(&key, LISTS, &json!({ "name": "Newsletter" })).await.id();
    let path = format!("{LISTS}/{list}");
    assert_eq!(api.delete(&bob_key, &path).await.status, 404);
    for path in [&path, "/v1/optout-lists/Default", "/v1/optout-lists/%ff"] {
        assert_eq!(api.get(&bob_key, path).await.status, 404, "{path}");
        assert_eq!(api.get(&bob_key, &format!("{path}/numbers")).await.status, 404, "{path}");
    }
    assert_eq!(api.get(&key, &path).await.status, 200);
}
