//! `/v1/optout-lists`: lists, their numbers, imports, and access.

use crate::support::api::{data, get, hello, post, problem};
use crate::support::http::{HttpResponse, Request};
use crate::support::optouts::{LISTS, NUMBERS, add, file, make};
use crate::support::server::Server;
use serde_json::{Value, json};

const DEMO: &str = "demo@localhost";

fn delete(key: &str, path: &str) -> Request {
    Request::new("DELETE", path).key(key)
}

fn is_no_content(response: &HttpResponse) {
    assert_eq!((response.status, response.text()), (204, String::new()));
}

#[test]
fn lists_can_be_created_read_and_deleted() {
    let server = Server::start();
    let key = server.key();
    let first = get(&server, &key, &format!("{LISTS}/default"));
    let field = |name: &str| first[name].clone();
    let expected = json!({ "id": field("id"), "name": "default", "default": true, "mode": "test",
                           "createdAt": field("createdAt") });
    assert_eq!(first, expected);
    let response = server.ask(&post(&key, LISTS, &json!({ "name": "  Spring sale ☀ " })));
    assert_eq!(response.status, 201, "{}", response.text());
    let made = response.json();
    assert_eq!((&made["name"], &made["default"]), (&json!("Spring sale ☀"), &json!(false)));
    let path = response.header("location").unwrap().to_owned();
    assert_eq!(path, format!("{LISTS}/{}", made["id"].as_str().unwrap()));
    assert_eq!(get(&server, &key, &path), made);
    // Two lists cannot have the same name.
    let again = server.ask(&post(&key, LISTS, &json!({ "name": "Spring sale ☀" })));
    assert_eq!(problem(&again, 409, "conflict"), []);
    let other = make(&server, &key, "Summer sale ☀");
    assert_eq!(data(&server, &key, LISTS).len(), 3);
    let numbers = format!("{path}/numbers");
    let number = json!({ "number": "+447700900123" });
    assert_eq!(server.ask(&post(&key, &numbers, &number)).status, 201);
    is_no_content(&server.ask(&delete(&key, &path)));
    for request in [Request::get(&path).key(&key), delete(&key, &path)] {
        problem(&server.ask(&request), 404, "not_found");
    }
    problem(&server.ask(&Request::get(&numbers).key(&key)), 404, "not_found");
    assert_eq!(server.database.number("SELECT count(*) FROM optouts"), 0);
    assert_eq!(data(&server, &key, LISTS)[1]["id"], other.as_str());
    let by_id = format!("{LISTS}/{}", first["id"].as_str().unwrap());
    for path in [&by_id, &format!("{LISTS}/default")] {
        assert_eq!(problem(&server.ask(&delete(&key, path)), 409, "conflict"), []);
    }
    assert_eq!(get(&server, &key, &by_id), first);
}

