//! The path of a new user through the dashboard, with and without JavaScript.

use crate::support::browser::path_of;
use crate::support::chromium::Chromium;
use crate::support::server::Server;
use crate::support::webhook_sink::WebhookSink;
use serde_json::json;
use std::process::Command;

const CONFIG: &str = "[webhooks]\nallow_private = ['127.0.0.1/32']\n";

/// Starts a server and a browser.
fn new_user() -> (Server, Chromium) {
    let server = Server::with(CONFIG);
    let base = format!("http://{}", server.address());
    let chromium = Chromium::start(&base);
    chromium.widen(1_440, 900);
    (server, chromium)
}

fn link(server: &Server) -> String {
    server.welcome();
    path_of(&server.stdout(&["account", "link", "--email", "demo@localhost"]))
}

/// Asserts that the console has no errors, and that no other host received a request.
fn assert_no_errors(chromium: &Chromium) {
    assert_eq!(chromium.complaints(), Vec::<String>::new());
    assert_eq!(chromium.asked_elsewhere(), Vec::<String>::new());
}

/// Runs a command in a shell; returns its stdout.
fn run_in_shell(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn from_the_welcome_message_to_a_second_account() {
    let (server, chromium) = new_user();
    chromium.open(&link(&server));
    chromium.press("Sign in");
    chromium.arrives("/phone");
    first_message(&chromium);
    let curl = create_key(&chromium);
    message_appears_without_reload(&chromium, &curl);
    reply_and_stop(&chromium);
    webhook(&chromium);
    revoke_key(&chromium, &curl);
    assert_no_errors(&chromium);
    second_account(&chromium);
    assert_no_errors(&chromium);
    server.check();
}

/// Forms and links work without JavaScript; live parts need a reload.
#[test]
fn the_same_path_without_javascript() {
    let (server, chromium) = new_user();
    chromium.without_scripts();
    chromium.open(&link(&server));
    chromium.press("Sign in");
    chromium.arrives("/phone");
    chromium.press("Send test message");
    chromium.arrives("/phone/447700900123");
    chromium.sees_again("Delivered");
    chromium.fill("reply", "STOP");
    chromium.press_at("//button[@aria-label='Send reply']");
    chromium.sees_again("has opted out");
    let curl = create_key(&chromium);
    webhook(&chromium);
    revoke_key(&chromium, &curl);
    second_account(&chromium);
    assert_no_errors(&chromium);
    server.check();
}

/// If a session ends while a form is filled in, its values are restored after sign-in.
#[test]
fn entered_values_survive_the_end_of_a_session() {
    let (server, chromium) = new_user();
    chromium.open(&link(&server));
    chromium.press("Sign in");
    chromium.arrives("/phone");
    let type_signed_out = || {
        chromium.open("/send");
        chromium.fill("recipient", "+447700900123");
        chromium.fill("originator", "Shop");
        chromium.fill("text", "A long “text”");
        chromium.devtools("Network.clearBrowserCookies", &json!({}));
        chromium.press("Send test message");
        chromium.arrives("/sign-in?next=%2Fsend");
    };
    let text = "return document.getElementById('text').value";
    type_signed_out();
    chromium.open(&path_of(&server.stdout(&["account", "link", "--email", "demo@localhost"])));
    chromium.press("Sign in");
    chromium.arrives("/phone");
    chromium.open("/send");
    assert_eq!(chromium.run(text), "", "the values are restored on the same page only");
    second_account(&chromium);
    type_signed_out();
    chromium.fill("email", "owner@example.com");
    chromium.fill("password", "four quite ordinary words");
    chromium.press("Sign in");
    chromium.arrives("/send");
    assert_eq!(chromium.run(text), "A long “text”");
    let number = "return document.getElementById('recipient').value";
    assert_eq!(chromium.run(number), "+447700900123");
    chromium.open("/send");
    assert_eq!(chromium.run(text), "", "the values are restored once");
}

fn first_message(chromium: &Chromium) {
    chromium.sees("Send a test message to see it arrive here");
    chromium.press("Send test message");
    chromium.arrives("/phone/447700900123");
    chromium.sees("Delivered");
}

/// Creates a key; returns the curl command that uses it.
fn create_key(chromium: &Chromium) -> String {
    chromium.press("API keys");
    chromium.arrives("/settings/api-keys");
    chromium.press_at("//main//summary[contains(., 'Create API key')]");
    chromium.fill("name", "my shop");
    chromium.press("Create key");
    chromium.sees("Key “my shop” created");
    assert!(chromium.text_of("key").starts_with("hg_test_"));
    chromium.text_of("curl")
}

/// A message that is sent through the API appears without a reload.
fn message_appears_without_reload(chromium: &Chromium, curl: &str) {
    chromium.press_at("//nav//a[normalize-space(.)='Phone']");
    chromium.arrives("/phone");
    chromium.sees("Hello from Heliograph");
    chromium.run("window.loadedOnce = true");
    let response = run_in_shell(&format!("{curl} --silent --show-error"));
    assert!(response.contains("\"QUEUED\"") || response.contains("\"id\""), "{response}");
    chromium.sees("Hello, world");
    assert_eq!(chromium.run("return window.loadedOnce"), true, "the page was reloaded");
}

fn reply_and_stop(chromium: &Chromium) {
    chromium.fill("reply", "Thank you!");
    chromium.enter("reply");
    chromium.sees("Thank you!");
    chromium.press_at("//button[@data-fill='STOP']");
    chromium.press_at("//button[@aria-label='Send reply']");
    chromium.sees("has opted out");
    assert_eq!(chromium.run("return window.loadedOnce"), true, "the page was reloaded");
}

fn webhook(chromium: &Chromium) {
    let receiver = WebhookSink::start();
    let url = receiver.url("/hook");
    chromium.press("Webhooks");
    chromium.arrives("/settings/webhooks");
    chromium.press_at("//main//summary[contains(., 'Add endpoint')]");
    chromium.fill("url", &url);
    chromium.press_at("//main//form[@action='/settings/webhooks']//button");
    chromium.arrives("/settings/webhooks/");
    chromium.press("Send test event");
    chromium.sees("Response");
    chromium.sees("200");
    chromium.press("Reveal secret");
    let secret = chromium.text_of("whsec");
    let tried = receiver.wait_for(1);
    assert!(tried[0].is_signed_by(&secret), "{tried:?}");
}

fn revoke_key(chromium: &Chromium, curl: &str) {
    let status = format!("{curl} --silent --output /dev/null --write-out '%{{http_code}}'");
    chromium.press("API keys");
    chromium.press("Revoke my shop");
    chromium.press_at("//tr[contains(., 'my shop')]//form//button[contains(., 'Revoke')]");
    chromium.sees("Revoked");
    assert_eq!(run_in_shell(&status), "401");
}

fn second_account(chromium: &Chromium) {
    chromium.press("Sign out");
    chromium.arrives("/sign-in");
    chromium.sees("signed out");
    chromium.open("/sign-up");
    chromium.fill("email", "owner@example.com");
    chromium.fill("password", "four quite ordinary words");
    chromium.press_at("//main//form//button");
    chromium.sees("owner@example.com");
    chromium.press("Sign out");
    chromium.arrives("/sign-in");
    chromium.open("/messages");
    chromium.arrives("/sign-in?next=%2Fmessages");
    chromium.fill("email", "owner@example.com");
    chromium.fill("password", "four quite ordinary words");
    chromium.press("Sign in");
    chromium.arrives("/messages");
}
