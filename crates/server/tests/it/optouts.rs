//! `/v1/optout-lists`: lists, the numbers on them, files of numbers, and who may do what.

use crate::database::{Engine, each_engine};
use crate::http::{Answer, Request};
use crate::replies::{data, get};
use crate::send_sms::hello;
use crate::server::Server;
use crate::wrong_input::problem;
use serde_json::{Value, json};

each_engine!(optouts: lists_are_made_shown_and_removed lists_come_page_by_page
    a_number_keeps_its_first_evidence numbers_come_page_by_page only_the_default_list_refuses_sends
    a_file_is_answered_row_by_row a_long_file_is_taken_in_whole scopes_hold
    what_is_of_another_account_or_mode_is_not_there without_a_key_nothing_is_told);

pub(crate) const LISTS: &str = "/v1/optout-lists";
pub(crate) const NUMBERS: &str = "/v1/optout-lists/default/numbers";
const DEMO: &str = "demo@localhost";

/// A request with a JSON body.
pub(crate) fn post(key: &str, path: &str, body: &Value) -> Request {
    Request::send_sms(key, body.to_string()).to(path)
}

/// A request with a file of numbers.
pub(crate) fn file(key: &str, list: &str, csv: impl Into<Vec<u8>>) -> Request {
    let path = format!("{LISTS}/{list}/numbers/import");
    Request::new("POST", &path).key(key).header("Content-Type", "text/csv").body(csv)
}

fn delete(key: &str, path: &str) -> Request {
    Request::new("DELETE", path).key(key)
}

/// Puts a number on a list.
pub(crate) fn add(server: &Server, key: &str, list: &str, body: &Value) -> Answer {
    server.ask(&post(key, &format!("{LISTS}/{list}/numbers"), body))
}

