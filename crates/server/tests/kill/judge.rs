//! Verification: acknowledged requests, the carrier's journal, webhooks and the final state must
//! agree.

use crate::driver::{Client, Log, Sent, is_final};
use crate::load::{Load, Message};
use crate::rounds::{CUT_EVERY, WINDOW};
use crate::support::http::Request;
use crate::support::server::Server;
use crate::support::smsc::Entry;
use crate::support::webhook_sink::Received;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// The final state of a message.
#[derive(Debug)]
pub(crate) struct Final {
    message: Message,
    id: String,
    status: String,
    failure: Value,
    possible_duplicate: bool,
}

impl Final {
    /// Reads each acknowledged message from the API.
    pub(crate) fn ask(load: &Load, sent: &[Sent]) -> Vec<Self> {
        let mut client = Client::new(load);
        let known = sent.iter().filter_map(|s| Some((s.message, s.ids.first()?)));
        let ask = |(message, id): (Message, &String)| {
            let request = Request::get(&format!("/v1/messages/{id}")).key(&load.key);
            let response = client.ask(&request).unwrap();
            let (status, shown) = (response.status, response.json());
            assert_eq!(status, 200, "{shown}");
            Self {
                message,
                id: id.clone(),
                status: shown["status"].as_str().unwrap().to_owned(),
                failure: shown["failure"]["code"].clone(),
                possible_duplicate: shown["possibleDuplicate"] == true,
            }
        };
        known.map(ask).collect()
    }
}

/// The data to verify.
pub(crate) struct Case<'a> {
    pub(crate) load: &'a Load,
    pub(crate) log: &'a Log,
    pub(crate) finals: &'a [Final],
    pub(crate) journal: Vec<Entry>,
    pub(crate) webhooks: Vec<Received>,
    pub(crate) kills: u64,
}

/// The number of times that the SMSC accepted each part, by recipient.
type Taken<'a> = HashMap<&'a str, HashMap<u8, u64>>;

impl Case<'_> {
    /// Returns a summary, and all faults.
    pub(crate) fn judge(&self, server: &Server) -> (String, Vec<String>) {
        let accepted = self.accepted();
        let mut wrong = self.ids();
        wrong.extend(self.finals.iter().filter_map(|f| fault(f, &accepted)));
        wrong.extend(self.unknown_recipients(&accepted));
        let doubled: u64 = accepted.values().map(|parts| most(parts) - 1).sum();
        let submits = self.journal.iter().filter(|e| e.text.is_some()).count() as u64;
        let cuts = submits / CUT_EVERY;
        let bound = self.kills * 2 * u64::from(WINDOW) + cuts * u64::from(WINDOW);
        if doubled > bound {
            wrong.push(format!("{doubled} submitted again, at most {bound} may be"));
        }
        let by_message = self.by_message();
        wrong.extend(self.finals.iter().filter_map(|f| webhook_fault(f, &by_message)));
        wrong.extend(extra_webhooks(&by_message, server));
        let again = self.webhooks.len() - by_message.values().map(|ids| ids.len()).sum::<usize>();
        wrong.extend(database_faults(server));
        let failed = self.finals.iter().filter(|f| f.status == "FAILED").count();
        let summary = format!(
            "{} kills, {} link cuts, {} messages, {} acknowledged, {} answers lost, {} submitted, \
             {doubled} doubled of {bound} allowed, {failed} failed, {} webhooks and {again} once more",
            self.kills,
            cuts,
            self.load.messages(),
            self.finals.len(),
            self.log.lost,
            accepted.len(),
            by_message.len(),
        );
        (summary, wrong)
    }

    fn by_message(&self) -> Webhooks<'_> {
        let mut by_message = Webhooks::new();
        for webhook in &self.webhooks {
            let event = webhook.json();
            let message = event["data"]["id"].as_str().unwrap().to_owned();
            let kind = event["type"].as_str().unwrap().to_owned();
            let known = by_message.entry(message).or_default().entry(webhook.id()).or_default();
            (known.kind, known.accepted) = (kind, known.accepted + u64::from(!webhook.refused));
        }
        by_message
    }

    fn accepted(&self) -> Taken<'_> {
        let mut accepted = Taken::new();
        for entry in self.journal.iter().filter(|e| e.event == "accepted") {
            let parts = accepted.entry(entry.destination.as_str()).or_default();
            *parts.entry(entry.part.unwrap_or(1)).or_default() += 1;
        }
        accepted
    }

    /// Returns messages with several ids, and ids of several messages.
    fn ids(&self) -> Vec<String> {
        let mut all = HashMap::new();
        let mut wrong = Vec::new();
        for sent in &self.log.sent {
            let ids: BTreeSet<_> = sent.ids.iter().collect();
            if ids.len() > 1 {
                wrong.push(format!("{:?} has the ids {ids:?}", sent.message));
            }
            for id in ids {
                if let Some(other) = all.insert(id, sent.message) {
                    wrong.push(format!("{id} is {:?} and {other:?}", sent.message));
                }
            }
        }
        wrong
    }

    /// Returns recipients in the journal to which no client sent a message.
    fn unknown_recipients(&self, accepted: &Taken<'_>) -> Vec<String> {
        let known: BTreeSet<_> =
            (0..self.load.messages()).map(|n| Message(n).recipient()).collect();
        let unknown_recipients = accepted.keys().filter(|to| !known.contains(**to));
        unknown_recipients.map(|to| format!("no client sent a message to {to}")).collect()
    }
}

