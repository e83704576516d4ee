//! API keys and scopes, for every operation.

use crate::exchange::{ApiResponse, request};
use crate::support::TestApi;
use heliograph_domain::account::{Mode, Scope};
use heliograph_service::identity::api_keys::{self, Keyring};
use heliograph_service::kernel::audit::Actor;
use insta::assert_snapshot;
use serde_json::{Value, json};

/// The value of `Authorization` | an explanation.
const INVALID: &str = "
    Bearer hg_live_nobody | no key
    Bearer                | nothing
    Basic YW5uOmFubg==    | another scheme
    hg_live_nobody        | no scheme";

#[tokio::test]
async fn every_invalid_key_gets_the_same_response() {
    let api = TestApi::start().await;
    let without = api.get("", "/v1/balance").await;
    assert_snapshot!(without, @r#"
    401 Unauthorized
    content-type: application/problem+json
    www-authenticate: Bearer
    {
      "type": "/docs/errors/unauthenticated",
      "title": "Invalid API key",
      "status": 401,
      "detail": "Send a valid API key as 'Authorization: Bearer hg_…'.",
      "code": "unauthenticated",
      "requestId": "test"
    }
    "#);
    for row in INVALID.lines().skip(1) {
        let (value, explanation) = row.split_once('|').unwrap();
        let request = request("GET", "", "/v1/balance").header("Authorization", value.trim());
        let response = api.ask(request, "").await;
        assert_eq!(response.to_string(), without.to_string(), "{explanation}");
    }
}

#[tokio::test]
async fn two_authorization_headers_are_refused() {
    let (api, key) = TestApi::with_key().await;
    let mut table = String::new();
    for second in ["Bearer hg_live_nobody", &format!("Bearer {key}")] {
        for (method, path) in [("GET", "/v1/balance"), ("POST", "/v1/send/sms")] {
            let twice = request(method, &key, path).header("Authorization", second);
            table += &format!("{method} {path}: {}\n", api.ask(twice, "").await.problem());
        }
    }
    assert_snapshot!(table, @"
    GET /v1/balance: 400 invalid_request: The header Authorization must be sent only once.
    header:Authorization duplicate_field: The header Authorization must be sent only once.
    POST /v1/send/sms: 400 invalid_request: The header Authorization must be sent only once.
    header:Authorization duplicate_field: The header Authorization must be sent only once.
    GET /v1/balance: 400 invalid_request: The header Authorization must be sent only once.
    header:Authorization duplicate_field: The header Authorization must be sent only once.
    POST /v1/send/sms: 400 invalid_request: The header Authorization must be sent only once.
    header:Authorization duplicate_field: The header Authorization must be sent only once.
    ");
}

#[tokio::test]
async fn revoked_key_is_refused_at_once() {
    let api = TestApi::start().await;
    let ann = api.account("ann@example.com", 100).await;
    let key = api.key(ann, Mode::Live, [Scope::Send, Scope::Read].into_iter().collect()).await;
    assert_eq!(api.get(&key, "/v1/balance").await.status, 200);
    let caller = Keyring::default().authenticate(&api.context, &key).await.unwrap();
    api_keys::revoke(&api.context, &Actor::operator(ann), caller.key.unwrap()).await.unwrap();
    let body = json!({ "originator": "Shop", "recipient": "447700900123", "text": "Hi" });
    assert_snapshot!(
        api.post(&key, "/v1/send/sms", &body).await.problem(),
        @"401 unauthenticated: Send a valid API key as 'Authorization: Bearer hg_…'."
    );
    assert_eq!(api.get(&key, "/v1/balance").await.status, 401);
}

#[tokio::test]
async fn missing_scope_is_named() {
    let api = TestApi::start().await;
    let ann = api.account("ann@example.com", 100).await;
    let reader = api.key(ann, Mode::Live, [Scope::Read].into_iter().collect()).await;
    let body = json!({ "originator": "Shop", "recipient": "447700900123", "text": "Hi" });
    assert_snapshot!(
        api.post(&reader, "/v1/send/sms", &body).await.problem(),
        @"403 scope_missing: The API key lacks the scope 'send'."
    );
    let list = json!({ "name": "Newsletter" });
    assert_snapshot!(
        api.post(&reader, "/v1/optout-lists", &list).await.problem(),
        @"403 scope_missing: The API key lacks the scope 'manage'."
    );
}

/// Sends the example of an operation's request.
async fn ask_example(
    api: &TestApi,
    key: &str,
    path: &str,
    method: &str,
    operation: &Value,
) -> ApiResponse {
    let unknown = "0190b0a0-0000-7000-8000-000000000000";
    let id = if path.contains("optout") { "default" } else { unknown };
    let path = path.replace("{id}", id).replace("{number}", "447700900123");
    let request = request(&method.to_uppercase(), key, &path);
    let content = operation["requestBody"]["content"].as_object().and_then(|c| c.iter().next());
    let Some((kind, content)) = content else { return api.ask(request, "").await };
    let example = content["examples"]
        .as_object()
        .map_or(&content["example"], |all| &all.values().next().unwrap()["value"]);
    let body = example.as_str().map_or(example.to_string(), str::to_owned);
    api.ask(request.header("Content-Type", kind), body).await
}

#[tokio::test]
async fn every_operation_needs_a_key_with_its_scope() {
    let api = TestApi::start().await;
    let ann = api.account("ann@example.com", 1_000_000).await;
    let mut keys = Vec::new();
    for scope in Scope::ALL {
        keys.push((scope.name(), api.key(ann, Mode::Live, [scope].into_iter().collect()).await));
    }
    let document = api.get("", "/v1/openapi.json").await.json();
    let mut table = String::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let public = ask_example(&api, "", path, method, operation).await.status != 401;
            let mut may: Vec<&str> = if public { vec!["public"] } else { vec![] };
            for (scope, key) in keys.iter().filter(|_| !public) {
                let response = ask_example(&api, key, path, method, operation).await;
                may.extend((response.status != 403).then_some(scope));
            }
            let scopes = may.join(", ");
            let documented = operation["description"].as_str().unwrap_or_default();
            let is_documented = documented.contains(&format!("Required scope: `{scopes}`."));
            assert_eq!(is_documented, !public, "{path}: {documented}");
            table += &format!("{} {path}: {scopes}\n", method.to_uppercase());
        }
    }
    assert_snapshot!(table, @"
    POST /v1/send/sms: send
    GET /v1/messages: read
    GET /v1/messages/{id}: read
    POST /v1/messages/{id}/cancel: send
    GET /v1/balance: read
    GET /v1/inbound-messages: read
    GET /v1/inbound-messages/{id}: read
    GET /v1/optout-lists: read
    POST /v1/optout-lists: manage
    GET /v1/optout-lists/{id}: read
    DELETE /v1/optout-lists/{id}: manage
    PATCH /v1/optout-lists/{id}: manage
    GET /v1/optout-lists/{id}/numbers: read
    POST /v1/optout-lists/{id}/numbers: manage
    POST /v1/optout-lists/{id}/numbers/import: manage
    GET /v1/optout-lists/{id}/numbers/{number}: read
    DELETE /v1/optout-lists/{id}/numbers/{number}: manage
    GET /healthz: public
    GET /readyz: public
    GET /metrics: public
    GET /v1/openapi.json: public
    ");
}
