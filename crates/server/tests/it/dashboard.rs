//! The dashboard as a person without scripts sees it.

use crate::browser::{Browser, form};
use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

each_engine!(dashboard: a_person_comes_in_texts_a_phone_and_leaves a_form_of_another_mode_does_nothing
    an_export_survives_compression);

/// On PostgreSQL a stream also speaks by itself, for what other nodes do.
#[test]
fn who_has_signed_out_hears_nothing_more() {
    let server = Server::start(Engine::Sqlite);
    let browser = Browser::greeted(&server);
    let cookies: Vec<_> =
        browser.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head =
        format!("GET /live HTTP/1.1\r\nHost: localhost\r\nCookie: {}\r\n", cookies.join("; "));
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("event: changed") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "nothing is streamed");
    }
    browser.send(&browser.open("/phone"), "/sign-out", &[]);
    server.accepted(&server.key(), &hello("+447700900123"));
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("changed"), "{rest}");
}

fn a_person_comes_in_texts_a_phone_and_leaves(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    assert_eq!(browser.open("/").path, "/overview");
    let phone = browser.open("/phone");
    assert_eq!((phone.path.as_str(), phone.answer.status), ("/phone", 200));
    let phone = browser.send(&phone, "/phone/send", &[("text", "A <b>bold</b> hello")]);
    assert_eq!(phone.path, "/phone/447700900123");
    eventually("the text is delivered", || {
        let phone = browser.open("/phone");
        (phone.says("A <b>bold</b> hello") && phone.says("Delivered")).then_some(())
    });
    let phone = browser.send(&phone, "/phone/447700900123/reply", &[("text", "STOP")]);
    eventually("the person is opted out", || {
        browser.open("/phone").says("has opted out").then_some(())
    });
    let refused = browser.send(&browser.open("/phone"), "/phone/send", &[]);
    assert_eq!(refused.answer.status, 422);
    assert!(refused.says("opted out"), "{}", refused.text());

    let left = browser.send(&phone, "/sign-out", &[]);
    assert!(left.path.starts_with("/sign-in") && left.says("You are signed out"), "{}", left.path);
    assert_eq!(browser.open("/phone").path, "/sign-in?next=%2Fphone");
    let sent = browser.ask(form("/phone/send", &[("csrf", &phone.csrf())]));
    assert_eq!(sent.header("location"), Some("/sign-in?next=%2F"));
    server.check();
}

/// Somebody switches in one tab, and sends what another tab still shows.
fn a_form_of_another_mode_does_nothing(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let stale = browser.open("/settings/webhooks");
    let live = browser.send(&stale, "/mode", &[("mode", "live")]);
    assert_eq!(live.answer.status, 200);
    let fields = [("url", "https://example.com/hook"), ("kind", "message.failed")];
    let refused = browser.send(&stale, "/settings/webhooks", &fields);
    assert_eq!(refused.answer.status, 409);
    assert!(refused.says("showed another account"), "{}", refused.text());
    assert_eq!(server.list(&["webhook", "list", "--account", "demo@localhost"]).len(), 0);
    // The switch itself, and the way out, work from anywhere.
    assert_eq!(browser.send(&stale, "/mode", &[("mode", "test")]).answer.status, 200);
}

fn an_export_survives_compression(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open("/optouts");
    let text = page.text();
    let (_, rest) = text.split_once("action=\"/optouts/").unwrap();
    let list = format!("/optouts/{}", &rest[..36]);
    browser.send(&page, &format!("{list}/add"), &[("number", "+447700900123")]);
    let export = format!("{list}/export");
    assert!(String::from_utf8(browser.get(&export).body).unwrap().contains("447700900123"));
    let request = Request::get(&export).header("Accept-Encoding", "gzip");
    let answer = browser.ask(request);
    assert_eq!((answer.status, answer.header("content-encoding")), (200, Some("gzip")));
    assert!(answer.body.starts_with(&[0x1f, 0x8b]), "{:?}", answer.body);
}
