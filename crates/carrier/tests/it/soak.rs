//! A soak test with all faults of the simulated SMSC: no message is lost, and none is sent twice
//! without being reported as in doubt.

use crate::harness::{Harness, Smsc, options};
use heliograph_carrier::carrier::CarrierEvent;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_domain::submission::SubmitOutcome;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const MESSAGES: usize = 500;

/// Returns a distinct number for each message, without special behaviour.
fn number(token: u64) -> u64 {
    15_550_001_234 + token * 10_000
}

#[derive(Default)]
struct Tally {
    /// The SMSC's id of each accepted message.
    accepted: HashMap<u64, String>,
    /// The number of times that each message may have arrived: accepted or in doubt.
    arrived: HashMap<u64, usize>,
    /// The ids that had a receipt.
    receipts: HashSet<String>,
}

#[tokio::test]
async fn no_message_is_lost_despite_all_faults() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
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
    let mut options = options(smsc.port);
    options.response_timeout = Duration::from_millis(200);
    let mut harness = Harness::bound(options).await;
    for token in 0..MESSAGES as u64 {
        harness.submit(token, number(token)).await;
    }
    let mut tally = Tally::default();
    while tally.accepted.len() < MESSAGES
        || tally.accepted.values().any(|id| !tally.receipts.contains(id))
    {
        handle_event(&mut harness, &mut tally).await;
    }
    let submits = submits(&std::fs::read_to_string(path).unwrap());
    for token in 0..MESSAGES as u64 {
        let ids = submits.get(&number(token).to_string()).map_or(&[][..], Vec::as_slice);
        assert!(ids.contains(&tally.accepted[&token]), "{token}");
        assert!(ids.len() <= tally.arrived[&token], "{token}: {ids:?}");
    }
}

/// Acts as the engine: resubmits where that is allowed, and commits every receipt.
async fn handle_event(harness: &mut Harness, tally: &mut Tally) {
    match harness.event().await {
        CarrierEvent::Bound | CarrierEvent::Unbound(_) => {}
        CarrierEvent::Receipt { handle, receipt } => {
            tally.receipts.insert(receipt.smsc_id);
            harness.ack(handle, true).await;
        }
        CarrierEvent::Message { incoming, .. } => panic!("unexpected reply: {incoming:?}"),
        CarrierEvent::Submitted { token, outcome, .. } => {
            let arrived =
                matches!(outcome, SubmitOutcome::Accepted { .. } | SubmitOutcome::InDoubt);
            *tally.arrived.entry(token).or_default() += usize::from(arrived);
            match outcome {
                SubmitOutcome::Accepted { smsc_id } => {
                    tally.accepted.insert(token, smsc_id);
                }
                SubmitOutcome::InDoubt
                | SubmitOutcome::Temporary { .. }
                | SubmitOutcome::NotSent => {
                    harness.submit(token, number(token)).await;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Returns the ids of the accepted submits by destination.
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
