//! The document of the API, held against what the server does.

use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::send_sms::hello;
use crate::server::Server;
use crate::wrong_input::problem;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

each_engine!(openapi: the_document_is_served every_route_is_documented requests_have_the_fields_that_are_documented
    answers_are_as_documented);

const COMMITTED: &str = include_str!("../../../../openapi.json");
const ANN: &str = "+447700900123";

fn document() -> Value {
    serde_json::from_str(COMMITTED).unwrap()
}

fn the_document_is_served(engine: Engine) {
    let server = Server::start(engine);
    let answer = server.ask(&Request::get("/v1/openapi.json"));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert!(answer.text() == COMMITTED, "the server says something else than openapi.json");
    assert_eq!(answer.json()["openapi"], "3.1.0");
    let tag = answer.header("etag").unwrap();
    for (had, status) in [
        (tag, 304),
        (&*format!("\"x\", W/{tag}"), 304),
        ("*", 304),
        ("\"x\"", 200),
        (&tag[1..], 200),
    ] {
        let request = Request::get("/v1/openapi.json").header("If-None-Match", had);
        let answer = server.ask(&request);
        assert_eq!((answer.status, answer.header("etag")), (status, Some(tag)), "{had}");
        assert_eq!(answer.body.is_empty(), status == 304);
    }
    let answer = server.ask(&Request::get("/v1/openapi.json?pretty=false"));
    problem(&answer, 400, "invalid_request");
}

/// The address has just the methods that the document gives it.
fn every_route_is_documented(engine: Engine) {
    let server = Server::start(engine);
    for (path, item) in document()["paths"].as_object().unwrap() {
        let mut methods: BTreeSet<_> =
            item.as_object().unwrap().keys().map(String::as_str).collect();
        if methods.contains("get") {
            methods.insert("head");
        }
        let address = path.replace("{id}", "default").replace("{number}", "447700900123");
        let answer = server.ask(&Request::new("BREW", &address));
        problem(&answer, 405, "method_not_allowed");
        let allowed = answer.header("allow").unwrap().to_ascii_lowercase();
        assert_eq!(allowed.split(',').collect::<BTreeSet<_>>(), methods, "{path}");
        let open = item.as_object().unwrap().values().all(|o| o["security"] == json!([]));
        if let (false, Some(method)) = (open, methods.first()) {
            let method = method.to_ascii_uppercase();
            problem(&server.ask(&Request::new(&method, &address)), 401, "unauthenticated");
        }
    }
}

/// What a reference leads to, or the schema itself.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(address) => document.pointer(address.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

fn requests_have_the_fields_that_are_documented(engine: Engine) {
    let server = Server::start(engine);
    let (key, document, mut tried) = (server.key(), document(), 0);
    for (path, item) in document["paths"].as_object().unwrap() {
        let schema = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
        let Some(fields) = resolved(&document, schema)["properties"].as_object() else { continue };
        // A field that is known is wrong in another way than one that is not.
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

/// Panics unless `value` is what `schema` says, as far as types, fields and choices go.
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
    assert!(may_be.contains(&json!(kind)), "{value} is no {kinds}");
    if let (Some(names), false) = (schema["enum"].as_array(), value.is_null()) {
        assert!(names.contains(value), "{value} is none of {names:?}");
    }
    for item in value.as_array().into_iter().flatten() {
        fits(document, &schema["items"], item);
    }
    if let Some(fields) = value.as_object() {
        let known = schema["properties"].as_object().unwrap();
        assert!(fields.keys().all(|f| known.contains_key(f)), "{value} has fields of its own");
        let needed = schema["required"].as_array().unwrap();
        assert!(
            needed.iter().all(|f| fields.contains_key(f.as_str().unwrap())),
            "{value} lacks a field"
        );
        fields.iter().for_each(|(name, field)| fits(document, &known[name], field));
    }
}

fn answers_are_as_documented(engine: Engine) {
    let server = Server::start(engine);
    let (key, document) = (server.key(), document());
    let check = |method: &str, path: &str, request: Request| {
        let answer = server.ask(&request.key(&key));
        let operation = &document["paths"][path][method];
        let response = resolved(&document, &operation["responses"][answer.status.to_string()]);
        let kind = answer.header("content-type").unwrap();
        let schema = &response["content"][kind]["schema"];
        assert!(!schema.is_null(), "{method} {path}: no {kind} with {}", answer.status);
        fits(&document, schema, &answer.json());
        for header in response["headers"].as_object().unwrap().keys() {
            let there = answer.header(&header.to_ascii_lowercase()).is_some();
            let when_it_applies = ["Idempotent-Replayed", "RateLimit", "RateLimit-Policy"];
            let missing = !there && !when_it_applies.contains(&&**header);
            assert!(!missing, "{method} {path}: no {header}");
        }
        answer
    };
    let post = |path: &str, body: &Value| {
        Request::new("POST", path).header("Content-Type", "application/json").body(body.to_string())
    };
    let (sms, list) = ("/v1/send/sms", "/v1/optout-lists/{id}");
    for recipient in [ANN, "+447700900001", "+447700900009"] {
        let id = check("post", sms, post(sms, &hello(recipient))).json()["id"].clone();
        let id = id.as_str().unwrap();
        server.ended(&key, id);
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
    crate::patience::eventually("the reply is there", || {
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
