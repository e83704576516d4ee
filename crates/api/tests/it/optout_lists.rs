//! `/v1/optout-lists` and `/v1/optout-lists/{id}`.

use crate::exchange::{json_request, request};
use crate::support::TestApi;
use heliograph_domain::account::{Mode, Scopes};
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

#[tokio::test]
async fn names_are_unique() {
    let api = TestApi::start().await;
    let ann = api.account("ann@example.com", 0).await;
    let key = api.key(ann, Mode::Live, Scopes::ALL).await;
    let test_key = api.key(ann, Mode::Test, Scopes::ALL).await;
    let newsletter = json!({ "name": "Newsletter" });
    assert_eq!(api.post(&key, LISTS, &newsletter).await.status, 201);
    let mut table = String::new();
    for name in ["Newsletter", " Newsletter ", "default"] {
        let problem = api.post(&key, LISTS, &json!({ "name": name })).await.problem();
        table += &format!("{name:?}: {problem}\n");
    }
    assert_snapshot!(table, @r#"
    "Newsletter": 409 conflict: There is already a list of this name. Choose another name.
    " Newsletter ": 409 conflict: There is already a list of this name. Choose another name.
    "default": 409 conflict: There is already a list of this name. Choose another name.
    "#);
    assert_eq!(api.post(&test_key, LISTS, &newsletter).await.status, 201);
    let bob_key = api.live_key("bob@example.com", 0).await;
    assert_eq!(api.post(&bob_key, LISTS, &newsletter).await.status, 201);
    // A replay is no conflict.
    let again = |key: &str| json_request(key, LISTS).header("Idempotency-Key", "k");
    let body = json!({ "name": "Sale" }).to_string();
    let first = api.ask(again(&key), body.clone()).await;
    assert_eq!(api.ask(again(&key), body).await.json(), first.json());
}

#[tokio::test]
async fn list_can_be_renamed() {
    let (api, key) = TestApi::with_key().await;
    let mut list = api.post(&key, LISTS, &json!({ "name": "Newsletter" })).await.json();
    api.post(&key, LISTS, &json!({ "name": "Sale" })).await;
    let path = format!("{LISTS}/{}", list["id"].as_str().unwrap());
    let patch = async |key: &str, path: &str, name: &str| {
        let request = request("PATCH", key, path).header("Content-Type", "application/json");
        api.ask(request, json!({ "name": name }).to_string()).await
    };
    let renamed = patch(&key, &path, "Weekly").await;
    list["name"] = "Weekly".into();
    assert_eq!((renamed.status.as_u16(), renamed.json()), (200, list.clone()));
    assert_eq!(api.get(&key, &path).await.json(), list);
    // The same name again is no conflict, and the old one is free.
    assert_eq!(patch(&key, &path, "Weekly").await.status, 200);
    assert_eq!(api.post(&key, LISTS, &json!({ "name": "Newsletter" })).await.status, 201);
    assert_snapshot!(patch(&key, &path, "Sale").await.problem(), @"409 conflict: There is already a list of this name. Choose another name.");
    assert_snapshot!(patch(&key, &format!("{LISTS}/default"), "Sale 2").await.problem(), @"409 conflict: The default list can't be renamed.");
    assert_snapshot!(patch(&key, &path, "").await.problem(), @"
    400 invalid_request: 1 validation error. See 'errors'.
    #/name invalid_name: The name must have 1 to 100 printable characters.
    ");
    let bob_key = api.live_key("bob@example.com", 0).await;
    assert_eq!(patch(&bob_key, &path, "Mine").await.status, 404);
    assert_eq!(api.get(&key, &path).await.json(), list);
}
