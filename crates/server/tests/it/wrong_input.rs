//! `POST /v1/send/sms` with everything that can be wrong: each has its answer, and stores nothing.

use crate::database::{Engine, each_engine};
use crate::http::{Answer, Request};
use crate::send_sms::hello;
use crate::server::Server;
use serde_json::{Value, json};

each_engine!(wrong_input: one_field_at_a_time bodies_that_are_no_object everything_at_once
    parts_beyond_the_limit headers_and_sizes);

const ANN: &str = "+447700900123";

/// What every refusal looks like; the faults as (pointer, code).
pub(crate) fn problem(answer: &Answer, status: u16, code: &str) -> Vec<(String, String)> {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let body = answer.json();
    assert_eq!(body["type"], format!("/docs/errors/{code}"));
    assert_eq!((&body["status"], &body["code"]), (&json!(status), &json!(code)));
    assert_eq!(body["requestId"].as_str(), answer.header("x-request-id"));
    for sentence in ["title", "detail"] {
        assert!(body[sentence].as_str().is_some_and(|s| s.len() > 5), "{body}");
    }
    let known = ["type", "title", "status", "detail", "code", "requestId", "errors"];
    assert!(body.as_object().unwrap().keys().all(|k| known.contains(&k.as_str())), "{body}");
    let faults = body["errors"].as_array().cloned().unwrap_or_default();
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    assert!(faults.iter().all(|f| text(&f["detail"]).ends_with('.')), "{body}");
    faults.iter().map(|f| (text(&f["pointer"]), text(&f["code"]))).collect()
}

fn one_field_at_a_time(engine: Engine) {
    let server = Server::start(engine);
    let (key, before) = (server.key(), server.stored());
    let long = "x".repeat(256);
    let cases: [(&str, &str, &[Value]); 12] = [
        ("recipient", "required", &[Value::Null]),
        ("recipient", "wrong_type", &[json!(447_700_900_123_u64), json!([ANN]), json!({ "number": ANN }), json!(true)]),
        ("recipient", "invalid_number", &[
            json!(""), json!(" "), json!("+"), json!("07700900123"), json!("00447700900123"), json!("+0447700900123"),
            json!("+999 1234 5678"), json!("65"), json!("+44 7700"), json!("+1 555 2671"), json!("+65 9823 45678"),
            json!("+44 7700 9001234"), json!("447700900123,447700900124"), json!("447700900123\n"), json!("++447700900123"),
            json!("44+7700900123"), json!("+44 7700 900123 ext 5"), json!("tel:+447700900123"), json!("Ann"),
            json!("٤٤٧٧٠٠٩٠٠١٢٣"), json!("+44/7700900123"), json!("1".repeat(100_000)),
        ]),
        ("originator", "required", &[Value::Null]),
        ("originator", "wrong_type", &[json!(123), json!([]), json!(1.5)]),
        ("originator", "invalid_originator", &[
            json!(""), json!("   "), json!(" Shop"), json!("Shop "), json!("Twelve chars"), json!("Café"), json!("Shop!"),
            json!("Sh\nop"), json!("12"), json!("+1234567890123456"), json!("+44 7700 900123"), json!("&"), json!("日本"),
            json!("x".repeat(100_000)),
        ]),
        ("text", "required", &[Value::Null, json!("")]),
        ("text", "wrong_type", &[json!(1), json!(["Hello"]), json!({}), json!(false)]),
        ("text", "invalid_character", &[json!("Hel\0lo"), json!("\0")]),
        ("reference", "wrong_type", &[json!(1), json!({}), json!([]), json!(true)]),
        ("reference", "too_long", &[json!(long), json!("日".repeat(256))]),
        ("reference", "invalid_character", &[json!("a\0b")]),
    ];
    let more: [(&str, &str, &[Value]); 12] = [
        ("validitySeconds", "out_of_range", &[json!(0), json!(59), json!(259_201), json!(-60), json!(i64::MAX)]),
        ("validitySeconds", "wrong_type", &[json!("60"), json!(60.5), json!(60.0), json!(u64::MAX), json!([60])]),
        ("maxParts", "out_of_range", &[json!(0), json!(-1), json!(256)]),
        ("maxParts", "wrong_type", &[json!("1"), json!(1.5), json!(true)]),
        ("dryRun", "wrong_type", &[json!("true"), json!(1), json!([])]),
        ("shortenUrl", "wrong_type", &[json!("false"), json!(0)]),
        ("shortenUrl", "not_available", &[json!(true)]),
        ("blockOptout", "wrong_type", &[json!("false"), json!(0)]),
        ("blockOptout", "not_available", &[json!(true)]),
        ("schedule", "not_available", &[json!("2030-01-01T00:00:00Z"), json!(""), json!(1)]),
        ("scheduleTimezone", "not_available", &[json!("Europe/London"), json!({})]),
        ("recipients", "unknown_field", &[json!([ANN]), json!(1), Value::Null]),
    ];
    for (field, code, values) in cases.into_iter().chain(more) {
        for value in values {
            let mut body = hello(ANN);
            body[field] = value.clone();
            let faults = problem(&server.post(&key, &body), 400, "invalid_request");
            assert_eq!(faults, [(format!("#/{field}"), code.to_owned())], "{field}: {value}");
        }
    }
    for field in ["originator", "recipient", "text"] {
        let mut body = hello(ANN);
        body.as_object_mut().unwrap().remove(field);
        let faults = problem(&server.post(&key, &body), 400, "invalid_request");
        assert_eq!(faults, [(format!("#/{field}"), "required".to_owned())]);
    }
    assert_eq!(server.stored(), before);
}

