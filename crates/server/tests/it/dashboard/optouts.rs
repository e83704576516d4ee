//! Opt-out lists: numbers, imports and exports.

use crate::support::browser::{Browser, Page};
use crate::support::http::Request;
use crate::support::server::Server;
use serde_json::json;

/// Returns the path of the list on a page.
fn list(page: &Page) -> String {
    let html = page.text();
    let at = html.find("action=\"/optouts/").unwrap() + "action=\"".len();
    html[at..at + "/optouts/".len() + 36].to_owned()
}

#[test]
fn numbers_can_be_added_and_removed() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let page = browser.open("/optouts");
    assert!(page.contains("No opt-outs yet"));
    let list = list(&page);
    let (add, remove) = (format!("{list}/add"), format!("{list}/remove"));
    let wrong = browser.send(&page, &add, &[("number", "0770")]);
    assert_eq!((wrong.response.status, wrong.contains("value=\"0770\"")), (422, true));
    let done = browser.send(&page, &add, &[("number", "+44 7700 900123")]);
    assert!(done.contains("Number added to the list") && done.contains("Added by demo@localhost"));
    assert!(browser.send(&page, &add, &[("number", "+447700900123")]).contains("already"));
    for (asked, text) in [
        ("%2B44+7700+900123", "Added by demo@localhost"),
        ("447700900124", "Not on this list"),
        ("12", "too few digits"),
    ] {
        assert!(browser.open(&format!("{list}?number={asked}")).contains(text), "{asked}");
    }
    let message = json!({ "originator": "Shop", "recipient": "+447700900123", "text": "Hi" });
    assert_eq!(server.post(&server.key(), &message).status, 403);
    let done = browser.send(&done, &remove, &[]);
    assert!(done.contains("Number removed") && done.contains("No opt-outs yet"), "{}", done.text());
    assert_eq!(browser.send(&page, &add, &[("number", "")]).response.status, 422);

    let long = "日".repeat(101);
    for (name, words) in [
        (" ", "The name must not be empty."),
        (&*long, "The name must not exceed 100 characters."),
        ("a\u{7}b", "The name must not contain the character '\\u{7}'."),
    ] {
        let refused = browser.send(&page, "/optouts", &[("name", name)]);
        assert!(refused.response.status == 422 && refused.contains(words), "{}", refused.text());
    }
    let made = browser.send(&page, "/optouts", &[("name", "Newsletter")]);
    let again = browser.send(&page, "/optouts", &[("name", "Newsletter")]);
    assert!(made.contains("List created") && again.path == made.path, "the list was created twice");
    let id = made.path.split('?').next().unwrap().to_owned();
    let gone = browser.send(&made, &format!("{id}/delete"), &[]);
    assert!(gone.contains("List deleted") && !gone.contains("Newsletter"), "{}", gone.text());
}

#[test]
fn a_list_can_be_exported_and_imported() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let page = browser.open("/optouts");
    let list = list(&page);
    let mut file = "number,note\n12,\n".to_owned();
    for n in 0..1_500 {
        file.push_str(&format!("+4477009{n:05},\"by \"\"phone\"\"\"\n"));
    }
    let done = upload(&browser, &page, &list, &file);
    assert!(
        done.contains("Numbers added: 1,500. Already on the list: 0.")
            && done.contains("Line 2: “12”:")
    );
    let exported = browser.get(&format!("{list}/export"));
    assert_eq!(exported.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = exported.text();
    assert_eq!(text.lines().count(), 1_501);
    assert!(text.lines().nth(1).unwrap().starts_with("+447700900000,\"by \"\"phone\"\"\",import,"));
    let next = browser.open(&format!("{list}?after=447700900049"));
    assert!(next.contains("+447700900050") && !next.contains("+447700900049"));
    let again = upload(&browser, &page, &list, &text);
    assert!(again.contains("Numbers added: 0. Already on the list: 1,500."), "{}", again.text());
    let typed = browser.send(&page, &format!("{list}/import"), &[("numbers", "+6598234567\r\n")]);
    assert!(typed.contains("Numbers added: 1."), "{}", typed.text());
    let nothing = browser.send(&page, &format!("{list}/import"), &[("numbers", " ")]);
    assert_eq!(nothing.response.status, 422);
}

/// Uploads a file as a browser does.
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
    let response = browser.ask(request.header("Origin", "http://test"));
    Page { path: list.to_owned(), response }
}

#[test]
fn an_export_survives_compression() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let page = browser.open("/optouts");
    let text = page.text();
    let (_, rest) = text.split_once("action=\"/optouts/").unwrap();
    let list = format!("/optouts/{}", &rest[..36]);
    browser.send(&page, &format!("{list}/add"), &[("number", "+447700900123")]);
    let export = format!("{list}/export");
    assert!(String::from_utf8(browser.get(&export).body).unwrap().contains("447700900123"));
    let request = Request::get(&export).header("Accept-Encoding", "gzip");
    let response = browser.ask(request);
    assert_eq!((response.status, response.header("content-encoding")), (200, Some("gzip")));
    assert!(response.body.starts_with(&[0x1f, 0x8b]), "{:?}", response.body);
}
