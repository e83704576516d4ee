//! Pages of figures and lists: the overview, opt-outs, and what only operators see.

use crate::browser::{Browser, Page};
use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::patience::eventually;
use crate::server::Server;
use serde_json::json;

each_engine!(dashboard_figures: the_overview_counts_what_happens
    operators_see_how_the_lines_are operators_add_credit_once_and_hand_out_links
    numbers_are_put_on_a_list_and_taken_off a_list_goes_out_and_comes_in_as_a_file);

const ANN: &str = "ann@example.com";

/// The figure with this name.
fn tile(page: &Page, name: &str) -> String {
    let html = page.text();
    let (_, rest) = html.split_once(&format!(">{name}</dt>")).unwrap_or_else(|| panic!("{html}"));
    let value = rest.split_once("tile-value\">").unwrap().1;
    value.split('<').next().unwrap().to_owned()
}

fn the_overview_counts_what_happens(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let empty = browser.open("/overview");
    assert!(empty.says("Nothing in this time") && empty.says("1 of 3"), "{}", empty.text());
    let key = server.key();
    for text in ["Hello", "Once more"] {
        let message = json!({ "originator": "Shop", "recipient": "+447700900123", "text": text });
        server.accepted(&key, &message);
    }
    for range in ["24h", "7d", "30d", "90d", "nonsense"] {
        let page = eventually("both are delivered", || {
            let page = browser.open(&format!("/overview?range={range}"));
            (page.says("Delivery rate") && tile(&page, "Delivery rate") == "100 %").then_some(page)
        });
        assert_eq!(tile(&page, "Accepted"), "2", "{range}");
        assert!(page.says("2 of 3") && tile(&page, "Median time").ends_with('s'), "{range}");
    }
    server.check();
}

fn operators_see_how_the_lines_are(engine: Engine) {
    let carrier = "[[carriers]]\nname = \"far\"\nkind = \"smpp\"\nhost = \"127.0.0.1\"\nport = 1\n\
        system_id = \"a\"\npassword = \"b\"\n[[routes]]\nprefix = \"\"\ncarriers = [\"far\"]\n";
    let server = Server::with(engine, carrier);
    let operator = Browser::greeted(&server);
    let page = eventually("both lines are told of", || {
        let page = operator.open("/operator/carriers");
        (page.says("1 of 1 bound") && page.says("0 of 1 bound")).then_some(page)
    });
    assert!(page.says("bind to 127.0.0.1:1 failed: Connection refused"), "{}", page.text());
    assert!(operator.open("/operator/queue").says("Nothing waits"));
    let live = server.live_key(ANN, "10");
    server.accepted(
        &live,
        &json!({ "originator": "Shop", "recipient": "+447700900123", "text": "Hi" }),
    );
    assert_eq!(tile(&operator.open("/operator/queue"), "Waiting"), "1");
    let ann = Browser::of(&server, ANN);
    for page in ["carriers", "queue", "accounts"] {
        let page = ann.open(&format!("/operator/{page}"));
        assert_eq!(page.answer.status, 404);
        assert!(!page.says("far") && !ann.open("/overview").says("Operator"));
    }
}

fn operators_add_credit_once_and_hand_out_links(engine: Engine) {
    let server = Server::start(engine);
    server.told(&["account", "create", "--email", ANN]);
    let operator = Browser::greeted(&server);
    // Found by a part of its name, or by somebody who belongs to it; what means something to a database does not here.
    for (part, found) in
        [("ANN@", true), ("nn@exam", true), ("%25", false), ("a_n", false), ("x", true)]
    {
        let page = operator.open(&format!("/operator/accounts?find={part}"));
        let hit = page.says("/operator/accounts/2/credit");
        assert_eq!(hit, found, "{part}: {}", page.text());
        assert_eq!(page.says("Nobody is called that"), !found, "{part}");
    }
    let page = operator.open("/operator/accounts?find=ann");
    assert!(!page.says("/operator/accounts/1/credit"), "{}", page.text());
    let action = "/operator/accounts/2/credit";
    let wrong = operator.send(&page, action, &[("amount", "10,5"), ("note", "a gift")]);
    assert_eq!(wrong.answer.status, 422);
    assert!(wrong.says("'10,5' is no amount") && wrong.says("a gift"), "{}", wrong.text());
    let too_much = operator.send(&page, action, &[("amount", "-1")]);
    assert!(too_much.says("a balance is never below zero"), "{}", too_much.text());
    for _ in 0..2 {
        let done = operator.send(&page, action, &[("amount", "10.50")]);
        assert!(done.says("The balance is changed") && done.says("10.5000 EUR"), "{}", done.text());
        assert!(!done.says("21.0000 EUR"));
    }
    let ann = Browser::of(&server, ANN);
    assert_eq!(ann.post(action, &[("csrf", &ann.open("/overview").csrf())]).status, 404);

    let made = operator.send(&page, "/operator/accounts/2/link", &[]);
    let link = made.text();
    let link = link.split_whitespace().find_map(|w| w.split_once("/sign-in/").map(|(_, t)| t));
    let token = link.unwrap().split('<').next().unwrap().to_owned();
    let anew = Browser::new(&server);
    let path = format!("/sign-in/{token}");
    // Looking at it does not use it up.
    let page = anew.open(&path);
    assert!(page.says(ANN) && anew.open("/overview").path.starts_with("/sign-in"));
    assert_eq!(anew.send(&page, &path, &[]).path, "/phone");
    assert!(anew.open("/overview").says(ANN));
    assert_eq!(anew.open(&path).path, "/overview", "who is in already goes on");
    assert_eq!(Browser::new(&server).get(&path).status, 404);
    let again = Browser::new(&server);
    let posted = again.send(&page, &path, &[]);
    assert!(posted.answer.status == 403 || posted.answer.status == 404, "{}", posted.text());
    let log = ann.open("/settings/audit-log").text().to_lowercase();
    assert!(log.contains("credit added") && log.contains("sign-in link made"), "{log}");
    server.check();
}