fn bodies_that_are_no_object(engine: Engine) {
    let server = Server::start(engine);
    let (key, before) = (server.key(), server.stored());
    let good = hello(ANN).to_string();
    let (nested, many) = ("[".repeat(100_000), format!("{{{}\"z\":1}}", "\"a\":1,".repeat(1_000)));
    let bodies: [&[u8]; 24] = [
        b"", b" ", b"{", b"{}}", b"[]", b"[{}]", b"null", b"true", b"1", b"\"text\"", b"not json", b"{'text': 'x'}",
        b"{\"text\": \"x\",}", b"{\"text\": }", b"{\"text\"}", b"{text: \"x\"}", b"{\"text\": \"\xff\xfe\"}",
        b"{\"text\": \"\\ud800\"}", b"{\"text\": \"\\udc00\\ud800\"}", b"{\"text\": \"line\nbreak\"}",
        b"{\"text\": NaN}", good[..good.len() - 1].as_bytes(), nested.as_bytes(), many.as_bytes(),
    ];
    for body in bodies {
        let answer = server.ask(&Request::send_sms(&key, body));
        let faults = problem(&answer, 400, "invalid_request");
        assert_eq!(faults, [], "{}", String::from_utf8_lossy(&body[..body.len().min(80)]));
    }
    // A body that is right up to its end, and then goes on.
    for tail in ["x", "{}", ",", "\0"] {
        problem(&server.ask(&Request::send_sms(&key, format!("{good}{tail}"))), 400, "invalid_request");
    }
    // The same in another encoding, and behind a byte order mark.
    let utf16: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
    problem(&server.ask(&Request::send_sms(&key, utf16)), 400, "invalid_request");
    problem(&server.ask(&Request::send_sms(&key, format!("\u{feff}{good}"))), 400, "invalid_request");
    assert_eq!(server.stored(), before);
}

