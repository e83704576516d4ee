//! A carrier at an SMSC that does everything wrong: nothing is lost, and nothing sent twice unawares.

use crate::rig::{Rig, Smsc, options};
use heliograph_carrier::carrier::Event;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_domain::submission::Outcome;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const MESSAGES: usize = 500;

/// A number of its own for each message, none of those that are special.
fn number(token: u64) -> u64 {
    15_550_001_234 + token * 10_000
}

#[derive(Default)]
struct Book {
    /// The ids that the carrier reported.
    accepted: HashMap<u64, String>,
    /// How often each may have arrived: accepted, or in doubt.
    arrived: HashMap<u64, usize>,
    /// The ids that had a receipt.
    receipts: HashSet<String>,
}

#[tokio::test]
async fn everything_goes_wrong_and_nothing_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let smsc = Smsc::start(SmscOptions {
        receipt_delay: Duration::from_millis(5),
        error_rate: 0.05,
        drop_response_every: 97,
        disconnect_every: 101,
        receipt_window: 20,
        journal: Some(path.clone()),
        ..SmscOptions::default()
    })
    .await;
    let mut quick = options(smsc.port);
    quick.response_timeout = Duration::from_millis(200);
    let mut rig = Rig::bound(quick).await;
    for token in 0..MESSAGES as u64 {
        rig.submit(token, number(token)).await;
    }
    let mut book = Book::default();
    while book.accepted.len() < MESSAGES
        || book.accepted.values().any(|id| !book.receipts.contains(id))
    {
        turn(&mut rig, &mut book).await;
    }
    let submits = submits(&std::fs::read_to_string(path).unwrap());
    for token in 0..MESSAGES as u64 {
        let ids = submits.get(&number(token).to_string()).map_or(&[][..], Vec::as_slice);
        assert!(ids.contains(&book.accepted[&token]), "{token}");
        assert!(ids.len() <= book.arrived[&token], "{token}: {ids:?}");
    }
}

/// What the engine does: sends again what may be sent again, and commits every receipt.
async fn turn(rig: &mut Rig, book: &mut Book) {
    match rig.event().await {
        Event::Bound | Event::Unbound(_) => {}
        Event::Receipt { handle, receipt } => {
            book.receipts.insert(receipt.smsc_id);
            rig.ack(handle, true).await;
        }
        Event::Message { incoming, .. } => panic!("nobody replies, but: {incoming:?}"),
        Event::Submitted { token, outcome, .. } => {
            let arrived = matches!(outcome, Outcome::Accepted { .. } | Outcome::InDoubt);
            *book.arrived.entry(token).or_default() += usize::from(arrived);
            match outcome {
                Outcome::Accepted { smsc_id } => {
                    book.accepted.insert(token, smsc_id);
                }
                Outcome::InDoubt | Outcome::Temporary { .. } | Outcome::NotSent => {
                    rig.submit(token, number(token)).await;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// By destination, the ids under which the SMSC accepted it.
fn submits(journal: &str) -> HashMap<String, Vec<String>> {
    let mut all: HashMap<_, Vec<_>> = HashMap::new();
    for line in journal.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["event"] == "accepted" {
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            all.entry(text("destination")).or_default().push(text("id"));
        }
    }
    all
}