/// The address of the list that a page shows.
fn list(page: &Page) -> String {
    let html = page.text();
    let at = html.find("action=\"/optouts/").unwrap() + "action=\"".len();
    html[at..at + "/optouts/".len() + 36].to_owned()
}

fn numbers_are_put_on_a_list_and_taken_off(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open("/optouts");
    assert!(page.says("Nobody has opted out"));
    let list = list(&page);
    let (add, remove) = (format!("{list}/add"), format!("{list}/remove"));
    let wrong = browser.send(&page, &add, &[("number", "0770")]);
    assert_eq!((wrong.answer.status, wrong.says("value=\"0770\"")), (422, true));
    let done = browser.send(&page, &add, &[("number", "+44 7700 900123")]);
    assert!(done.says("is on the list now") && done.says("Added by demo@localhost"));
    assert!(browser.send(&page, &add, &[("number", "+447700900123")]).says("already"));
    for (asked, said) in [
        ("%2B44+7700+900123", "Added by demo@localhost"),
        ("447700900124", "Not on this list"),
        ("12", "too few digits"),
    ] {
        assert!(browser.open(&format!("{list}?number={asked}")).says(said), "{asked}");
    }
    let message = json!({ "originator": "Shop", "recipient": "+447700900123", "text": "Hi" });
    assert_eq!(server.post(&server.key(), &message).status, 403);
    let done = browser.send(&done, &remove, &[]);
    assert!(done.says("off the list") && done.says("Nobody has opted out"), "{}", done.text());
    assert_eq!(browser.send(&page, &add, &[("number", "")]).answer.status, 422);

    let made = browser.send(&page, "/optouts", &[("name", "Newsletter")]);
    let again = browser.send(&page, "/optouts", &[("name", "Newsletter")]);
    assert!(made.says("The list is there") && again.path == made.path, "it was made twice");
    let id = made.path.split('?').next().unwrap().to_owned();
    let gone = browser.send(&made, &format!("{id}/delete"), &[]);
    assert!(gone.says("The list is gone") && !gone.says("Newsletter"), "{}", gone.text());
}

fn a_list_goes_out_and_comes_in_as_a_file(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open("/optouts");
    let list = list(&page);
    let mut file = "number,note\n12,\n".to_owned();
    for n in 0..1_500 {
        file.push_str(&format!("+4477009{n:05},\"by \"\"phone\"\"\"\n"));
    }
    let done = upload(&browser, &page, &list, &file);
    assert!(done.says("Added: 1,500. On the list already: 0.") && done.says("Line 2: “12”:"));
    let exported = browser.get(&format!("{list}/export"));
    assert_eq!(exported.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = exported.text();
    assert_eq!(text.lines().count(), 1_501);
    assert!(text.lines().nth(1).unwrap().starts_with("+447700900000,\"by \"\"phone\"\"\",import,"));
    let next = browser.open(&format!("{list}?after=447700900049"));
    assert!(next.says("+447700900050") && !next.says("+447700900049"));
    let again = upload(&browser, &page, &list, &text);
    assert!(again.says("Added: 0. On the list already: 1,500."), "{}", again.text());
    let typed = browser.send(&page, &format!("{list}/import"), &[("numbers", "+6598234567\r\n")]);
    assert!(typed.says("Added: 1."), "{}", typed.text());
    let nothing = browser.send(&page, &format!("{list}/import"), &[("numbers", " ")]);
    assert_eq!(nothing.answer.status, 422);
}

/// Sends a file as a browser does.
fn upload(browser: &Browser<'_>, page: &Page, list: &str, file: &str) -> Page {
    let part = |name: &str, value: &str| {
        format!("--between\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let head = "--between\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\
        Content-Type: text/csv\r\n\r\n";
    let body = format!(
        "{}{}{head}{file}\r\n--between--\r\n",
        part("csrf", &page.csrf()),
        part("numbers", "")
    );
    let request = Request::new("POST", &format!("{list}/import")).body(body);
    let request = request.header("Content-Type", "multipart/form-data; boundary=between");
    let answer = browser.ask(request.header("Origin", "http://test"));
    Page { path: list.to_owned(), answer }
}
