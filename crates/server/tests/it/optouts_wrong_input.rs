//! Opt-out lists with everything that can be wrong: each has its answer, and changes nothing.

use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::optouts::{LISTS, NUMBERS, file};
use crate::server::Server;
use crate::wrong_input::problem;
use serde_json::json;

each_engine!(optouts_wrong_input: one_field_at_a_time queries_are_read_strictly
    files_that_are_none headers_and_sizes);

/// A field | the code of its fault | values, each as JSON; of a new list.
const OF_A_LIST: &str = r##"
    name   | required          | null
    name   | wrong_type        | 1 | [] | {"a": 1} | true | 1.5
    name   | invalid_name      | "" | "   " | "a\nb" | "a\tb" | "\u0007"
    name   | invalid_character | "a\u0000b"
    Name   | unknown_field     | "x" | null
    id     | unknown_field     | "00000000-0000-0000-0000-000000000000"
    number | unknown_field     | "+447700900123""##;

/// The same of a number on a list.
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

fn one_field_at_a_time(engine: Engine) {
    let server = Server::start(engine);
    let (key, before) = (server.key(), stored(&server));
    let refused = |path: &str, body: String, expected: &[(&str, &str)]| {
        let answer = server.ask(&Request::send_sms(&key, body.clone()).to(path));
        let faults = problem(&answer, 400, "invalid_request");
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

fn queries_are_read_strictly(engine: Engine) {
    let server = Server::start(engine);
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
        // Nonsense, Base64 of nonsense, and nothing.
        for cursor in ["%00", "x", "bm9uc2Vuc2U", "LTE", ""] {
            let request = Request::get(&format!("{path}?cursor={cursor}")).key(&key);
            refused(&request, "query:cursor", "invalid_cursor");
        }
        for other in ["Limit", "offset", "from"] {
            let request = Request::get(&format!("{path}?{other}=1")).key(&key);
            refused(&request, &format!("query:{other}"), "unknown_field");
        }
    }
    // The largest number that a cursor can name: nobody comes after.
    let last = Request::get(&format!("{NUMBERS}?cursor=MTg0NDY3NDQwNzM3MDk1NTE2MTU")).key(&key);
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

fn files_that_are_none(engine: Engine) {
    let server = Server::start(engine);
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
        let answer = server.ask(&file(&key, "default", csv));
        assert_eq!(problem(&answer, 400, "invalid_request"), [], "{csv:?}");
    }
    assert_eq!(stored(&server), before);
}

fn headers_and_sizes(engine: Engine) {
    let server = Server::start(engine);
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
            let answer = server.ask(&post().header("Content-Type", kind));
            problem(&answer, 415, "unsupported_media_type");
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
