//! Invalid requests to `/v1/optout-lists`: each has its error code, and changes nothing.

use crate::support::api::problem;
use crate::support::http::Request;
use crate::support::optouts::{LISTS, NUMBERS, file};
use crate::support::server::Server;
use serde_json::json;

/// Fields of a new list: name | error code | invalid values as JSON.
const OF_A_LIST: &str = r##"
    name   | required          | null
    name   | wrong_type        | 1 | [] | {"a": 1} | true | 1.5
    name   | invalid_name      | "" | "   " | "a\nb" | "a\tb" | "\u0007"
    name   | invalid_character | "a\u0000b"
    Name   | unknown_field     | "x" | null
    id     | unknown_field     | "00000000-0000-0000-0000-000000000000"
    number | unknown_field     | "+447700900123""##;

/// Fields of a number on a list, in the same format.
const OF_A_NUMBER: &str = r##"
    number  | required          | null
    number  | wrong_type        | 447700900123 | ["+447700900123"] | {} | false
    number  | invalid_number    | "" | "+" | "07700900123" | "12" | "Ann" | "447700900123\n"
    number  | invalid_character | "44770090\u00000123"
    note    | wrong_type        | 1 | [] | {} | true
    note    | invalid_character | "a\u0000b"
    numbers | unknown_field     | ["+447700900123"]
    source  | unknown_field     | "reply""##;

fn stored(server: &Server) -> i64 {
    let count = |table: &str| server.database.number(&format!("SELECT count(*) FROM {table}"));
    count("optout_lists") + count("optouts")
}

#[test]
fn each_invalid_field_has_its_error_code() {
    let server = Server::start();
    let (key, before) = (server.key(), stored(&server));
    let refused = |path: &str, body: String, expected: &[(&str, &str)]| {
        let response = server.ask(&Request::send_sms(&key, body.clone()).to(path));
        let faults = problem(&response, 400, "invalid_request");
        let faults: Vec<_> = faults.iter().map(|(p, c)| (p.as_str(), c.as_str())).collect();
        assert_eq!(faults, expected, "{}", body.get(..200).unwrap_or(&body));
    };
    for (path, table, good) in [
        (LISTS, OF_A_LIST, ("name", "\"Sale\"")),
        (NUMBERS, OF_A_NUMBER, ("number", "\"+447700900123\"")),
    ] {
        for row in table.lines().skip(1) {
            let mut columns = row.split(" | ").map(str::trim);
            let (field, code) = (columns.next().unwrap(), columns.next().unwrap());
            for value in columns {
                let rest = if field == good.0 {
                    String::new()
                } else {
                    format!(",\"{}\":{}", good.0, good.1)
                };
                let body = format!("{{\"{field}\":{value}{rest}}}");
                refused(path, body, &[(&format!("#/{field}"), code)]);
            }
        }
        let (field, value) = good;
        refused(path, "{}".to_owned(), &[(&format!("#/{field}"), "required")]);
        let twice = format!("{{\"{field}\":{value},\"{field}\":{value}}}");
        refused(path, twice, &[(&format!("#/{field}"), "duplicate_field")]);
        for body in ["", "[]", "null", "\"Sale\"", "{", "{}{}"] {
            refused(path, body.to_owned(), &[]);
        }
    }
    refused(LISTS, json!({ "name": "日".repeat(101) }).to_string(), &[("#/name", "invalid_name")]);
    let long = json!({ "number": "447700900123", "note": "日".repeat(256) });
    refused(NUMBERS, long.to_string(), &[("#/note", "too_long")]);
    let both = json!({ "number": 7, "note": 7 }).to_string();
    refused(NUMBERS, both, &[("#/number", "wrong_type"), ("#/note", "wrong_type")]);
    assert_eq!(stored(&server), before);
    let longest = json!({ "name": "日".repeat(100) }).to_string();
    assert_eq!(server.ask(&Request::send_sms(&key, longest).to(LISTS)).status, 201);
}

/// A cursor of the numbers on the default list, behind the largest number that it can contain.
const LAST: &str = "NzlmNDA1NTcyMWJlNTg5OTE4NDQ2NzQ0MDczNzA5NTUxNjE1";

