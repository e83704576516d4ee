//! Invalid requests to `POST /v1/send/sms`: each has its error code, and stores nothing.

use crate::support::api::{hello, problem};
use crate::support::http::Request;
use crate::support::server::Server;
use serde_json::json;

const ANN: &str = "+447700900123";

/// Name of a field | error code | invalid values as JSON.
const FIELDS: &str = r##"
    recipient        | required           | null
    recipient        | wrong_type         | 447700900123 | ["+447700900123"] | {"a": "1"} | true
    recipient        | invalid_number     | "" | " " | "+" | "07700900123" | "00447700900123"
    recipient        | invalid_number     | "+999 1234 5678" | "65" | "+44 7700" | "+1 555 2671"
    recipient        | invalid_number     | "+0447700900123" | "+44 7700 9001234" | "+65 9823 45678"
    recipient        | invalid_number     | "447700900123,447700900124" | "447700900123\n"
    recipient        | invalid_number     | "++447700900123" | "44+7700900123" | "tel:+447700900123"
    recipient        | invalid_number     | "+44 7700 900123 ext 5" | "+44/7700900123" | "Ann"
    recipient        | invalid_number     | "٤٤٧٧٠٠٩٠٠١٢٣" | "\ud83d\ude00"
    recipient        | invalid_character  | "+44770090\u00000123"
    originator       | required           | null
    originator       | wrong_type         | 123 | [] | 1.5
    originator       | invalid_originator | "" | "   " | " Shop" | "Shop " | "Twelve chars" | "Café"
    originator       | invalid_originator | "Sh\nop" | "Shop!" | "12" | "+1234567890123456" | "&"
    originator       | invalid_originator | "+44 7700 9001" | "00447700900123" | "07700900123" | "日本"
    originator       | invalid_originator | "+0044" | "000" | "123456789" | "++44"
    originator       | invalid_character  | "Shop\u0000"
    text             | required           | null | ""
    text             | wrong_type         | 1 | ["Hello"] | {} | false
    text             | invalid_character  | "Hel\u0000lo" | "\u0000"
    reference        | wrong_type         | 1.5 | {} | [] | true
    reference        | invalid_character  | "a\u0000b"
    validitySeconds  | out_of_range       | 0 | 59 | 259201 | -60 | 9223372036854775807
    validitySeconds  | wrong_type         | "60" | 60.5 | 18446744073709551615 | [60]
    maxParts         | out_of_range       | 0 | -1 | 256
    maxParts         | wrong_type         | "1" | 1.5 | true
    dryRun           | wrong_type         | "true" | 1 | []
    shortenUrl       | wrong_type         | "no" | 0
    shortenUrl       | not_available      | true
    blockOptout      | wrong_type         | "False" | "" | 0 | 1
    schedule         | not_available      | "2030-01-01T00:00:00Z" | "" | 1
    scheduleTimezone | not_available      | "Europe/London" | {}
    recipients       | unknown_field      | ["+447700900123"] | 1 | null"##;

/// A valid body in which one field has this value, given as JSON.
fn body_with(field: &str, value: &str) -> String {
    let mut body = hello(ANN);
    body.as_object_mut().unwrap().remove(field);
    let rest = body.to_string();
    format!("{},\"{field}\":{value}}}", rest.strip_suffix('}').unwrap())
}

#[test]
fn each_invalid_field_has_its_error_code() {
    let server = Server::start();
    let (key, before) = (server.key(), server.stored());
    let refused = |body: String, field: &str, code: &str| {
        let what = body.get(..200).unwrap_or(&body).to_owned();
        let faults = problem(&server.ask(&Request::send_sms(&key, body)), 400, "invalid_request");
        assert_eq!(faults, [(format!("#/{field}"), code.to_owned())], "{what}");
    };
    for row in FIELDS.lines().skip(1) {
        let mut columns = row.split(" | ").map(str::trim);
        let (field, code) = (columns.next().unwrap(), columns.next().unwrap());
        columns.for_each(|value| refused(body_with(field, value), field, code));
    }
    let long = |letter: &str, times| json!(letter.repeat(times)).to_string();
    refused(body_with("reference", &long("x", 256)), "reference", "too_long");
    refused(body_with("reference", &long("日", 256)), "reference", "too_long");
    refused(body_with("recipient", &long("1", 100_000)), "recipient", "invalid_number");
    refused(body_with("originator", &long("x", 100_000)), "originator", "invalid_originator");
    for field in ["originator", "recipient", "text"] {
        let mut body = hello(ANN);
        body.as_object_mut().unwrap().remove(field);
        refused(body.to_string(), field, "required");
    }
    assert_eq!(server.stored(), before);
}

/// Bodies that are not exactly one JSON object.
const NO_OBJECTS: &str = r#"
    { | {}} | {} {} | [] | [{}] | null | true | 1 | "text" | not json | {'text': 'x'} | {text: "x"}
    {"text": } | {"text"} | {"text": "x",} | {"text": NaN} | {"text": 1e400} | {"text": 01}
    {"text": "\x"} | {"text": "\ud800"} | {"text": "\udc00\ud800"}
    {"text": "\ud83d"} | {"\udc00": 1}"#;

