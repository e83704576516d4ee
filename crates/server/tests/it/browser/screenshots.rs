//! The screenshots of the README, with realistic contents.
//!
//! `scripts/screenshots` sets the folder with HELIOGRAPH_SCREENSHOTS; a test run deletes the files.

use crate::support::browser::{Browser, path_of};
use crate::support::chromium::Chromium;
use crate::support::engine::Engine;
use crate::support::fixtures::{DEMO, Fixtures};
use crate::support::wait::eventually;
use crate::support::webhook_sink::WebhookSink;
use serde_json::json;
use std::path::PathBuf;

const WIDE: (u32, u32) = (1_440, 900);
const NARROW: (u32, u32) = (360, 780);
const PICTURES: [(&str, &str, (u32, u32)); 5] = [
    ("overview", "/overview", WIDE),
    ("phone", "/phone/447700900123", WIDE),
    ("phone-narrow", "/phone/447700900123", NARROW),
    ("messages", "/messages", WIDE),
    ("webhooks", "/settings/webhooks/1", WIDE),
];
/// Recipients and texts; the last digits of a number decide the outcome.
const MESSAGES: [(&str, &str); 9] = [
    ("447700900317", "Your table for two is booked for Friday at 19:30."),
    ("447700900220", "Your code is 442 917. It is good for ten minutes."),
    ("447700900001", "Your parcel is at the counter until Saturday."),
    ("447700900548", "Reminder: your appointment is tomorrow at 10:15."),
    ("447700900761", "Your order has left our warehouse."),
    ("447700900006", "The water in your street is off on Monday from 8 to 12."),
    ("447700900432", "Your code is 190 385. It is good for ten minutes."),
    ("447700900009", "Twenty per cent off everything until Sunday. STOP to opt out."),
    ("447700900123", "Your parcel arrives tomorrow between 9 and 11. Will you be at home?"),
];

#[test]
fn screenshots() {
    // The statistics are written with functions of SQLite.
    let fixtures = Fixtures::on(Engine::Sqlite);
    let receiver = WebhookSink::start();
    send_messages(&fixtures, &receiver);
    let server = &fixtures.server;
    let chromium = Chromium::start(&format!("http://{}", server.address()));
    chromium.prefer("light");
    chromium.open(&path_of(&server.stdout(&["account", "link", "--email", DEMO])));
    chromium.press("Sign in");
    chromium.arrives("/phone");
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("HELIOGRAPH_SCREENSHOTS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| temporary.path().to_owned());
    for (name, path, (width, height)) in PICTURES {
        chromium.widen(width, height);
        chromium.open(path);
        chromium.sees("Test");
        chromium.run("document.querySelector('.phone')?.scrollIntoView({ block: 'end' })");
        let picture = chromium.screenshot();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000, "{path}");
        std::fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    }
    assert_eq!(chromium.complaints(), Vec::<String>::new());
}

/// Sends the messages, and a reply.
fn send_messages(fixtures: &Fixtures, receiver: &WebhookSink) {
    let server = &fixtures.server;
    write_statistics(fixtures);
    let url = receiver.url("/sms");
    server.stdout(&["webhook", "add", "--account", DEMO, "--url", &url, "--test"]);
    let key = server.key();
    for (recipient, text) in MESSAGES {
        let body = json!({ "originator": "447700900800", "recipient": recipient, "text": text });
        let id = server.accepted(&key, &body);
        let ends = if recipient.ends_with("0006") { "SENT" } else { "DELIVERED" };
        server.wait_for_status(&key, &id, &[ends, "FAILED"]);
    }
    let browser = Browser::of(server, DEMO);
    let reply = "/phone/447700900123/reply";
    let page = browser.open("/phone/447700900123");
    browser.send(&page, reply, &[("reply", "Yes, after 10 please. Thank you!")]);
    eventually("the webhook of the reply has arrived", || {
        let received = receiver.received();
        received.iter().any(|hook| hook.body.contains("after 10")).then_some(())
    });
}

/// Writes statistics of the previous week: more messages by day than by night, and a few failures.
fn write_statistics(fixtures: &Fixtures) {
    let account = fixtures.account(DEMO);
    for (measure, share) in [
        ("1", "busy"),
        ("2", "busy"),
        ("3", "busy * 96 / 100"),
        ("5", "busy / 14"),
        ("101", "busy * 2 / 100"),
        ("102", "busy * 1 / 100"),
        ("207", "busy * 3 / 10"),
        ("208", "busy * 66 / 100"),
    ] {
        fixtures.server.database.change(&format!(
            "WITH RECURSIVE h (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM h WHERE n < 167), \
             b (hour, busy) AS (SELECT unixepoch() / 3600 - n, \
             (40 + 30 * abs(((unixepoch() / 3600 - n) % 24) - 3) % 270 + n * 37 % 60) * (4 + n / 24 * 5 % 7) / 7 FROM h) \
             INSERT INTO stats (account, mode, hour, measure, total) \
             SELECT {account}, 1, hour, {measure}, {share} FROM b WHERE {share} > 0"
        ));
    }
}