#[test]
fn invalid_queries_are_rejected() {
    let server = Server::start();
    let (key, before) = (server.key(), stored(&server));
    let refused = |request: &Request, pointer: &str, code: &str| {
        let faults = problem(&server.ask(request), 400, "invalid_request");
        assert_eq!(faults, [(pointer.to_owned(), code.to_owned())], "{request:?}");
    };
    for path in [LISTS, NUMBERS, "/v1/inbound-messages"] {
        for limit in ["0", "-1", "101", "ten", "", "1.0", "99999999999999999999"] {
            let request = Request::get(&format!("{path}?limit={limit}")).key(&key);
            refused(&request, "query:limit", "out_of_range");
        }
        // Not Base64, Base64 of other text, and empty.
        for cursor in ["%00", "x", "bm9uc2Vuc2U", "LTE", ""] {
            let request = Request::get(&format!("{path}?cursor={cursor}")).key(&key);
            refused(&request, "query:cursor", "invalid_cursor");
        }
        for other in ["Limit", "offset", "from"] {
            let request = Request::get(&format!("{path}?{other}=1")).key(&key);
            refused(&request, &format!("query:{other}"), "unknown_field");
        }
    }
    // The largest number that a cursor can contain has no successor.
    let last = Request::get(&format!("{NUMBERS}?cursor={LAST}")).key(&key);
    let nobody = json!({ "data": [], "nextCursor": null });
    assert_eq!(server.ask(&last).json(), nobody);
    let of_one = format!("{NUMBERS}/447700900123");
    for (method, path) in [
        ("POST", LISTS),
        ("POST", NUMBERS),
        ("GET", "/v1/optout-lists/default"),
        ("DELETE", "/v1/optout-lists/default"),
        ("GET", &of_one),
        ("DELETE", &of_one),
        ("POST", "/v1/optout-lists/default/numbers/import"),
        ("GET", "/v1/inbound-messages/00000000-0000-0000-0000-000000000000"),
    ] {
        let request = Request::new(method, &format!("{path}?dryRun=true")).key(&key);
        refused(&request, "query", "unknown_field");
    }
    assert_eq!(stored(&server), before);
}

#[test]
fn files_without_a_number_column_are_rejected() {
    let server = Server::start();
    let (key, before) = (server.key(), stored(&server));
    for csv in [
        &b""[..],
        b"\n\n",
        b"\xef\xbb\xbf",
        b"447700900123\n447700900124\n",
        b"phone,note\n447700900123,x\n",
        b"number;note\n447700900123;x\n",
        b"\xff\xfen\0u\0m\0b\0e\0r\0",
        br#"[{"number": "447700900123"}]"#,
    ] {
        let response = server.ask(&file(&key, "default", csv));
        assert_eq!(problem(&response, 400, "invalid_request"), [], "{csv:?}");
    }
    assert_eq!(stored(&server), before);
}

#[test]
fn content_types_and_sizes_are_checked() {
    let server = Server::start();
    let (key, before) = (server.key(), stored(&server));
    let import = format!("{NUMBERS}/import");
    for (path, kinds, body) in [
        (LISTS, ["text/csv", "", "application/jsonp"], json!({ "name": "Sale" }).to_string()),
        (NUMBERS, ["text/csv", "", "text/json"], json!({ "number": "447700900123" }).to_string()),
        (
            &*import,
            ["application/json", "", "text/csv; charset=latin1"],
            "number\n447700900123\n".to_owned(),
        ),
    ] {
        let post = || Request::new("POST", path).key(&key).body(body.clone());
        problem(&server.ask(&post()), 415, "unsupported_media_type");
        for kind in kinds {
            let response = server.ask(&post().header("Content-Type", kind));
            problem(&response, 415, "unsupported_media_type");
        }
    }
    for (path, body) in [
        (LISTS, json!({ "name": "Sale" }).to_string()),
        (NUMBERS, json!({ "number": "447700900123" }).to_string()),
    ] {
        let large = format!("{body}{}", " ".repeat((1 << 20) + 1 - body.len()));
        let request = Request::send_sms(&key, large).to(path);
        problem(&server.ask(&request), 413, "payload_too_large");
    }
    let most = 16 << 20;
    let csv = |size: usize| format!("number\n{}", "\n".repeat(size - "number\n".len()));
    problem(&server.ask(&file(&key, "default", csv(most + 1))), 413, "payload_too_large");
    assert_eq!(server.ask(&file(&key, "default", csv(most))).status, 200);
    assert_eq!(stored(&server), before);
}
