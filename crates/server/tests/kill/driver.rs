//! The clients: they send, retry, and read messages.

use crate::load::{Load, Message};
use crate::support::http::{Connection, HttpResponse, Request};
use crate::support::wait::pause;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A message, and the responses to it.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) message: Message,
    /// The id in each response 201.
    pub(crate) ids: Vec<String>,
}

/// The log of all clients.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) sent: Vec<Sent>,
    /// Requests with no response, or 503.
    pub(crate) lost: usize,
    /// Responses that no client may get.
    pub(crate) wrong: Vec<String>,
}

/// A client of any running node.
pub(crate) struct Client<'a> {
    load: &'a Load,
    connection: Option<(SocketAddr, Connection)>,
}

impl<'a> Client<'a> {
    pub(crate) const fn new(load: &'a Load) -> Self {
        Self { load, connection: None }
    }

    /// Sends a request to a node, and to another one after a failure.
    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<HttpResponse> {
        let (address, mut connection) = match self.connection.take() {
            Some(open) => open,
            None => {
                let address = self.load.node().ok_or(io::ErrorKind::NotConnected)?;
                (address, Connection::open(address)?)
            }
        };
        let response = connection.ask(request)?;
        self.connection = Some((address, connection));
        Ok(response)
    }
}

/// Sends messages until the end of the load; retries those with an idempotency key.
pub(crate) fn drive(load: &Load) -> Log {
    let (mut client, mut log) = (Client::new(load), Log::default());
    while !load.is_over() {
        if load.node().is_none() {
            pause(Duration::from_millis(1));
            continue;
        }
        let mut sent = Sent { message: load.next(), ids: Vec::new() };
        send(&mut client, &mut sent, &mut log);
        log.sent.push(sent);
        if fastrand::u8(..) < 12 {
            send_again(&mut client, &mut log);
        }
        pause(Duration::from_micros(fastrand::u64(..3_000)));
    }
    log
}

fn request(load: &Load, message: Message) -> Request {
    let request = Request::send_sms(&load.key, message.body());
    match message.idempotency_key() {
        Some(key) => request.header("Idempotency-Key", key),
        None => request,
    }
}

fn send(client: &mut Client<'_>, sent: &mut Sent, log: &mut Log) {
    let request = request(client.load, sent.message);
    loop {
        match client.ask(&request) {
            Ok(response) if response.status == 201 => {
                return acknowledge(client.load, sent, &response);
            }
            Ok(response) if response.status != 503 => {
                return log.wrong.push(format!("{}: {}", response.status, response.text()));
            }
            _ => log.lost += 1,
        }
        if sent.message.idempotency_key().is_none() {
            return; // The result is unknown.
        }
        pause(Duration::from_millis(5));
    }
}

fn acknowledge(load: &Load, sent: &mut Sent, response: &HttpResponse) {
    let id = response.json()["id"].as_str().unwrap().to_owned();
    if sent.ids.is_empty() {
        load.add_accepted(&id);
    }
    sent.ids.push(id);
}

/// Repeats an earlier acknowledged request: the response must be the same.
fn send_again(client: &mut Client<'_>, log: &mut Log) {
    let Some(old) = fastrand::choice(&mut log.sent) else { return };
    if old.message.idempotency_key().is_none() {
        return;
    }
    let Ok(response) = client.ask(&request(client.load, old.message)) else { return };
    if response.status == 201 {
        acknowledge(client.load, old, &response);
        if response.header("idempotent-replayed") != Some("true") {
            log.wrong.push(format!("not a replay: {}", response.text()));
        }
    }
}

/// Reads acknowledged messages until the end of the load; returns invalid status changes.
pub(crate) fn watch(load: &Load) -> Vec<String> {
    let (mut client, mut wrong) = (Client::new(load), Vec::new());
    let mut seen: HashMap<String, String> = HashMap::new();
    while !load.is_over() {
        pause(Duration::from_millis(1));
        // Half of the reads are of known messages.
        let known = seen.keys().next().filter(|_| fastrand::bool()).cloned();
        let Some(id) = known.or_else(|| load.any_accepted()) else { continue };
        let request = Request::get(&format!("/v1/messages/{id}")).key(&load.key);
        let Ok(response) = client.ask(&request) else { continue };
        if response.status == 503 {
            continue;
        }
        let status = match response.status {
            200 => response.json()["status"].as_str().unwrap_or_default().to_owned(),
            other => format!("{other}"),
        };
        let before = seen.get(&id).map_or("QUEUED", String::as_str);
        if !may_follow(before, &status) {
            wrong.push(format!("{id} was {before} and is {status}"));
        }
        if is_final(&status) && fastrand::bool() {
            seen.remove(&id);
        } else {
            seen.insert(id, status);
        }
    }
    wrong
}

pub(crate) fn is_final(status: &str) -> bool {
    ["DELIVERED", "FAILED"].contains(&status)
}

fn may_follow(before: &str, status: &str) -> bool {
    match before {
        "QUEUED" => status == "QUEUED" || status == "SENT" || is_final(status),
        "SENT" => status == "SENT" || is_final(status),
        other => other == status,
    }
}
