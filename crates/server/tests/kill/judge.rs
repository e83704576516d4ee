//! The judgement: what was promised, what the carrier got, and what the API says in the end.

use crate::driver::{Client, Log, Sent, is_final};
use crate::http::Request;
use crate::load::{Load, Message};
use crate::rounds::{CUT_EVERY, WINDOW};
use crate::server::Server;
use crate::smsc::Entry;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// What the API says in the end about a message.
#[derive(Debug)]
pub(crate) struct Final {
    message: Message,
    status: String,
    failure: Value,
    possible_duplicate: bool,
}

impl Final {
    /// Asks for each message that was acknowledged.
    pub(crate) fn ask(load: &Load, sent: &[Sent]) -> Vec<Self> {
        let mut client = Client::new(load);
        let known = sent.iter().filter_map(|s| Some((s.message, s.ids.first()?)));
        let ask = |(message, id): (Message, &String)| {
            let request = Request::get(&format!("/v1/messages/{id}")).key(&load.key);
            let answer = client.ask(&request).unwrap();
            let (status, shown) = (answer.status, answer.json());
            assert_eq!(status, 200, "{shown}");
            Self {
                message,
                status: shown["status"].as_str().unwrap().to_owned(),
                failure: shown["failure"]["code"].clone(),
                possible_duplicate: shown["possibleDuplicate"] == true,
            }
        };
        known.map(ask).collect()
    }
}

/// All the evidence.
pub(crate) struct Case<'a> {
    pub(crate) load: &'a Load,
    pub(crate) log: &'a Log,
    pub(crate) finals: &'a [Final],
    pub(crate) journal: Vec<Entry>,
    pub(crate) kills: u64,
}

/// How often the SMSC took each part of each message.
type Taken<'a> = HashMap<&'a str, HashMap<u8, u64>>;

impl Case<'_> {
    /// A line that sums up, and everything that is wrong.
    pub(crate) fn judge(&self, server: &Server) -> (String, Vec<String>) {
        let taken = self.taken();
        let mut wrong = self.ids();
        wrong.extend(self.finals.iter().filter_map(|f| fault(f, &taken)));
        wrong.extend(self.strangers(&taken));
        let doubled: u64 = taken.values().map(|parts| most(parts) - 1).sum();
        let submits = self.journal.iter().filter(|e| e.text.is_some()).count() as u64;
        let cuts = submits / CUT_EVERY;
        let bound = self.kills * 2 * u64::from(WINDOW) + cuts * u64::from(WINDOW);
        if doubled > bound {
            wrong.push(format!("{doubled} submitted again, at most {bound} may be"));
        }
        wrong.extend(books(server));
        let failed = self.finals.iter().filter(|f| f.status == "FAILED").count();
        let summary = format!(
            "{} kills, {} link cuts, {} messages, {} acknowledged, {} answers lost, {} submitted, \
             {doubled} doubled of {bound} allowed, {failed} failed",
            self.kills,
            cuts,
            self.load.messages(),
            self.finals.len(),
            self.log.lost,
            taken.len(),
        );
        (summary, wrong)
    }

    fn taken(&self) -> Taken<'_> {
        let mut taken = Taken::new();
        for entry in self.journal.iter().filter(|e| e.event == "accepted") {
            let parts = taken.entry(entry.destination.as_str()).or_default();
            *parts.entry(entry.part.unwrap_or(1)).or_default() += 1;
        }
        taken
    }

    /// Each message has one id, and each id one message.
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

    /// What the SMSC got and nobody sent.
    fn strangers(&self, taken: &Taken<'_>) -> Vec<String> {
        let known: BTreeSet<_> =
            (0..self.load.messages()).map(|n| Message(n).recipient()).collect();
        let strangers = taken.keys().filter(|to| !known.contains(**to));
        strangers.map(|to| format!("nobody sent anything to {to}")).collect()
    }
}

fn most(parts: &HashMap<u8, u64>) -> u64 {
    parts.values().copied().max().unwrap_or(1)
}

/// What is wrong with one acknowledged message.
fn fault(f: &Final, taken: &Taken<'_>) -> Option<String> {
    let parts = taken.get(f.message.recipient().as_str());
    let complete = (1..=f.message.parts()).all(|p| parts.is_some_and(|t| t.contains_key(&p)));
    let doubled = parts.is_some_and(|t| most(t) > 1);
    let what = match f.status.as_str() {
        "DELIVERED" if !complete => "was not wholly submitted",
        "FAILED" if f.failure.is_null() => "has no reason",
        status if !is_final(status) => "never came to an end",
        _ if doubled && !f.possible_duplicate => "was submitted twice and does not say so",
        _ => return None,
    };
    Some(format!("{f:?} {what}: {parts:?}"))
}

/// What `heliograph check` finds, at any time.
pub(crate) fn check(server: &Server) -> Option<String> {
    let check = server.tool(&["check"]);
    let text = || [check.stdout, check.stderr].map(|t| String::from_utf8_lossy(&t).into_owned());
    (!check.status.success()).then(|| text().concat())
}

/// What the database itself can tell.
fn books(server: &Server) -> Vec<String> {
    let mut wrong: Vec<_> = check(server).into_iter().collect();
    let twice = "SELECT count(*) - count(DISTINCT recipient) FROM messages";
    for (what, sql) in [
        ("messages were made twice", twice),
        ("rows are left in the queue", "SELECT count(*) FROM queue"),
        (
            "accounts still have something reserved",
            "SELECT count(*) FROM accounts WHERE reserved <> 0",
        ),
    ] {
        match server.database.number(sql) {
            0 => {}
            n => wrong.push(format!("{n} {what}")),
        }
    }
    wrong
}