/// Reads all pages of a list; returns the items and the number of pages.
fn walk(server: &Server, key: &str, path: &str, limit: usize) -> (Vec<Value>, usize) {
    let (mut all, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = get(server, key, &format!("{path}?limit={limit}{cursor}"));
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= limit, "{page}");
        all.extend(data.clone());
        pages += 1;
        let Some(next) = page["nextCursor"].as_str() else { return (all, pages) };
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn lists_have_pages() {
    let server = Server::start();
    let key = server.key();
    (0..5).for_each(|n| drop(make(&server, &key, &format!("List {n}"))));
    for (limit, pages) in [(1, 6), (4, 2), (5, 2), (6, 1), (100, 1)] {
        let (all, turned) = walk(&server, &key, LISTS, limit);
        assert!(all.is_sorted_by_key(|l| l["createdAt"].to_string()), "{all:?}");
        // Lists of the same millisecond are in any order.
        let mut names: Vec<_> = all.iter().map(|l| l["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["List 0", "List 1", "List 2", "List 3", "List 4", "default"]);
        assert_eq!(turned, pages, "{limit}");
    }
}

#[test]
fn a_number_keeps_its_first_source_and_note() {
    let server = Server::start();
    let key = server.key();
    let body = json!({ "number": "+44 (7700) 900-123", "note": "Asked by phone" });
    let response = add(&server, &key, "default", &body);
    assert_eq!(response.status, 201, "{}", response.text());
    let first = response.json();
    let expected = json!({
        "number": "447700900123", "source": "api", "inboundMessageId": null, "originator": null,
        "note": "Asked by phone", "createdAt": first["createdAt"],
    });
    assert_eq!(first, expected);
    let path = format!("{NUMBERS}/447700900123");
    assert_eq!(response.header("location"), Some(&*path));
    assert_eq!(get(&server, &key, &path), first);
    assert_eq!(get(&server, &key, &format!("{NUMBERS}/%2B44-7700-900123")), first);
    let again = add(&server, &key, "default", &json!({ "number": "447700900123", "note": "Mail" }));
    assert_eq!((again.status, again.header("location"), again.json()), (200, None, first));
    for path in ["447700900124", "nobody", "1", "%00"].map(|n| format!("{NUMBERS}/{n}")) {
        problem(&server.ask(&Request::get(&path).key(&key)), 404, "not_found");
        problem(&server.ask(&delete(&key, &path)), 404, "not_found");
    }
    is_no_content(&server.ask(&delete(&key, &path)));
    problem(&server.ask(&Request::get(&path).key(&key)), 404, "not_found");
    problem(&server.ask(&delete(&key, &path)), 404, "not_found");
    let note = "日".repeat(255);
    let new = add(&server, &key, "default", &json!({ "number": "447700900123", "note": note }));
    assert_eq!((new.status, &new.json()["note"]), (201, &json!(note)));
}

#[test]
fn numbers_have_pages() {
    let server = Server::start();
    let key = server.key();
    for n in [126, 123, 125, 124, 127] {
        let number = format!("+447700900{n}");
        assert_eq!(add(&server, &key, "default", &json!({ "number": number })).status, 201);
    }
    for (limit, pages) in [(1, 5), (2, 3), (5, 1)] {
        let (all, turned) = walk(&server, &key, NUMBERS, limit);
        let numbers: Vec<_> = all.iter().map(|o| o["number"].as_str().unwrap()).collect();
        assert_eq!(numbers, [123, 124, 125, 126, 127].map(|n| format!("447700900{n}")));
        assert_eq!(turned, pages, "{limit}");
    }
    // A cursor stays valid if the number it points to is deleted.
    let page = get(&server, &key, &format!("{NUMBERS}?limit=2"));
    is_no_content(&server.ask(&delete(&key, &format!("{NUMBERS}/447700900124"))));
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = data(&server, &key, &format!("{NUMBERS}?cursor={cursor}"));
    assert_eq!((rest.len(), &rest[0]["number"]), (3, &json!("447700900125")));
}

#[test]
fn only_the_default_list_blocks_messages() {
    let server = Server::start();
    let nodes = server.other_nodes();
    let key = server.key();
    let (other, ann) = (make(&server, &key, "Sale"), json!({ "number": "+447700900123" }));
    assert_eq!(add(&server, &key, &other, &ann).status, 201);
    server.accepted(&key, &hello("+447700900123"));
    assert_eq!(add(&server, &key, "default", &ann).status, 201);
    let stored = server.stored();
    for node in nodes.iter().chain([&server]) {
        for dry in [false, true] {
            let mut body = hello("+447700900123");
            body["dryRun"] = json!(dry);
            problem(&node.post(&key, &body), 403, "recipient_opted_out");
        }
    }
    assert!(server.stored() <= stored);
    let mut body = hello("+447700900123");
    (body["dryRun"], body["blockOptout"]) = (json!(true), json!(false));
    assert_eq!(server.post(&key, &body).status, 200);
    server.accepted(&key, &hello("+447700900124"));
}

#[test]
fn an_import_reports_each_invalid_row() {
    let server = Server::start();
    let key = server.key();
    assert_eq!(add(&server, &key, "default", &json!({ "number": "447700900123" })).status, 201);
    let mut csv = "\u{feff}Name,NUMBER, note \r\nAnn,+44 7700 900123,there already\r\n\
                   Bob,447700900124,\"by mail, twice\"\r\nBob,447700900124,twice in one file\r\n\
                   Eve,07700900125,no country\r\n,,\r\nZoe\r\nKim,+6598234567\r\nX,12345,\r\n"
        .as_bytes()
        .to_vec();
    csv.extend(b"Y,\xff\xfe,\r\n");
    csv.extend(format!("Z,447700900126,{}\r\n", "n".repeat(256)).into_bytes());
    csv.extend(b"N,447700900127,a\0b\r\n");
    let response = server.ask(&file(&key, "default", csv));
    assert_eq!(response.status, 200, "{}", response.text());
    let result = response.json();
    let counts = ["added", "alreadyListed", "invalid"].map(|name| result[name].clone());
    assert_eq!(json!(counts), json!([2, 2, 7]));
    let rows: Vec<_> = result["errors"].as_array().unwrap().iter().collect();
    let wrong = rows.iter().map(|r| json!([r["row"], r["number"]])).collect::<Vec<_>>();
    let expected = json!([
        [5, "07700900125"],
        [6, ""],
        [7, ""],
        [9, "12345"],
        [10, ""],
        [11, "447700900126"],
        [12, "447700900127"],
    ]);
    assert_eq!(json!(wrong), expected);
    assert!(rows.iter().all(|r| r["detail"].as_str().unwrap().len() > 10), "{result}");
    let listed = data(&server, &key, NUMBERS);
    let result = listed.iter().map(|o| json!([o["number"], o["source"], o["note"]]));
    let expected = json!([
        ["6598234567", "import", null],
        ["447700900123", "api", null],
        ["447700900124", "import", "by mail, twice"],
    ]);
    assert_eq!(json!(result.collect::<Vec<_>>()), expected);
    let only_a_head = server.ask(&file(&key, "default", "number\n"));
    let nothing = json!({ "added": 0, "alreadyListed": 0, "invalid": 0, "errors": [] });
    assert_eq!((only_a_head.status, only_a_head.json()), (200, nothing));
}

/// The file has more rows than one transaction, and more invalid rows than the response lists.
#[test]
fn a_long_file_is_imported_completely() {
    let server = Server::start();
    let key = server.key();
    let good: String = (0..2_500).map(|n| format!("44770090{n:04}\n")).collect();
    let bad = "nobody\n".repeat(1_001);
    let csv = format!("number\n{good}{bad}");
    for (added, already) in [(2_500, 0), (0, 2_500)] {
        let result = server.ask(&file(&key, "default", csv.clone())).json();
        let counts = ["added", "alreadyListed", "invalid"].map(|name| result[name].clone());
        assert_eq!(json!(counts), json!([added, already, 1_001]));
        assert_eq!(result["errors"].as_array().unwrap().len(), 1_000);
    }
    assert_eq!(walk(&server, &key, NUMBERS, 100).0.len(), 2_500);
}

/// Returns all requests about a list: those that read it, and those that change it.
fn all(key: &str, list: &str) -> (Vec<Request>, Vec<Request>) {
    let one = format!("{LISTS}/{list}");
    let (numbers, number) = (format!("{one}/numbers"), format!("{one}/numbers/447700900123"));
    let looks = [&one, &numbers, &number].map(|path| Request::get(path).key(key));
    let changes = [
        post(key, &numbers, &json!({ "number": "+447700900124" })),
        file(key, list, "number\n447700900124\n"),
        file(key, list, "number\n"),
        delete(key, &number),
        delete(key, &one),
    ];
    (looks.into(), changes.into())
}

#[test]
fn reading_needs_read_and_changing_needs_manage() {
    let server = Server::start();
    let first_key = server.key();
    let list = make(&server, &first_key, "Sale");
    add(&server, &first_key, &list, &json!({ "number": "447700900123" }));
    let key = |scope: &str| server.stdout(&["key", "create", "--account", DEMO, "--scope", scope]);
    let (send, read, manage) = (key("send"), key("read"), key("manage"));
    let refused = |request: &Request, scope: &str| {
        let response = server.ask(request);
        problem(&response, 403, "scope_missing");
        assert!(response.text().contains(&format!("'{scope}'")), "{}", response.text());
    };
    for key in [&send, &read] {
        all(key, &list).1.iter().for_each(|r| refused(r, "manage"));
        refused(&post(key, LISTS, &json!({ "name": "Mine" })), "manage");
    }
    for key in [&send, &manage] {
        all(key, &list).0.iter().for_each(|r| refused(r, "read"));
        for path in [LISTS, "/v1/inbound-messages"] {
            refused(&Request::get(path).key(key), "read");
        }
    }
    assert!(all(&read, &list).0.iter().all(|r| server.ask(r).status == 200));
    assert!(all(&manage, &list).1.iter().all(|r| server.ask(r).status < 300));
    make(&server, &manage, "Mine");
}

#[test]
fn lists_of_another_account_or_mode_are_hidden() {
    let server = Server::start();
    let key = server.key();
    let list = make(&server, &key, "Sale");
    let ann = json!({ "number": "447700900123" });
    assert_eq!(add(&server, &key, &list, &ann).status, 201);
    assert_eq!(add(&server, &key, "default", &ann).status, 201);
    let standard = get(&server, &key, &format!("{LISTS}/default"));
    let live = server.stdout(&["key", "create", "--account", DEMO, "--live"]);
    let stranger = server.live_key("bob@example.com", "0");
    let stranger_test = server.stdout(&["key", "create", "--account", "bob@example.com"]);
    let nil = "00000000-0000-0000-0000-000000000000";
    let theirs = [list.as_str(), standard["id"].as_str().unwrap()];
    let unknown = ["nobody", "Default", nil, "%00", &list[1..]];
    let others = [&live, &stranger, &stranger_test].map(|key| (key, &theirs[..]));
    for (key, lists) in others.into_iter().chain([(&key, &unknown[..])]) {
        for list in lists {
            let (looks, changes) = all(key, list);
            for request in looks.iter().chain(&changes) {
                let response = server.ask(request);
                assert_eq!(response.status, 404, "{request:?}: {}", response.text());
                problem(&response, 404, "not_found");
            }
        }
    }
    for other in [&live, &stranger, &stranger_test] {
        let lists = data(&server, other, LISTS);
        assert_eq!((lists.len(), &lists[0]["name"]), (1, &json!("default")));
        assert!(data(&server, other, NUMBERS).is_empty());
    }
    assert_eq!(server.database.number("SELECT count(*) FROM optouts"), 2);
    // Another account's list blocks nothing here.
    server.accepted(&stranger_test, &hello("+447700900123"));
}

#[test]
fn requests_without_a_valid_key_are_rejected() {
    let server = Server::start();
    let (looks, changes) = all("hg_test_nobody", "default");
    let more = [LISTS, "/v1/inbound-messages", "/v1/inbound-messages/x"].map(Request::get);
    for request in looks.iter().chain(&changes).chain(&more) {
        assert_eq!(problem(&server.ask(request), 401, "unauthenticated"), []);
    }
    for (method, path) in [("PUT", LISTS), ("PATCH", NUMBERS), ("DELETE", "/v1/inbound-messages")] {
        let response = server.ask(&Request::new(method, path).key(&server.key()));
        problem(&response, 405, "method_not_allowed");
        assert!(response.header("allow").is_some_and(|allow| allow.contains("GET")));
    }
}
