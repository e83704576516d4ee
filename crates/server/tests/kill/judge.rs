//! The judgement: what was promised, what the carrier got, and what the API says in the end.

use crate::driver::{Client, Log, Sent, is_final};
use crate::http::Request;
use crate::load::{Load, Message};
use crate::rounds::{CUT_EVERY, WINDOW};
use crate::server::Server;
use crate::sink::Received;
use crate::smsc::Entry;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// What the API says in the end about a message.
#[derive(Debug)]
pub(crate) struct Final {
    message: Message,
    id: String,
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
                id: id.clone(),
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
    pub(crate) webhooks: Vec<Received>,
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
        let told = self.told();
        wrong.extend(self.finals.iter().filter_map(|f| untold(f, &told)));
        wrong.extend(tales(&told, server));
        let again = self.webhooks.len() - told.values().map(|ids| ids.len()).sum::<usize>();
        wrong.extend(books(server));
        let failed = self.finals.iter().filter(|f| f.status == "FAILED").count();
        let summary = format!(
            "{} kills, {} link cuts, {} messages, {} acknowledged, {} answers lost, {} submitted, \
             {doubled} doubled of {bound} allowed, {failed} failed, {} webhooks and {again} once more",
            self.kills,
            cuts,
            self.load.messages(),
            self.finals.len(),
            self.log.lost,
            taken.len(),
            told.len(),
        );
        (summary, wrong)
    }

    fn told(&self) -> Told<'_> {
        let mut told = Told::new();
        for webhook in &self.webhooks {
            let event = webhook.json();
            let message = event["data"]["id"].as_str().unwrap().to_owned();
            let kind = event["type"].as_str().unwrap().to_owned();
            let known = told.entry(message).or_default().entry(webhook.id()).or_default();
            (known.kind, known.taken) = (kind, known.taken + u64::from(!webhook.refused));
        }
        told
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

/// What the sink was told of each message, by webhook-id.
type Told<'a> = HashMap<String, HashMap<&'a str, Known>>;

/// One webhook, however often it came.
#[derive(Debug, Default)]
struct Known {
    kind: String,
    /// How often the sink answered 200.
    taken: u64,
}

/// What is wrong with what was told of one acknowledged message.
fn untold(f: &Final, told: &Told<'_>) -> Option<String> {
    let kind = format!("message.{}", f.status.to_lowercase());
    let what = match told.get(&f.id) {
        None => "nobody was told".to_owned(),
        Some(ids) if ids.len() > 1 => format!("told as several events: {ids:?}"),
        Some(ids) if ids.values().all(|k| k.kind == kind && k.taken > 0) => return None,
        Some(ids) => format!("told otherwise: {ids:?}"),
    };
    Some(format!("{f:?}: {what}"))
}

/// What was told and never happened.
fn tales(told: &Told<'_>, server: &Server) -> Option<String> {
    let ended = server.database.number("SELECT count(*) FROM messages WHERE status IN (2, 3)");
    let told = i64::try_from(told.len()).unwrap();
    (told != ended).then(|| format!("{told} messages were told of, {ended} have ended"))
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