/// Makes a list; its id.
pub(crate) fn make(server: &Server, key: &str, name: &str) -> String {
    let answer = server.ask(&post(key, LISTS, &json!({ "name": name })));
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn gone(answer: &Answer) {
    assert_eq!((answer.status, answer.text()), (204, String::new()));
}

fn lists_are_made_shown_and_removed(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    let first = get(&server, &key, &format!("{LISTS}/default"));
    let field = |name: &str| first[name].clone();
    let expected = json!({ "id": field("id"), "name": "default", "default": true, "mode": "test",
                           "createdAt": field("createdAt") });
    assert_eq!(first, expected);
    let answer = server.ask(&post(&key, LISTS, &json!({ "name": "  Spring sale ☀ " })));
    assert_eq!(answer.status, 201, "{}", answer.text());
    let made = answer.json();
    assert_eq!((&made["name"], &made["default"]), (&json!("Spring sale ☀"), &json!(false)));
    let path = answer.header("location").unwrap().to_owned();
    assert_eq!(path, format!("{LISTS}/{}", made["id"].as_str().unwrap()));
    assert_eq!(get(&server, &key, &path), made);
    // Two of one name are two.
    let twin = make(&server, &key, "Spring sale ☀");
    assert_eq!(data(&server, &key, LISTS).len(), 3);
    let numbers = format!("{path}/numbers");
    let number = json!({ "number": "+447700900123" });
    assert_eq!(server.ask(&post(&key, &numbers, &number)).status, 201);
    gone(&server.ask(&delete(&key, &path)));
    for request in [Request::get(&path).key(&key), delete(&key, &path)] {
        problem(&server.ask(&request), 404, "not_found");
    }
    problem(&server.ask(&Request::get(&numbers).key(&key)), 404, "not_found");
    assert_eq!(server.database.number("SELECT count(*) FROM optouts"), 0);
    assert_eq!(data(&server, &key, LISTS)[1]["id"], twin.as_str());
    let by_id = format!("{LISTS}/{}", first["id"].as_str().unwrap());
    for path in [&by_id, &format!("{LISTS}/default")] {
        assert_eq!(problem(&server.ask(&delete(&key, path)), 409, "conflict"), []);
    }
    assert_eq!(get(&server, &key, &by_id), first);
}

/// Everything below a path, so many at a time; how many pages it took.
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

fn lists_come_page_by_page(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    (0..5).for_each(|n| drop(make(&server, &key, &format!("List {n}"))));
    for (limit, pages) in [(1, 6), (4, 2), (5, 2), (6, 1), (100, 1)] {
        let (all, turned) = walk(&server, &key, LISTS, limit);
        assert!(all.is_sorted_by_key(|l| l["createdAt"].to_string()), "{all:?}");
        // Those of one millisecond come in any order.
        let mut names: Vec<_> = all.iter().map(|l| l["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["List 0", "List 1", "List 2", "List 3", "List 4", "default"]);
        assert_eq!(turned, pages, "{limit}");
    }
}

fn a_number_keeps_its_first_evidence(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    let body = json!({ "number": "+44 (7700) 900-123", "note": "Asked by phone" });
    let answer = add(&server, &key, "default", &body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let first = answer.json();
    let expected = json!({
        "number": "447700900123", "source": "api", "inboundMessageId": null, "originator": null,
        "note": "Asked by phone", "createdAt": first["createdAt"],
    });
    assert_eq!(first, expected);
    let path = format!("{NUMBERS}/447700900123");
    assert_eq!(answer.header("location"), Some(&*path));
    assert_eq!(get(&server, &key, &path), first);
    assert_eq!(get(&server, &key, &format!("{NUMBERS}/%2B44-7700-900123")), first);
    let again = add(&server, &key, "default", &json!({ "number": "447700900123", "note": "Mail" }));
    assert_eq!((again.status, again.header("location"), again.json()), (200, None, first));
    for path in ["447700900124", "nobody", "1", "%00"].map(|n| format!("{NUMBERS}/{n}")) {
        problem(&server.ask(&Request::get(&path).key(&key)), 404, "not_found");
        problem(&server.ask(&delete(&key, &path)), 404, "not_found");
    }
    gone(&server.ask(&delete(&key, &path)));
    problem(&server.ask(&Request::get(&path).key(&key)), 404, "not_found");
    problem(&server.ask(&delete(&key, &path)), 404, "not_found");
    let note = "日".repeat(255);
    let new = add(&server, &key, "default", &json!({ "number": "447700900123", "note": note }));
    assert_eq!((new.status, &new.json()["note"]), (201, &json!(note)));
}

fn numbers_come_page_by_page(engine: Engine) {
    let server = Server::start(engine);
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
    // The page after one whose last number has gone meanwhile.
    let page = get(&server, &key, &format!("{NUMBERS}?limit=2"));
    gone(&server.ask(&delete(&key, &format!("{NUMBERS}/447700900124"))));
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = data(&server, &key, &format!("{NUMBERS}?cursor={cursor}"));
    assert_eq!((rest.len(), &rest[0]["number"]), (3, &json!("447700900125")));
}

fn only_the_default_list_refuses_sends(engine: Engine) {
    let server = Server::start(engine);
    let nodes = server.others();
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

fn a_file_is_answered_row_by_row(engine: Engine) {
    let server = Server::start(engine);
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
    let answer = server.ask(&file(&key, "default", csv));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = answer.json();
    let counts = ["added", "alreadyListed", "invalid"].map(|name| told[name].clone());
    assert_eq!(json!(counts), json!([2, 2, 7]));
    let rows: Vec<_> = told["errors"].as_array().unwrap().iter().collect();
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
    assert!(rows.iter().all(|r| r["detail"].as_str().unwrap().len() > 10), "{told}");
    let listed = data(&server, &key, NUMBERS);
    let told = listed.iter().map(|o| json!([o["number"], o["source"], o["note"]]));
    let expected = json!([
        ["6598234567", "import", null],
        ["447700900123", "api", null],
        ["447700900124", "import", "by mail, twice"],
    ]);
    assert_eq!(json!(told.collect::<Vec<_>>()), expected);
    let only_a_head = server.ask(&file(&key, "default", "number\n"));
    let nothing = json!({ "added": 0, "alreadyListed": 0, "invalid": 0, "errors": [] });
    assert_eq!((only_a_head.status, only_a_head.json()), (200, nothing));
}

/// More rows than a transaction takes in, and more faults than are told.
fn a_long_file_is_taken_in_whole(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    let good: String = (0..2_500).map(|n| format!("44770090{n:04}\n")).collect();
    let bad = "nobody\n".repeat(1_001);
    let csv = format!("number\n{good}{bad}");
    for (added, already) in [(2_500, 0), (0, 2_500)] {
        let told = server.ask(&file(&key, "default", csv.clone())).json();
        let counts = ["added", "alreadyListed", "invalid"].map(|name| told[name].clone());
        assert_eq!(json!(counts), json!([added, already, 1_001]));
        assert_eq!(told["errors"].as_array().unwrap().len(), 1_000);
    }
    assert_eq!(walk(&server, &key, NUMBERS, 100).0.len(), 2_500);
}

/// Everything that can be asked of a list: what looks, then what changes.
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

fn scopes_hold(engine: Engine) {
    let server = Server::start(engine);
    let greeted = server.key();
    let list = make(&server, &greeted, "Sale");
    add(&server, &greeted, &list, &json!({ "number": "447700900123" }));
    let key = |scope: &str| server.told(&["key", "create", "--account", DEMO, "--scope", scope]);
    let (send, read, manage) = (key("send"), key("read"), key("manage"));
    let refused = |request: &Request, scope: &str| {
        let answer = server.ask(request);
        problem(&answer, 403, "scope_missing");
        assert!(answer.text().contains(&format!("'{scope}'")), "{}", answer.text());
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

fn what_is_of_another_account_or_mode_is_not_there(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    let list = make(&server, &key, "Sale");
    let ann = json!({ "number": "447700900123" });
    assert_eq!(add(&server, &key, &list, &ann).status, 201);
    assert_eq!(add(&server, &key, "default", &ann).status, 201);
    let standard = get(&server, &key, &format!("{LISTS}/default"));
    let live = server.told(&["key", "create", "--account", DEMO, "--live"]);
    let stranger = server.live_key("bob@example.com", "0");
    let stranger_test = server.told(&["key", "create", "--account", "bob@example.com"]);
    let nil = "00000000-0000-0000-0000-000000000000";
    let theirs = [list.as_str(), standard["id"].as_str().unwrap()];
    let unknown = ["nobody", "Default", nil, "%00", &list[1..]];
    let others = [&live, &stranger, &stranger_test].map(|key| (key, &theirs[..]));
    for (key, lists) in others.into_iter().chain([(&key, &unknown[..])]) {
        for list in lists {
            let (looks, changes) = all(key, list);
            for request in looks.iter().chain(&changes) {
                let answer = server.ask(request);
                assert_eq!(answer.status, 404, "{request:?}: {}", answer.text());
                problem(&answer, 404, "not_found");
            }
        }
    }
    for other in [&live, &stranger, &stranger_test] {
        let lists = data(&server, other, LISTS);
        assert_eq!((lists.len(), &lists[0]["name"]), (1, &json!("default")));
        assert!(data(&server, other, NUMBERS).is_empty());
    }
    assert_eq!(server.database.number("SELECT count(*) FROM optouts"), 2);
    // Nor does it hold anything back there.
    server.accepted(&stranger_test, &hello("+447700900123"));
}

fn without_a_key_nothing_is_told(engine: Engine) {
    let server = Server::start(engine);
    let (looks, changes) = all("hg_test_nobody", "default");
    let more = [LISTS, "/v1/inbound-messages", "/v1/inbound-messages/x"].map(Request::get);
    for request in looks.iter().chain(&changes).chain(&more) {
        assert_eq!(problem(&server.ask(request), 401, "unauthenticated"), []);
    }
    for (method, path) in [("PUT", LISTS), ("PATCH", NUMBERS), ("DELETE", "/v1/inbound-messages")] {
        let answer = server.ask(&Request::new(method, path).key(&server.key()));
        problem(&answer, 405, "method_not_allowed");
        assert!(answer.header("allow").is_some_and(|allow| allow.contains("GET")));
    }
}
