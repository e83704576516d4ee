//! The virtual phone.

use crate::support::browser::{Browser, form};
use crate::support::server::Server;
use crate::support::wait::eventually;

#[test]
fn a_user_signs_in_sends_a_text_and_signs_out() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    assert_eq!(browser.open("/").path, "/overview");
    let phone = browser.open("/phone");
    assert_eq!((phone.path.as_str(), phone.response.status), ("/phone", 200));
    let phone = browser.send(&phone, "/phone/send", &[("text", "A <b>bold</b> hello")]);
    assert_eq!(phone.path, "/phone/447700900123");
    eventually("the message is delivered", || {
        let phone = browser.open("/phone");
        (phone.contains("A <b>bold</b> hello") && phone.contains("Delivered")).then_some(())
    });
    let reply = "/phone/447700900123/reply";
    let long = "日".repeat(1_001);
    for (text, words) in [
        (" ", "Enter a reply, or select one above."),
        (&*long, "The reply must not exceed 1000 characters."),
    ] {
        let refused = browser.send(&phone, reply, &[("reply", text)]);
        assert!(refused.response.status == 422 && refused.contains(words), "{}", refused.text());
    }
    let phone = browser.send(&phone, reply, &[("reply", "STOP")]);
    eventually("the recipient has opted out", || {
        browser.open("/phone").contains("has opted out").then_some(())
    });
    let refused = browser.send(&browser.open("/phone"), "/phone/send", &[]);
    assert_eq!(refused.response.status, 422);
    assert!(refused.contains("opted out"), "{}", refused.text());

    let left = browser.send(&phone, "/sign-out", &[]);
    assert!(
        left.path.starts_with("/sign-in") && left.contains("You are signed out"),
        "{}",
        left.path
    );
    assert_eq!(browser.open("/phone").path, "/sign-in?next=%2Fphone");
    let sent = browser.ask(form("/phone/send", &[("csrf", &phone.csrf())]));
    assert_eq!(sent.header("location"), Some("/sign-in?next=%2F"));
    server.check();
}
