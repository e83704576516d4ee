//! `POST /v1/send/sms`.

use crate::exchange::{json_request, request};
use crate::support::TestApi;
use heliograph_domain::carrier::RoutingTable;
use heliograph_domain::id::AccountId;
use heliograph_service::kernel::context::{Context, NumberOwners, Settings};
use heliograph_testing::TestDb;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;

const SEND: &str = "/v1/send/sms";

fn hello() -> Value {
    json!({ "originator": "Shop", "recipient": "+447700900123", "text": "Hello" })
}

#[tokio::test]
async fn accepted_message_is_queued() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(api.post(&key, SEND, &hello()).await, @r#"
    201 Created
    content-type: application/json
    location: /v1/messages/[id 1]
    {
      "id": "[id 1]",
      "recipient": "447700900123",
      "status": "QUEUED",
      "originator": "Shop",
      "reference": null,
      "campaignId": null,
      "text": "Hello",
      "mode": "live",
      "encoding": "GSM_7",
      "parts": 1,
      "partsAccepted": 0,
      "partsDelivered": 0,
      "price": "0.0001",
      "currency": "EUR",
      "createdAt": "2026-11-20T09:00:00.000Z",
      "expiresAt": "2026-11-22T09:00:00.000Z",
      "sentAt": null,
      "doneAt": null,
      "failure": null,
      "inDoubt": false,
      "possibleDuplicate": false,
      "timeline": [
        {
          "event": "accepted",
          "at": "2026-11-20T09:00:00.000Z"
        }
      ]
    }
    "#);
    assert_eq!(api.get(&key, "/v1/balance").await.json()["reserved"], "0.0001");
}

