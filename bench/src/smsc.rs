//! The lean SMSC: takes binds on one port and answers questions about its counters on another.

use crate::output;
use crate::session::Session;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::json;
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// How the SMSC behaves.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Port for SMPP on 127.0.0.1
    #[arg(long, default_value_t = 2775)]
    port: u16,
    /// Port for questions: GET /stats, POST /reset
    #[arg(long, default_value_t = 2776)]
    control: u16,
    /// Milliseconds from a submit_sm to its response
    #[arg(long, default_value_t = 0)]
    resp_delay_ms: u64,
    /// Milliseconds from a response to its receipt
    #[arg(long, default_value_t = 0)]
    receipt_delay_ms: u64,
    /// Receipts without acknowledgement on one session
    #[arg(long, default_value_t = 500)]
    pub(crate) receipt_window: usize,
    /// Send no receipts
    #[arg(long)]
    pub(crate) no_receipts: bool,
    /// Acknowledge TCP segments at once, which hides a client's Nagle delay
    #[arg(long)]
    pub(crate) quickack: bool,
    /// Count distinct recipients: shows what is lost and what came twice
    #[arg(long)]
    unique: bool,
}

impl Options {
    pub(crate) fn resp_delay(&self) -> Duration {
        Duration::from_millis(self.resp_delay_ms)
    }

    pub(crate) fn receipt_delay(&self) -> Duration {
        Duration::from_millis(self.receipt_delay_ms)
    }
}

/// What was seen since the last reset.
#[derive(Default)]
struct Counts {
    submits: u64,
    refused: u64,
    receipts: u64,
    acks: u64,
    nacks: u64,
    others: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    last_ack: Option<Instant>,
    /// How long responses were held back, in all, and how many.
    held: (Duration, u32),
    recipients: HashSet<u64>,
}

/// What one read of one session brought.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) submits: u64,
    pub(crate) refused: u64,
    pub(crate) acks: u64,
    pub(crate) nacks: u64,
    pub(crate) others: u64,
    pub(crate) recipients: Vec<u64>,
}

/// What all sessions share.
pub(crate) struct Smsc {
    pub(crate) options: Options,
    begun: Instant,
    next_id: AtomicU64,
    binds: AtomicU64,
    counts: Mutex<Counts>,
}

impl Smsc {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An id that no other submit gets.
    pub(crate) fn fresh_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    pub(crate) fn bound(&self) {
        self.binds.fetch_add(1, Relaxed);
    }

    /// Whether recipients are to be told apart.
    pub(crate) fn looks_at_recipients(&self) -> bool {
        self.options.unique
    }

    pub(crate) fn count(&self, tally: Tally, now: Instant) {
        let mut counts = self.counts();
        counts.submits += tally.submits;
        counts.refused += tally.refused;
        counts.acks += tally.acks;
        counts.nacks += tally.nacks;
        counts.others += tally.others;
        counts.recipients.extend(tally.recipients);
        if tally.submits > 0 {
            counts.first.get_or_insert(now);
            counts.last = Some(now);
        }
        if tally.acks > 0 {
            counts.last_ack = Some(now);
        }
    }

    pub(crate) fn count_receipts(&self, sent: u64) {
        self.counts().receipts += sent;
    }

    pub(crate) fn count_held(&self, responses: u32, each: Duration) {
        let held = &mut self.counts().held;
        *held = (held.0 + each * responses, held.1.saturating_add(responses));
    }

    fn stats(&self) -> String {
        let counts = self.counts();
        let seconds = |at: Option<Instant>| at.map(|at| (at - self.begun).as_secs_f64());
        let held = counts.held.0.as_secs_f64() * 1000.0 / f64::from(counts.held.1.max(1));
        json!({
            "submits": counts.submits,
            "refused": counts.refused,
            "unique": counts.recipients.len(),
            "receipts": counts.receipts,
            "acks": counts.acks,
            "nacks": counts.nacks,
            "others": counts.others,
            "binds": self.binds.load(Relaxed),
            "first_s": seconds(counts.first),
            "last_s": seconds(counts.last),
            "last_ack_s": seconds(counts.last_ack),
            "now_s": seconds(Some(Instant::now())),
            "held_ms": held,
        })
        .to_string()
    }
}

/// `bench smsc`.
pub(crate) fn main(options: Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let control = TcpListener::bind((Ipv4Addr::LOCALHOST, options.control)).await?;
        output::talk(&format!("SMSC on {}", listener.local_addr()?));
        let smsc = Arc::new(Smsc {
            options,
            begun: Instant::now(),
            // Longer than 32 bits, as many carriers have them.
            next_id: AtomicU64::new(1_000_000_000_000),
            binds: AtomicU64::new(0),
            counts: Mutex::default(),
        });
        let questions = Router::new()
            .route("/stats", get(|State(smsc): State<Arc<Smsc>>| async move { smsc.stats() }))
            .route("/reset", axum::routing::post(reset))
            .with_state(smsc.clone());
        tokio::select! {
            done = axum::serve(control, questions) => Ok(done?),
            done = take_binds(listener, smsc) => done,
        }
    })
}

async fn reset(State(smsc): State<Arc<Smsc>>) -> String {
    *smsc.counts() = Counts::default();
    smsc.stats()
}

async fn take_binds(listener: TcpListener, smsc: Arc<Smsc>) -> anyhow::Result<()> {
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let session = Session::new(accepted?.0, smsc.clone())?;
                sessions.spawn(session.run());
            }
            Some(ended) = sessions.join_next() => {
                if let Err(why) = ended? {
                    output::talk(&format!("a session ended: {why:#}"));
                }
            }
        }
    }
}
