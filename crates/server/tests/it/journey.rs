//! A newcomer's way through the dashboard in a real browser, with scripts and without.

use crate::browser::path_of;
use crate::chromium::Chromium;
use crate::database::Engine;
use crate::server::Server;
use crate::sink::Sink;
use serde_json::json;
use std::process::Command;

const CONFIG: &str = "[webhooks]\nallow_private = ['127.0.0.1/32']\n";

/// A newcomer with a server of their own, at the link of the greeting.
fn newcomer() -> (Server, Chromium) {
    let server = Server::with(Engine::Sqlite, CONFIG);
    let base = format!("http://{}", server.address());
    let chromium = Chromium::start(&base);
    chromium.widen(1_440, 900);
    (server, chromium)
}

fn link(server: &Server) -> String {
    let greeting = server.greeting();
    greeting.split_whitespace().find(|word| word.contains("/sign-in/")).unwrap().to_owned()
}

/// Nothing went wrong in the browser, and nobody else was asked.
fn all_well(chromium: &Chromium) {
    assert_eq!(chromium.complaints(), Vec::<String>::new());
    assert_eq!(chromium.asked_elsewhere(), Vec::<String>::new());
}

/// Runs a line of a page in a shell; what it printed.
fn in_a_shell(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn from_the_greeting_to_a_second_account() {
    let (server, chromium) = newcomer();
    chromium.open(&link(&server));
    chromium.arrives("/phone");
    first_message(&chromium);
    let curl = a_key(&chromium);
    arrives_by_itself(&chromium, &curl);
    replies_and_stop(&chromium);
    webhook(&chromium);
    revoked(&chromium, &curl);
    all_well(&chromium);
    second_account(&chromium);
    all_well(&chromium);
    server.check();
}

/// Plain forms and links do all of it; only what changes by itself has to be loaded again.
#[test]
fn the_same_without_scripts() {
    let (server, chromium) = newcomer();
    chromium.without_scripts();
    chromium.open(&link(&server));
    chromium.press("Sign in");
    chromium.arrives("/phone");
    chromium.press("Send test message");
    chromium.arrives("/phone/447700900123");
    chromium.sees_again("Delivered");
    chromium.fill("text", "STOP");
    chromium.press_at("//button[@aria-label='Send the reply']");
    chromium.sees_again("has opted out");
    let curl = a_key(&chromium);
    webhook(&chromium);
    revoked(&chromium, &curl);
    second_account(&chromium);
    all_well(&chromium);
    server.check();
}

/// Where a session ends while a form is filled in, what was typed is there when its owner is back.
#[test]
fn what_was_typed_outlives_a_session() {
    let (server, chromium) = newcomer();
    chromium.open(&link(&server));
    chromium.arrives("/phone");
    let type_signed_out = || {
        chromium.open("/send");
        chromium.fill("recipient", "+447700900123");
        chromium.fill("originator", "Shop");
        chromium.fill("text", "A long “text”");
        chromium.devtools("Network.clearBrowserCookies", &json!({}));
        chromium.press("Send test");
        chromium.arrives("/sign-in?next=%2Fsend");
    };
    let text = "return document.getElementById('text').value";
    type_signed_out();
    chromium.open(&path_of(&server.told(&["account", "link", "--email", "demo@localhost"])));
    chromium.arrives("/phone");
    chromium.open("/send");
    assert_eq!(chromium.run(text), "", "they went elsewhere, and it is forgotten");
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
    assert_eq!(chromium.run(text), "", "it is there once");
}

fn first_message(chromium: &Chromium) {
    chromium.sees("waiting for your first text");
    chromium.press("Send test message");
    chromium.arrives("/phone/447700900123");
    chromium.sees("Delivered");
}

/// Makes a key, and gives back the line that uses it.
fn a_key(chromium: &Chromium) -> String {
    chromium.press("API Keys");
    chromium.arrives("/settings/api-keys");
    chromium.fill("name", "my shop");
    chromium.press("Create key");
    chromium.sees("my shop is ready");
    assert!(chromium.text_of("key").starts_with("hg_test_"));
    chromium.text_of("curl")
}

/// What a program sends is there without a page being loaded.
fn arrives_by_itself(chromium: &Chromium, curl: &str) {
    chromium.press_at("//nav//a[normalize-space(.)='Phone']");
    chromium.arrives("/phone");
    chromium.sees("Hello from Heliograph");
    chromium.run("window.loadedOnce = true");
    let answer = in_a_shell(&format!("{curl} --silent --show-error"));
    assert!(answer.contains("\"QUEUED\"") || answer.contains("\"id\""), "{answer}");
    chromium.sees("Hello, world");
    assert_eq!(chromium.run("return window.loadedOnce"), true, "the page was loaded again");
}

fn replies_and_stop(chromium: &Chromium) {
    chromium.fill("text", "Thank you!");
    chromium.enter("text");
    chromium.sees("Thank you!");
    chromium.press_at("//button[@data-fill='STOP']");
    chromium.press_at("//button[@aria-label='Send the reply']");
    chromium.sees("has opted out");
    assert_eq!(chromium.run("return window.loadedOnce"), true, "the page was loaded again");
}

fn webhook(chromium: &Chromium) {
    let receiver = Sink::start();
    let url = receiver.url("/hook");
    chromium.press("Webhooks");
    chromium.arrives("/settings/webhooks");
    chromium.fill("url", &url);
    chromium.press_at("//main//form[@action='/settings/webhooks']//button");
    chromium.arrives("/settings/webhooks/");
    chromium.press("Send test");
    chromium.sees("What it answered");
    chromium.sees("200");
    chromium.press("Reveal");
    let secret = chromium.text_of("whsec");
    let tried = receiver.has(1);
    assert!(tried[0].is_signed_by(&secret), "{tried:?}");
}

fn revoked(chromium: &Chromium, curl: &str) {
    let status = format!("{curl} --silent --output /dev/null --write-out '%{{http_code}}'");
    chromium.press("API Keys");
    chromium.press("Revoke my shop");
    chromium.press_at("//tr[contains(., 'my shop')]//form//button[contains(., 'Revoke')]");
    chromium.sees("Revoked");
    assert_eq!(in_a_shell(&status), "401");
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