#[tokio::test]
async fn all_options_are_applied() {
    let (api, key) = TestApi::with_key().await;
    let body = json!({
        "originator": "+447700900000", "recipient": "+44 (7700) 900-123", "text": "Grüße 👋",
        "reference": "order 7", "blockOptout": false, "validitySeconds": 3600, "maxParts": 1,
        "dryRun": false, "shortenUrl": false, "schedule": null, "scheduleTimezone": null,
    });
    let message = api.post(&key, SEND, &body).await;
    let fields = ["originator", "recipient", "reference", "encoding", "createdAt", "expiresAt"];
    assert_snapshot!(message.fields(fields), @r#"
    originator: "447700900000"
    recipient: "447700900123"
    reference: "order 7"
    encoding: "UCS_2"
    createdAt: "2026-11-20T09:00:00.000Z"
    expiresAt: "2026-11-20T10:00:00.000Z"
    "#);
}

#[tokio::test]
async fn dry_run_returns_a_quote_and_stores_nothing() {
    let (api, key) = TestApi::with_key().await;
    let mut body = hello();
    body["text"] = "x".repeat(161).into();
    body["dryRun"] = true.into();
    assert_snapshot!(api.post(&key, SEND, &body).await, @r#"
    200 OK
    content-type: application/json
    {
      "dryRun": true,
      "recipient": "447700900123",
      "originator": "Shop",
      "encoding": "GSM_7",
      "parts": 2,
      "price": "0.0002",
      "currency": "EUR",
      "charactersLeft": 145,
      "nonGsmCharacters": [],
      "available": "1.0000"
    }
    "#);
    assert_eq!(api.get(&key, "/v1/messages").await.json()["data"], json!([]));
    assert_eq!(api.get(&key, "/v1/balance").await.json()["reserved"], "0.0000");
    body["text"] = "Ваш заказ — ваш".into();
    let quote = api.post(&key, SEND, &body).await.json();
    let non_gsm = ["В", "а", "ш", "з", "к", "—", "в"];
    assert_eq!(
        (&quote["nonGsmCharacters"], &quote["charactersLeft"]),
        (&json!(non_gsm), &json!(55))
    );
}

#[tokio::test]
async fn missing_fields_are_listed_together() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(api.post(&key, SEND, &json!({ "text": "" })).await, @r##"
    400 Bad Request
    content-type: application/problem+json
    {
      "type": "/docs/errors/invalid_request",
      "title": "Invalid request",
      "status": 400,
      "detail": "3 validation errors. See 'errors'.",
      "code": "invalid_request",
      "requestId": "test",
      "errors": [
        {
          "pointer": "#/text",
          "code": "required",
          "detail": "The text must not be empty."
        },
        {
          "pointer": "#/originator",
          "code": "required",
          "detail": "This field is required."
        },
        {
          "pointer": "#/recipient",
          "code": "required",
          "detail": "This field is required."
        }
      ]
    }
    "##);
}

#[tokio::test]
async fn wrong_fields_are_listed_with_their_reasons() {
    let (api, key) = TestApi::with_key().await;
    let body = json!({
        "originator": "A long name for a shop", "recipient": "07700900123", "txt": "Hello",
        "text": 7, "reference": "a\0b", "validitySeconds": 59, "maxParts": 0, "dryRun": "yes",
        "shortenUrl": true, "schedule": "2026-12-24T18:00:00Z",
    });
    assert_snapshot!(api.post(&key, SEND, &body).await.problem(), @r"
    400 invalid_request: 10 validation errors. See 'errors'.
    #/originator invalid_originator: The originator is too long: a name can have at most 11 characters.
    #/recipient invalid_number: The country code is missing: replace a leading 0 with it, or remove a leading 00.
    #/txt unknown_field: Unknown field. Did you mean 'text'?
    #/text wrong_type: Expected a string, got a number.
    #/reference invalid_character: The value must not contain the character NUL.
    #/validitySeconds out_of_range: The value must be between 60 and 259200.
    #/maxParts out_of_range: The value must be between 1 and 255.
    #/dryRun wrong_type: Expected a boolean, got a string.
    #/shortenUrl not_available: Short links are not available yet. Omit this field or set it to false.
    #/schedule not_available: Scheduled sending is not available yet. Omit this field to send at once.
    ");
}

#[tokio::test]
async fn body_is_one_json_object() {
    let (api, key) = TestApi::with_key().await;
    assert_snapshot!(
        api.ask(json_request(&key, SEND), "{\"text\": \"Hello\"").await.problem(),
        @"400 invalid_request: The body is not valid JSON: an object is not closed at line 1, column 16."
    );
    assert_snapshot!(
        api.post(&key, SEND, &json!([hello()])).await.problem(),
        @"400 invalid_request: The body must be a JSON object, not an array."
    );
    assert_snapshot!(
        api.ask(json_request(&key, SEND), "").await.problem(),
        @"400 invalid_request: The body is empty. Send a JSON object."
    );
}

#[tokio::test]
async fn other_media_types_and_large_bodies_are_refused() {
    let (api, key) = TestApi::with_key().await;
    let form = request("POST", &key, SEND).header("Content-Type", "text/plain");
    assert_snapshot!(
        api.ask(form, hello().to_string()).await.problem(),
        @"415 unsupported_media_type: Send the body as 'Content-Type: application/json'."
    );
    let packed = json_request(&key, SEND).header("Content-Encoding", "gzip");
    assert_snapshot!(
        api.ask(packed, "").await.problem(),
        @"415 unsupported_media_type: Compressed bodies are not supported. Send the body without 'Content-Encoding'."
    );
    let large = " ".repeat((1 << 20) + 1);
    assert_snapshot!(
        api.ask(json_request(&key, SEND), large).await.problem(),
        @"413 payload_too_large: The body must not exceed 1048576 bytes."
    );
}

#[tokio::test]
async fn query_parameters_are_refused() {
    let (api, key) = TestApi::with_key().await;
    let path = "/v1/send/sms?dryRun=true";
    assert_snapshot!(api.post(&key, path, &hello()).await.problem(), @r"
    400 invalid_request: This endpoint takes no query parameters.
    query unknown_field: This endpoint takes no query parameters.
    ");
}

#[tokio::test]
async fn text_with_too_many_parts_is_refused() {
    let (api, key) = TestApi::with_key().await;
    let mut body = hello();
    body["text"] = "x".repeat(161).into();
    body["maxParts"] = 1.into();
    assert_snapshot!(api.post(&key, SEND, &body).await.problem(), @r"
    400 invalid_request: The text needs 2 parts, but at most 1 are allowed.
    #/text too_many_parts: The text needs 2 parts, but at most 1 are allowed.
    ");
}

#[tokio::test]
async fn message_above_the_balance_is_refused() {
    let api = TestApi::start().await;
    let key = api.live_key("ann@example.com", 99).await;
    let refused = api.post(&key, SEND, &hello()).await.problem();
    let mut dry_run = hello();
    dry_run["dryRun"] = true.into();
    assert_eq!(api.post(&key, SEND, &dry_run).await.problem(), refused);
    assert_snapshot!(
        refused,
        @"402 insufficient_balance: The message costs 0.0001 EUR, and 0.000099 EUR are available. Nothing was stored. Top up the account, or use a test key."
    );
}

#[tokio::test]
async fn recipient_on_the_default_list_is_refused_unless_requested() {
    let (api, key) = TestApi::with_key().await;
    let number = json!({ "number": "+447700900123" });
    let listed = api.post(&key, "/v1/optout-lists/default/numbers", &number).await;
    assert_eq!(listed.status, 201);
    assert_snapshot!(
        api.post(&key, SEND, &hello()).await.problem(),
        @r#"403 recipient_opted_out: The recipient is on the default opt-out list, and nothing was stored. Set "blockOptout": false to send anyway."#
    );
    let mut anyway = hello();
    anyway["blockOptout"] = false.into();
    assert_eq!(api.post(&key, SEND, &anyway).await.status, 201);
}

#[tokio::test]
async fn number_without_a_route_is_refused() {
    let db = TestDb::new().await;
    let context = heliograph_testing::context(&db).await;
    let settings = Settings { routes: RoutingTable::default(), ..(*context.settings()).clone() };
    let settings = watch::channel(Arc::new(settings)).1;
    let api = TestApi::over(db, Context { settings, ..context });
    let key = api.live_key("ann@example.com", 100).await;
    assert_snapshot!(
        api.post(&key, SEND, &hello()).await.problem(),
        @"403 destination_not_allowed: No carrier is configured for this number. Ask the operator to add a route."
    );
}

#[tokio::test]
async fn number_of_another_account_is_refused_as_originator() {
    let db = TestDb::new().await;
    let context = heliograph_testing::context(&db).await;
    let number_owners = NumberOwners([("447700900000".to_owned(), AccountId(77))].into());
    let settings = Settings { number_owners, ..(*context.settings()).clone() };
    let settings = watch::channel(Arc::new(settings)).1;
    let api = TestApi::over(db, Context { settings, ..context });
    let key = api.live_key("ann@example.com", 100).await;
    for dry_run in [false, true] {
        let mut body = hello();
        body["originator"] = "+44 7700 900000".into();
        body["dryRun"] = dry_run.into();
        let problem = api.post(&key, SEND, &body).await.problem();
        insta::allow_duplicates! {
            assert_snapshot!(problem, @"403 sender_not_allowed: This number belongs to another account, so it can't be the sender. Use a number of your account, or a name.");
        }
    }
}

#[tokio::test]
async fn numbers_of_both_sides_are_normalized() {
    let (api, key) = TestApi::with_key().await;
    for number in [
        "+44 7700 900000",
        "+44 (0)7700 900-000",
        "\u{202a}+44 7700 900000\u{202c}",
        "\u{200b}447700900000",
        "\u{ff0b}\u{ff14}\u{ff14}7700900000",
    ] {
        let body = json!({ "originator": number, "recipient": number, "text": "Hello" });
        let message = api.post(&key, SEND, &body).await.json();
        let numbers = [&message["originator"], &message["recipient"]];
        assert_eq!(numbers, ["447700900000", "447700900000"], "{number:?}: {message}");
    }
}

#[tokio::test]
async fn originator_that_nobody_could_reply_to_is_refused() {
    let (api, key) = TestApi::with_key().await;
    let mut table = String::new();
    for originator in ["00447700900123", "07700900123", "+0044", "000", "123456789"] {
        let mut body = hello();
        body["originator"] = originator.into();
        let problem = api.post(&key, SEND, &body).await.problem();
        table += &format!("{originator}: {}\n", problem.lines().nth(1).unwrap());
    }
    assert_snapshot!(table, @"
    00447700900123: #/originator invalid_originator: A numeric originator can't begin with 0: use the international format, like +447700900123, or a short code.
    07700900123: #/originator invalid_originator: A numeric originator can't begin with 0: use the international format, like +447700900123, or a short code.
    +0044: #/originator invalid_originator: A numeric originator can't begin with 0: use the international format, like +447700900123, or a short code.
    000: #/originator invalid_originator: A numeric originator can't begin with 0: use the international format, like +447700900123, or a short code.
    123456789: #/originator invalid_originator: The number has too few digits: write it in full, with its country and area code (a numeric originator of more than 8 digits must be an international number).
    ");
    for originator in ["123", "12345678"] {
        let mut body = hello();
        body["originator"] = originator.into();
        assert_eq!(api.post(&key, SEND, &body).await.status, 201, "{originator}");
    }
}

#[tokio::test]
async fn values_are_read_from_their_other_notations() {
    let (api, key) = TestApi::with_key().await;
    let number = json!({ "number": "+447700900123" });
    api.post(&key, "/v1/optout-lists/default/numbers", &number).await;
    let mut body = hello();
    body["reference"] = 42.into();
    body["maxParts"] = json!(1.0);
    body["blockOptout"] = "false".into();
    body["shortenUrl"] = "false".into();
    let body = format!("\u{feff}{body}");
    assert!(body.contains("1.0"), "{body}");
    let message = api.ask(json_request(&key, SEND), body).await;
    assert_eq!((message.status.as_u16(), &message.json()["reference"]), (201, &json!("42")));
    let mut blocked = hello();
    blocked["blockOptout"] = "true".into();
    assert_eq!(api.post(&key, SEND, &blocked).await.status, 403);
}

#[tokio::test]
async fn further_notations_are_refused() {
    let (api, key) = TestApi::with_key().await;
    let mut table = String::new();
    for (field, value) in [
        ("blockOptout", json!("True")),
        ("blockOptout", json!("yes")),
        ("blockOptout", json!("")),
        ("blockOptout", json!(1)),
        ("shortenUrl", json!("true")),
        ("dryRun", json!("true")),
        ("reference", json!(1.5)),
        ("reference", json!(true)),
        ("maxParts", json!(1.5)),
        ("maxParts", json!("1")),
    ] {
        let mut body = hello();
        body[field] = value;
        let problem = api.post(&key, SEND, &body).await.problem();
        table += &format!("{}: {}\n", body[field], problem.lines().nth(1).unwrap());
    }
    assert_snapshot!(table, @r#"
    "True": #/blockOptout wrong_type: Expected a boolean, or one of the strings "true" and "false".
    "yes": #/blockOptout wrong_type: Expected a boolean, or one of the strings "true" and "false".
    "": #/blockOptout wrong_type: Expected a boolean, or one of the strings "true" and "false".
    1: #/blockOptout wrong_type: Expected a boolean, got a number.
    "true": #/shortenUrl not_available: Short links are not available yet. Omit this field or set it to false.
    "true": #/dryRun wrong_type: Expected a boolean, got a string.
    1.5: #/reference wrong_type: Expected a string, got a fractional or very large number.
    true: #/reference wrong_type: Expected a string, got a boolean.
    1.5: #/maxParts wrong_type: Expected an integer, got a fractional or very large number.
    "1": #/maxParts wrong_type: Expected an integer, got a string.
    "#);
}

#[tokio::test]
async fn names_of_unknown_fields_are_encoded_and_cut() {
    let (api, key) = TestApi::with_key().await;
    let mut body = hello();
    body["a b/c"] = 1.into();
    body["x".repeat(1_000_000)] = 1.into();
    let problem = api.post(&key, SEND, &body).await;
    assert!(problem.body.len() < 1_000, "{}", problem.body.len());
    assert_snapshot!(problem.problem(), @"
    400 invalid_request: 2 validation errors. See 'errors'.
    #/a%20b~1c unknown_field: Unknown field. Field names are case-sensitive.
    #/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx%E2%80%A6 unknown_field: Unknown field. Field names are case-sensitive.
    ");
}
