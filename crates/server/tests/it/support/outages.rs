//! Checks for tests in which something that the server needs fails for a while.

use crate::support::api::{hello, problem};
use crate::support::http::HttpResponse;
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use std::collections::HashMap;

/// Sends a message to each of these numbers; returns the ids.
pub(crate) fn send_all(server: &Server, key: &str, numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|n| server.accepted(key, &hello(&format!("447700900{n}")))).collect()
}

/// Asserts that all messages are delivered, and that each was submitted once.
pub(crate) fn delivered_once(server: &Server, smsc: &Smsc, key: &str, ids: &[String]) {
    for id in ids {
        let message = server.wait_until_ended(key, id);
        assert_eq!(message["status"], "DELIVERED", "{message}");
        assert_eq!(message["possibleDuplicate"], false, "{message}");
    }
    let mut times: HashMap<String, u32> = HashMap::new();
    for entry in smsc.journal().into_iter().filter(|e| e.event == "accepted") {
        *times.entry(entry.destination).or_default() += 1;
    }
    assert_eq!((times.len(), times.values().all(|n| *n == 1)), (ids.len(), true), "{times:?}");
    server.check();
}

/// Asserts that a response is 503 with `Retry-After`.
pub(crate) fn turned_away(response: &HttpResponse) {
    assert_eq!(problem(response, 503, "overloaded"), []);
    assert_eq!(response.header("retry-after"), Some("1"));
}
