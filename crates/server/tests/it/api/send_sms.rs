//! `POST /v1/send/sms`: accepted requests, and their outcome.

use crate::support::api::hello;
use crate::support::http::Request;
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use serde_json::{Value, json};

#[test]
fn simulated_numbers_have_their_documented_outcome() {
    let server = Server::start();
    let key = server.key();
    let failure =
        |code: &str, permanent: bool, carrier_code: &str| json!([code, permanent, carrier_code]);
    let expected = [
        ("447700900001", "FAILED", failure("unreachable", false, "011")),
        ("447700900002", "FAILED", failure("expired", false, "027")),
        ("447700900003", "FAILED", failure("invalid_recipient", true, "0x0000000B")),
        ("447700900004", "DELIVERED", Value::Null),
        ("447700900006", "SENT", Value::Null),
        ("447700900007", "DELIVERED", Value::Null),
        ("447700900008", "DELIVERED", Value::Null),
        ("447700900010", "DELIVERED", Value::Null),
    ];
    let ids = expected.each_ref().map(|(number, ..)| server.accepted(&key, &hello(number)));
    for ((number, status, failure), id) in expected.iter().zip(&ids) {
        let message = server.wait_for_status(&key, id, &["FAILED", "DELIVERED", status]);
        assert_eq!(message["status"], *status, "{message}");
        assert_eq!(message["recipient"], *number);
        let why = &message["failure"];
        let actual = json!([why["code"], why["permanent"], why["carrierCode"]]);
        assert_eq!(if why.is_null() { &Value::Null } else { &actual }, failure, "{message}");
        assert_eq!(why.is_null(), why["detail"].is_null());
        assert_eq!(message["possibleDuplicate"], false);
    }
    server.check();
}

#[test]
fn texts_arrive_unchanged() {
    let smsc = Smsc::start(&[]);
    let server = Server::with(&smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    for (text, encoding, parts) in [
        ("Hello".to_owned(), "GSM_7", 1),
        (
            "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ!\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà^{}\\[~]|€".into(),
            "GSM_7",
            1,
        ),
        ("x".repeat(160), "GSM_7", 1),
        ("x".repeat(161), "GSM_7", 2),
        ("Twelve words, ".repeat(32), "GSM_7", 3),
        ("€".repeat(229), "GSM_7", 4),
        ("Привет, мир ☀".into(), "UCS_2", 1),
        ("日本".repeat(35), "UCS_2", 1),
        ("日本".repeat(36), "UCS_2", 2),
        ("🚀".repeat(100), "UCS_2", 4),
        ("x".repeat(1_530), "GSM_7", 10),
        ("braces {are} {{literal}}".into(), "GSM_7", 1),
        ("`–”".into(), "UCS_2", 1),
    ] {
        let before = smsc.accepted().len();
        let body =
            json!({ "originator": "+447700900000", "recipient": "+447700900123", "text": text });
        let message = server.wait_until_ended(&key, &server.accepted(&key, &body));
        assert_eq!(message["status"], "DELIVERED", "{message}");
        let actual = [&message["encoding"], &message["parts"], &message["partsDelivered"]];
        assert_eq!(actual, [&json!(encoding), &json!(parts), &json!(parts)], "{message}");
        assert_eq!(
            (message["text"].as_str(), &message["originator"]),
            (Some(&*text), &json!("447700900000"))
        );
        assert_eq!(smsc.accepted()[before..].concat(), text);
        assert_eq!(smsc.accepted().len() - before, parts);
    }
    server.check();
}

#[test]
fn valid_values_are_accepted_and_normalized() {
    let server = Server::start();
    let key = server.key();
    for (field, value, returned) in [
        ("recipient", json!("447700900123"), json!("447700900123")),
        ("recipient", json!("+44 (7700) 900-123"), json!("447700900123")),
        ("recipient", json!("+44.7700.900.123"), json!("447700900123")),
        ("recipient", json!("6598234567"), json!("6598234567")),
        ("recipient", json!("\u{2b}14155550123"), json!("14155550123")),
        ("originator", json!("A-B_C&D. +1"), json!("A-B_C&D. +1")),
        ("originator", json!("x"), json!("x")),
        ("originator", json!("123"), json!("123")),
        ("originator", json!("+447700900000"), json!("447700900000")),
        ("originator", json!("+44 7700 900000"), json!("447700900000")),
        ("text", json!("\u{1F600}"), json!("\u{1F600}")),
        ("reference", json!("r".repeat(255)), json!("r".repeat(255))),
        ("reference", json!("日".repeat(255)), json!("日".repeat(255))),
        ("reference", json!(""), json!("")),
        ("reference", Value::Null, Value::Null),
        ("blockOptout", json!(false), Value::Null),
        ("blockOptout", Value::Null, Value::Null),
        ("shortenUrl", json!(false), Value::Null),
        ("schedule", Value::Null, Value::Null),
        ("scheduleTimezone", Value::Null, Value::Null),
        ("validitySeconds", json!(60), Value::Null),
        ("validitySeconds", json!(259_200), Value::Null),
        ("maxParts", json!(1), Value::Null),
        ("maxParts", Value::Null, Value::Null),
        ("dryRun", json!(false), Value::Null),
    ] {
        let mut body = hello("+447700900123");
        body[field] = value;
        let response = server.post(&key, &body);
        assert_eq!(response.status, 201, "{body}: {}", response.text());
        assert_eq!(response.json()[field], returned);
    }
    for kind in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json;charset=\"UTF-8\"",
    ] {
        let request = Request::new("POST", "/v1/send/sms").key(&key).header("Content-Type", kind);
        let response = server.ask(&request.body(hello("+447700900123").to_string()));
        assert_eq!(response.status, 201, "{kind}: {}", response.text());
    }
    let request = Request::send_sms("", hello("+447700900123").to_string());
    assert_eq!(server.ask(&request).status, 401);
}

/// The body has the maximum size, including whitespace.
#[test]
fn the_largest_body_is_accepted() {
    let server = Server::start();
    let body = hello("+447700900123").to_string();
    let most = 1 << 20;
    let request =
        Request::send_sms(&server.key(), format!("{body}{}", " ".repeat(most - body.len())));
    assert_eq!(server.ask(&request).status, 201);
}

#[test]
fn a_chunked_body_is_accepted() {
    let server = Server::start();
    let mut connection = crate::support::http::Connection::open(server.address()).unwrap();
    let body = hello("+447700900123").to_string();
    let (first, rest) = body.split_at(10);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let head = format!(
        "POST /v1/send/sms HTTP/1.1\r\nHost: test\r\nAuthorization: bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.key()
    );
    connection
        .write(format!("{head}{}{}{}", chunk(first), chunk(rest), chunk("")).as_bytes())
        .unwrap();
    assert_eq!(connection.response().unwrap().status, 201);
}
