//! `/v1/optout-lists/{id}/numbers`: adding, reading, removing and importing numbers.

use crate::exchange::{ApiResponse, request};
use crate::support::TestApi;
use heliograph_domain::account_limit::AccountLimit;
use insta::assert_snapshot;
use serde_json::json;

const NUMBERS: &str = "/v1/optout-lists/default/numbers";
const IMPORT: &str = "/v1/optout-lists/default/numbers/import";

async fn import(api: &TestApi, key: &str, csv: &'static str) -> ApiResponse {
    api.ask(request("POST", key, IMPORT).header("Content-Type", "text/csv"), csv).await
}

#[tokio::test]
async fn added_number_keeps_its_first_record() {
    let (api, key) = TestApi::with_key().await;
    let body = json!({ "number": "+44 7700 900123", "note": "asked by phone" });
    let added = api.post(&key, NUMBERS, &body).await;
    assert_snapshot!(added, @r#"
    201 Created
    content-type: application/json
    location: /v1/optout-lists/default/numbers/447700900123
    {
      "number": "447700900123",
      "source": "api",
      "inboundMessageId": null,
      "originator": null,
      "note": "asked by phone",
      "createdAt": "2026-11-20T09:00:00.000Z"
    }
    "#);
    let again = api.post(&key, NUMBERS, &json!({ "number": "447700900123" })).await;
    assert_eq!((again.status.as_u16(), &again.body), (200, &added.body));
    assert!(!again.headers.contains_key("location"));
    let path = added.headers["location"].to_str().unwrap();
    assert_eq!(api.get(&key, path).await.json(), added.json());
}

#[tokio::test]
async fn removed_number_is_gone() {
    let (api, key) = TestApi::with_key().await;
    api.post(&key, NUMBERS, &json!({ "number": "447700900123" })).await;
    let path = "/v1/optout-lists/default/numbers/+447700900123";
    assert_snapshot!(api.delete(&key, path).await, @"204 No Content");
    assert_snapshot!(
        api.delete(&key, path).await.problem(),
        @"404 not_found: Not found, or you do not have access to it."
    );
    assert_eq!(api.get(&key, path).await.status, 404);
}

#[tokio::test]
async fn invalid_numbers_are_refused() {
    let (api, key) = TestApi::with_key().await;
    let body = json!({ "note": "n".repeat(256) });
    assert_snapshot!(api.post(&key, NUMBERS, &body).await.problem(), @r"
    400 invalid_request: 2 validation errors. See 'errors'.
    #/note too_long: The note must not exceed 255 characters.
    #/number required: This field is required.
    ");
    let body = json!({ "number": "07700900123" });
    assert_snapshot!(api.post(&key, NUMBERS, &body).await.problem(), @r"
    400 invalid_request: 1 validation error. See 'errors'.
    #/number invalid_number: The country code is missing: replace a leading 0 with it, or remove a leading 00.
    ");
    assert_eq!(api.get(&key, "/v1/optout-lists/default/numbers/07700900123").await.status, 404);
}

#[tokio::test]
async fn pages_are_in_ascending_order() {
    let (api, key) = TestApi::with_key().await;
    assert_eq!(import(&api, &key, "number\n6598234567\n447700900123\n").await.status, 200);
    let first = api.get(&key, "/v1/optout-lists/default/numbers?limit=1").await;
    assert_snapshot!(first, @r#"
    200 OK
    content-type: application/json
    {
      "data": [
        {
          "number": "6598234567",
          "source": "import",
          "inboundMessageId": null,
          "originator": null,
          "note": null,
          "createdAt": "2026-11-20T09:00:00.000Z"
        }
      ],
      "nextCursor": "NzlmNDA1NTcyMWJlNTg5OTY1OTgyMzQ1Njc"
    }
    "#);
    let page = first.json();
    let path = format!("{NUMBERS}?limit=1&cursor={}", page["nextCursor"].as_str().unwrap());
    let second = api.get(&key, &path).await.json();
    assert_eq!(
        (&second["data"][0]["number"], &second["nextCursor"]),
        (&json!("447700900123"), &json!(null))
    );
}

#[tokio::test]
async fn import_reports_what_it_did_and_what_is_invalid() {
    let (api, key) = TestApi::with_key().await;
    api.post(&key, NUMBERS, &json!({ "number": "447700900123" })).await;
    let csv = "number,note,name\n+44 7700 900123,,Ann\n6598234567,by mail,Bob\n12,,Eve\n,,Zoe\n";
    assert_snapshot!(import(&api, &key, csv).await, @r#"
    200 OK
    content-type: application/json
    {
      "added": 1,
      "alreadyListed": 1,
      "invalid": 2,
      "errors": [
        {
          "row": 4,
          "number": "12",
          "detail": "the number has too few digits: write it in full, with its country and area code"
        },
        {
          "row": 5,
          "number": "",
          "detail": "the number is empty: use the international format, like +447700900123"
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn file_without_numbers_is_refused() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(
        import(&api, &key, "name,phone\nAnn,447700900123\n").await.problem(),
        @"400 invalid_request: The file must start with a header row with the column 'number' and, optionally, 'note'."
    );
    let unclosed = "number\n\"447700900123\n447700900124\n";
    assert_snapshot!(
        import(&api, &key, unclosed).await.problem(),
        @"400 invalid_request: Unclosed quote in row 2, and nothing was stored. Close the quote on the same line, or double it if it is part of the text."
    );
    assert_snapshot!(
        api.post(&key, IMPORT, &json!({ "numbers": [] })).await.problem(),
        @"415 unsupported_media_type: Send the body as 'Content-Type: text/csv'."
    );
}

#[tokio::test]
async fn numbers_above_the_limit_of_the_account_are_refused() {
    let (api, key) = TestApi::with_key().await;
    api.limit("ann@example.com", AccountLimit::StoredRows, 1).await;
    let add = async |number: &str| api.post(&key, NUMBERS, &json!({ "number": number })).await;
    assert_eq!(add("+447700900123").await.status, 201);
    assert_snapshot!(add("+447700900124").await, @r#"
    409 Conflict
    content-type: application/problem+json
    {
      "type": "/docs/errors/conflict",
      "title": "Conflict with the current state",
      "status": 409,
      "detail": "The account has reached its limit of 1 stored test messages and opt-outs. Remove opt-outs that are not needed, or ask the operator for a higher limit.",
      "code": "conflict",
      "requestId": "test"
    }
    "#);
}
