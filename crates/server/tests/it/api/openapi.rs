//! Requests and responses, compared with the OpenAPI document.

use crate::support::api::{hello, problem};
use crate::support::http::Request;
use crate::support::openapi::document;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const ANN: &str = "+447700900123";

/// Resolves a reference; returns any other schema as it is.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(address) => document.pointer(address.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

#[test]
fn requests_have_the_documented_fields() {
    let server = Server::start();
    let (key, document, mut tried) = (server.key(), document(), 0);
    for (path, item) in document["paths"].as_object().unwrap() {
        let schema = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
        let Some(fields) = resolved(&document, schema)["properties"].as_object() else { continue };
        // A known field with a wrong value has another error code than an unknown field.
        let mut body: BTreeMap<&str, Value> = fields.keys().map(|f| (&**f, json!([]))).collect();
        body.insert("unheardOf", json!([]));
        let address = path.replace("{id}", "default");
        let request = Request::send_sms(&key, json!(body).to_string()).to(&address);
        let faults = problem(&server.ask(&request), 400, "invalid_request");
        let code = |field: &str| match field {
            "unheardOf" => "unknown_field",
            "schedule" | "scheduleTimezone" => "not_available",
            _ => "wrong_type",
        };
        let wanted = body.keys().map(|f| (format!("#/{f}"), code(f).to_owned()));
        assert_eq!(BTreeSet::from_iter(faults), wanted.collect(), "{path}");
        tried += 1;
    }
    assert!(tried >= 3, "{tried} bodies were tried");
}

/// Asserts that `value` matches the types, fields and enums of `schema`.
fn fits(document: &Value, schema: &Value, value: &Value) {
    let schema = resolved(document, schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let null = choices.iter().any(|c| c["type"] == "null");
        let other = choices.iter().find(|c| c["type"] != "null").unwrap();
        return if null && value.is_null() {
        } else {
            fits(document, other, value)
        };
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        // An open enumeration: this version returns only the values that it lists.
        return fits(document, &choices[0], value);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = &schema["type"];
    let may_be = kinds.as_array().cloned().unwrap_or(vec![kinds.clone()]);
    assert!(may_be.contains(&json!(kind)), "{value} is not {kinds}");
    if let (Some(names), false) = (schema["enum"].as_array(), value.is_null()) {
        assert!(names.contains(value), "{value} is none of {names:?}");
    }
    for item in value.as_array().into_iter().flatten() {
        fits(document, &schema["items"], item);
    }
    if let Some(fields) = value.as_object() {
        let known = schema["properties"].as_object().unwrap();
        assert!(fields.keys().all(|f| known.contains_key(f)), "{value} has undocumented fields");
        let needed = schema["required"].as_array().unwrap();
        assert!(
            needed.iter().all(|f| fields.contains_key(f.as_str().unwrap())),
            "{value} lacks a field"
        );
        fields.iter().for_each(|(name, field)| fits(document, &known[name], field));
    }
}

#[test]
fn responses_match_their_schemas() {
    let server = Server::start();
    let (key, document) = (server.key(), document());
    let check = |method: &str, path: &str, request: Request| {
        let response = server.ask(&request.key(&key));
        let operation = &document["paths"][path][method];
        let documented = resolved(&document, &operation["responses"][response.status.to_string()]);
        let kind = response.header("content-type").unwrap();
        let schema = &documented["content"][kind]["schema"];
        assert!(!schema.is_null(), "{method} {path}: no {kind} with {}", response.status);
        fits(&document, schema, &response.json());
        for header in documented["headers"].as_object().unwrap().keys() {
            let there = response.header(&header.to_ascii_lowercase()).is_some();
            let when_it_applies = ["Idempotent-Replayed", "RateLimit", "RateLimit-Policy"];
            let missing = !there && !when_it_applies.contains(&&**header);
            assert!(!missing, "{method} {path}: no {header}");
        }
        response
    };
    let post = |path: &str, body: &Value| {
        Request::new("POST", path).header("Content-Type", "application/json").body(body.to_string())
    };
    let (sms, list) = ("/v1/send/sms", "/v1/optout-lists/{id}");
    for recipient in [ANN, "+447700900001", "+447700900009"] {
        let id = check("post", sms, post(sms, &hello(recipient))).json()["id"].clone();
        let id = id.as_str().unwrap();
        server.wait_until_ended(&key, id);
        check("get", "/v1/messages/{id}", Request::get(&format!("/v1/messages/{id}")));
        let cancel = format!("/v1/messages/{id}/cancel");
        check("post", "/v1/messages/{id}/cancel", Request::new("POST", &cancel));
    }
    check("get", "/v1/messages", Request::get("/v1/messages?limit=2"));
    check("get", "/v1/messages", Request::get("/v1/messages?limit=0"));
    check("get", "/v1/balance", Request::get("/v1/balance"));
    let mut quote = hello(ANN);
    quote["dryRun"] = json!(true);
    check("post", sms, post(sms, &quote));
    check("post", sms, post(sms, &json!({ "text": 1 })));
    check("post", sms, Request::new("POST", sms));
    crate::support::wait::eventually("the reply has arrived", || {
        let inbound = "/v1/inbound-messages";
        let page = check("get", inbound, Request::get(inbound)).json();
        let id = page["data"][0]["id"].as_str()?.to_owned();
        check("get", "/v1/inbound-messages/{id}", Request::get(&format!("{inbound}/{id}")));
        Some(())
    });
    let lists = "/v1/optout-lists";
    check("post", lists, post(lists, &json!({ "name": "Newsletter" })));
    check("get", lists, Request::get(lists));
    check("get", list, Request::get("/v1/optout-lists/default"));
    let rename = Request::new("PATCH", "/v1/optout-lists/default");
    let rename = rename.header("Content-Type", "application/json").body("{\"name\": \"News\"}");
    check("patch", list, rename);
    check("delete", list, Request::new("DELETE", "/v1/optout-lists/default"));
    let (numbers, here) = (format!("{list}/numbers"), "/v1/optout-lists/default/numbers");
    for _ in 0..2 {
        check("post", &numbers, post(here, &json!({ "number": ANN, "note": null })));
    }
    check("get", &numbers, Request::get(&format!("{here}?limit=1")));
    let (one, number) = (format!("{numbers}/{{number}}"), format!("{here}/447700900123"));
    check("get", &one, Request::get(&number));
    let csv = Request::new("POST", &format!("{here}/import")).header("Content-Type", "text/csv");
    check("post", &format!("{numbers}/import"), csv.body("number\n12\n447700900124\n"));
    check("get", "/v1/messages/{id}", Request::get("/v1/messages/0"));
}