/// The webhooks of each message, by webhook-id.
type Webhooks<'a> = HashMap<String, HashMap<&'a str, Known>>;

/// One webhook, with all its deliveries.
#[derive(Debug, Default)]
struct Known {
    kind: String,
    /// The number of responses 200.
    accepted: u64,
}

/// Returns a fault of the webhooks of a message.
fn webhook_fault(f: &Final, by_message: &Webhooks<'_>) -> Option<String> {
    let kind = format!("message.{}", f.status.to_lowercase());
    let what = match by_message.get(&f.id) {
        None => "no webhook".to_owned(),
        Some(ids) if ids.len() > 1 => format!("several events: {ids:?}"),
        Some(ids) if ids.values().all(|k| k.kind == kind && k.accepted > 0) => return None,
        Some(ids) => format!("wrong webhook: {ids:?}"),
    };
    Some(format!("{f:?}: {what}"))
}

/// Returns a fault if there are webhooks of messages that have not ended.
fn extra_webhooks(by_message: &Webhooks<'_>, server: &Server) -> Option<String> {
    let ended = server.database.number("SELECT count(*) FROM messages WHERE status IN (2, 3)");
    let by_message = i64::try_from(by_message.len()).unwrap();
    (by_message != ended)
        .then(|| format!("{by_message} messages have webhooks, {ended} have ended"))
}

fn most(parts: &HashMap<u8, u64>) -> u64 {
    parts.values().copied().max().unwrap_or(1)
}

/// Returns a fault of the final state of a message.
fn fault(f: &Final, accepted: &Taken<'_>) -> Option<String> {
    let parts = accepted.get(f.message.recipient().as_str());
    let complete = (1..=f.message.parts()).all(|p| parts.is_some_and(|t| t.contains_key(&p)));
    let doubled = parts.is_some_and(|t| most(t) > 1);
    let what = match f.status.as_str() {
        "DELIVERED" if !complete => "was not submitted completely",
        "FAILED" if f.failure.is_null() => "has no reason",
        status if !is_final(status) => "has not ended",
        _ if doubled && !f.possible_duplicate => {
            "was submitted twice, but possibleDuplicate is false"
        }
        _ => return None,
    };
    Some(format!("{f:?} {what}: {parts:?}"))
}

/// Returns the violations that `heliograph check` finds.
pub(crate) fn check(server: &Server) -> Option<String> {
    let check = server.run(&["check"]);
    let text = || [check.stdout, check.stderr].map(|t| String::from_utf8_lossy(&t).into_owned());
    (!check.status.success()).then(|| text().concat())
}

/// Returns faults in the database.
fn database_faults(server: &Server) -> Vec<String> {
    let mut wrong: Vec<_> = check(server).into_iter().collect();
    let twice = "SELECT count(*) - count(DISTINCT recipient) FROM messages";
    for (what, sql) in [
        ("messages were created twice", twice),
        ("rows are left in the queue", "SELECT count(*) FROM queue"),
        ("accounts have a reserved amount", "SELECT count(*) FROM accounts WHERE reserved <> 0"),
    ] {
        match server.database.number(sql) {
            0 => {}
            n => wrong.push(format!("{n} {what}")),
        }
    }
    wrong
}
