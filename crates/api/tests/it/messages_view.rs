//! `GET /v1/messages/{id}` and `POST /v1/messages/{id}/cancel`.

use crate::fake_carrier::FakeCarrier;
use crate::support::TestApi;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::ReceiptOutcome;
use insta::assert_snapshot;
use serde_json::json;
use std::time::Duration;

const ANN: Recipient = Recipient(447_700_900_123);
const UNKNOWN: &str = "/v1/messages/0190b0a0-0000-7000-8000-000000000000";

/// Sends a message with this reference; returns its path.
async fn send(api: &TestApi, key: &str, reference: &str) -> String {
    let body = json!({
        "originator": "Shop", "recipient": ANN.to_string(), "text": "Hello", "reference": reference,
    });
    format!("/v1/messages/{}", api.post(key, "/v1/send/sms", &body).await.id())
}

#[tokio::test]
async fn delivered_message_has_its_timeline() {
    let (api, key) = TestApi::with_key().await;
    let message = send(&api, &key, "order-7").await;
    api.db.clock.advance(Duration::from_secs(1));
    let carrier = FakeCarrier::new(&api).await;
    carrier.accept_all().await;
    api.db.clock.advance(Duration::from_secs(1));
    carrier.report("order-7", ANN, ReceiptOutcome::Delivered).await;
    let message = api.get(&key, &message).await;
    let fields = ["status", "partsAccepted", "partsDelivered", "sentAt", "doneAt", "timeline"];
    assert_snapshot!(message.fields(fields), @r#"
    status: "DELIVERED"
    partsAccepted: 1
    partsDelivered: 1
    sentAt: "2026-11-20T09:00:01.000Z"
    doneAt: "2026-11-20T09:00:02.000Z"
    timeline: [{"event":"accepted","at":"2026-11-20T09:00:00.000Z"},{"event":"sent","at":"2026-11-20T09:00:01.000Z"},{"event":"delivered","at":"2026-11-20T09:00:02.000Z"}]
    "#);
}

#[tokio::test]
async fn failed_message_has_its_reason() {
    let (api, key) = TestApi::with_key().await;
    let message = send(&api, &key, "order-7").await;
    let carrier = FakeCarrier::new(&api).await;
    carrier.accept_all().await;
    let failure = Failure { code: FailureCode::Unreachable, carrier_code: Some("001".to_owned()) };
    carrier.report("order-7", ANN, ReceiptOutcome::Failed(failure)).await;
    let message = api.get(&key, &message).await;
    assert_snapshot!(message.fields(["status", "failure"]), @r#"
    status: "FAILED"
    failure: {"code":"unreachable","permanent":false,"detail":"The handset could not be reached.","carrierCode":"001"}
    "#);
}

#[tokio::test]
async fn message_is_found_by_its_own_account_and_mode_only() {
    let api = TestApi::start().await;
    let ann = api.account("ann@example.com", 100).await;
    let (key, test_key) =
        (api.key(ann, Mode::Live, Scopes::ALL).await, api.key(ann, Mode::Test, Scopes::ALL).await);
    let bob_key = api.live_key("bob@example.com", 100).await;
    let message = send(&api, &key, "1").await;
    for (key, path) in [
        (&bob_key, message.as_str()),
        (&test_key, &message),
        (&key, UNKNOWN),
        (&key, "/v1/messages/7"),
        (&key, "/v1/messages/%ff"),
    ] {
        assert_eq!(api.get(key, path).await.status, 404, "{path}");
        assert_eq!(api.post(key, &format!("{path}/cancel"), &json!({})).await.status, 404);
    }
    assert_eq!(api.get(&key, &message).await.status, 200);
}

#[tokio::test]
async fn queued_message_can_be_cancelled_again_and_again() {
    let (api, key) = TestApi::with_key().await;
    let message = send(&api, &key, "1").await;
    let cancel = format!("{message}/cancel");
    let first = api.post(&key, &cancel, &json!({})).await;
    let fields = ["status", "price", "doneAt", "timeline"];
    assert_snapshot!(first.fields(fields), @r#"
    status: "CANCELLED"
    price: "0.0000"
    doneAt: "2026-11-20T09:00:00.000Z"
    timeline: [{"event":"accepted","at":"2026-11-20T09:00:00.000Z"},{"event":"cancelled","at":"2026-11-20T09:00:00.000Z"}]
    "#);
    api.db.clock.advance(Duration::from_secs(1));
    for again in [api.post(&key, &cancel, &json!({})).await, api.get(&key, &message).await] {
        assert_eq!((again.status, &again.body), (first.status, &first.body));
    }
}

#[tokio::test]
async fn sent_message_cannot_be_cancelled() {
    let (api, key) = TestApi::with_key().await;
    let message = send(&api, &key, "1").await;
    FakeCarrier::new(&api).await.accept_all().await;
    assert_snapshot!(
        api.post(&key, &format!("{message}/cancel"), &json!({})).await.problem(),
        @"409 not_cancellable: The message was sent. A message can be cancelled only while no part was sent or is being sent."
    );
}

#[tokio::test]
async fn cancellation_takes_neither_fields_nor_parameters() {
    let (api, key) = TestApi::with_key().await;
    let message = send(&api, &key, "1").await;
    let body = json!({ "reason": "mistake" });
    assert_snapshot!(
        api.post(&key, &format!("{message}/cancel"), &body).await.problem(),
        @"400 invalid_request: This endpoint takes no request body."
    );
    assert_eq!(api.post(&key, &format!("{message}/cancel?now"), &json!({})).await.status, 400);
    assert_eq!(api.get(&key, &format!("{message}?expand=all")).await.status, 400);
    assert_eq!(api.get(&key, &message).await.json()["status"], "QUEUED");
}