#[test]
fn bodies_that_are_not_one_object_are_rejected() {
    let server = Server::start();
    let (key, before) = (server.key(), server.stored());
    let good = hello(ANN).to_string();
    let rows = NO_OBJECTS.lines().flat_map(|row| row.split(" | "));
    let mut bodies: Vec<Vec<u8>> = rows.map(|body| body.trim().into()).collect();
    bodies.extend([b" ".to_vec(), b"\0".to_vec(), b"{\"text\": \"line\nbreak\"}".to_vec()]);
    bodies.push(b"{\"text\": \"\xff\xfe\"}".to_vec());
    bodies.push(b"[".repeat(100_000));
    bodies.push(format!("{{{}\"z\":1}}", "\"a\":1,".repeat(1_000)).into());
    bodies.push(good.as_bytes()[..good.len() - 1].to_vec());
    // A valid body with trailing data.
    bodies.extend(["x", "{}", ",", "\0"].map(|tail| format!("{good}{tail}").into()));
    // UTF-16, and two byte order marks.
    bodies.push(good.encode_utf16().flat_map(u16::to_le_bytes).collect());
    bodies.push(format!("\u{feff}\u{feff}{good}").into());
    for body in bodies {
        let response = server.ask(&Request::send_sms(&key, &*body));
        let faults = problem(&response, 400, "invalid_request");
        assert_eq!(faults, [], "{}", String::from_utf8_lossy(&body[..body.len().min(80)]));
    }
    assert_eq!(server.stored(), before);
}

#[test]
fn all_invalid_fields_are_reported_at_once() {
    let server = Server::start();
    let (key, before) = (server.key(), server.stored());
    let body = r#"{"originator":"Twelve chars","recipient":"Ann","reference":7.5,"validitySeconds":1,
        "maxParts":0,"blockOptout":"no","shortenUrl":true,"schedule":"now","dryRun":"yes",
        "Text":"Hello","a/b~c":1,"originator":"Shop"}"#;
    let mut faults = problem(&server.ask(&Request::send_sms(&key, body)), 400, "invalid_request");
    faults.sort();
    let expected = [
        ("#/Text", "unknown_field"),
        ("#/a~1b~0c", "unknown_field"),
        ("#/blockOptout", "wrong_type"),
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
    // Equal duplicates are duplicates too, also with escapes.
    for twice in [r#""text":"Hello","text":"Hello""#, r#""text":"Hello","te\u0078t":"Hello""#] {
        let body = format!(r#"{{"originator":"Shop","recipient":"{ANN}",{twice}}}"#);
        let faults = problem(&server.ask(&Request::send_sms(&key, body)), 400, "invalid_request");
        assert_eq!(faults, [("#/text".to_owned(), "duplicate_field".to_owned())]);
    }
    assert_eq!(server.stored(), before);
}

#[test]
fn texts_with_too_many_parts_are_rejected() {
    let server = Server::start();
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

#[test]
fn headers_and_sizes_are_checked() {
    let server = Server::start();
    let (key, before) = (server.key(), server.stored());
    let body = hello(ANN).to_string();
    let post = || Request::new("POST", "/v1/send/sms").key(&key).body(body.clone());
    problem(&server.ask(&post()), 415, "unsupported_media_type");
    for kind in [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
        "json",
        "application/jsonp",
        "application/problem+json",
        "multipart/form-data; boundary=x",
    ] {
        let response = server.ask(&post().header("Content-Type", kind));
        problem(&response, 415, "unsupported_media_type");
    }
    let packed = post().header("Content-Type", "application/json");
    let response = server.ask(&packed.header("Content-Encoding", "gzip"));
    problem(&response, 415, "unsupported_media_type");
    let most = 1 << 20;
    for size in [most + 1, 3 * most] {
        let large = format!("{body}{}", " ".repeat(size - body.len()));
        problem(&server.ask(&Request::send_sms(&key, large)), 413, "payload_too_large");
    }
    for value in [b"".to_vec(), vec![b'x'; 256], "schl\u{fc}ssel".as_bytes().to_vec()] {
        let request =
            Request::send_sms(&key, body.clone()).header("Idempotency-Key", value.clone());
        let faults = problem(&server.ask(&request), 400, "invalid_request");
        let expected = ("header:Idempotency-Key".to_owned(), "invalid_idempotency_key".to_owned());
        assert_eq!(faults, [expected], "{value:?}");
    }
    let twice = Request::send_sms(&key, body.clone()).header("Idempotency-Key", "a");
    let faults =
        problem(&server.ask(&twice.header("Idempotency-Key", "a")), 400, "invalid_request");
    assert_eq!(faults.len(), 1);
    assert_eq!(server.stored(), before);
}