fn everything_at_once(engine: Engine) {
    let server = Server::start(engine);
    let (key, before) = (server.key(), server.stored());
    let body = r#"{"originator":"Twelve chars","recipient":"Ann","reference":7,"validitySeconds":1,"maxParts":0,
        "blockOptout":true,"shortenUrl":true,"schedule":"now","dryRun":"yes","Text":"Hello","a/b~c":1,
        "originator":"Shop"}"#;
    let mut faults = problem(&server.ask(&Request::send_sms(&key, body)), 400, "invalid_request");
    faults.sort();
    let expected = [
        ("#/Text", "unknown_field"),
        ("#/a~1b~0c", "unknown_field"),
        ("#/blockOptout", "not_available"),
        ("#/dryRun", "wrong_type"),
        ("#/maxParts", "out_of_range"),
        ("#/originator", "duplicate_field"),
        ("#/originator", "invalid_originator"),
        ("#/recipient", "invalid_number"),
        ("#/reference", "wrong_type"),
        ("#/schedule", "not_available"),
        ("#/shortenUrl", "not_available"),
        ("#/text", "required"),
        ("#/validitySeconds", "out_of_range"),
    ];
    assert_eq!(faults, expected.map(|(p, c)| (p.to_owned(), c.to_owned())));
    // Twice the same is still twice, also when it is written otherwise.
    for twice in [r#""text":"Hello","text":"Hello""#, r#""text":"Hello","te\u0078t":"Hello""#] {
        let body = format!(r#"{{"originator":"Shop","recipient":"{ANN}",{twice}}}"#);
        let faults = problem(&server.ask(&Request::send_sms(&key, body)), 400, "invalid_request");
        assert_eq!(faults, [("#/text".to_owned(), "duplicate_field".to_owned())]);
    }
    assert_eq!(server.stored(), before);
}

fn parts_beyond_the_limit(engine: Engine) {
    let server = Server::start(engine);
    let (key, before) = (server.key(), server.stored());
    for (text, most) in [
        ("x".repeat(1_531), None),
        ("€".repeat(766), None),
        ("日".repeat(671), None),
        ("x".repeat(1_000_000), None),
        ("x".repeat(161), Some(1)),
        ("x".repeat(1_531), Some(255)),
        ("日".repeat(71), Some(1)),
    ] {
        let mut body = hello(ANN);
        (body["text"], body["maxParts"]) = (json!(text), json!(most));
        for dry_run in [false, true] {
            body["dryRun"] = json!(dry_run);
            let faults = problem(&server.post(&key, &body), 400, "invalid_request");
            assert_eq!(faults, [("#/text".to_owned(), "too_many_parts".to_owned())]);
        }
    }
    assert_eq!(server.stored(), before);
}

fn headers_and_sizes(engine: Engine) {
    let server = Server::start(engine);
    let (key, before) = (server.key(), server.stored());
    let body = hello(ANN).to_string();
    let post = || Request::new("POST", "/v1/send/sms").key(&key).body(body.clone());
    problem(&server.ask(&post()), 415, "unsupported_media_type");
    for kind in ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "json",
        "application/jsonp", "application/problem+json", "multipart/form-data; boundary=x"]
    {
        let answer = server.ask(&post().header("Content-Type", kind));
        problem(&answer, 415, "unsupported_media_type");
    }
    let most = 1 << 20;
    for size in [most + 1, 3 * most] {
        let large = format!("{body}{}", " ".repeat(size - body.len()));
        problem(&server.ask(&Request::send_sms(&key, large)), 413, "payload_too_large");
    }
    for value in [b"".to_vec(), vec![b'x'; 256], "schl\u{fc}ssel".as_bytes().to_vec(), b"a\tb".to_vec()] {
        let request = Request::send_sms(&key, body.clone()).header("Idempotency-Key", value.clone());
        let faults = problem(&server.ask(&request), 400, "invalid_request");
        let expected = ("header:Idempotency-Key".to_owned(), "invalid_idempotency_key".to_owned());
        assert_eq!(faults, [expected], "{value:?}");
    }
    let twice = Request::send_sms(&key, body.clone()).header("Idempotency-Key", "a");
    let faults = problem(&server.ask(&twice.header("Idempotency-Key", "a")), 400, "invalid_request");
    assert_eq!(faults.len(), 1);
    assert_eq!(server.stored(), before);
}
