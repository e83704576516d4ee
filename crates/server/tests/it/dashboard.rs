//! The dashboard as a person without scripts sees it.

use crate::browser::{Browser, form};
use crate::database::{Engine, each_engine};
use crate::patience::eventually;
use crate::server::Server;

each_engine!(dashboard: a_person_comes_in_texts_a_phone_and_leaves);

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
