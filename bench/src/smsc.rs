//! The minimal SMSC: SMPP on one port, an HTTP control API with its counters on another.

use crate::output;
use crate::session::BenchSession;
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

/// The arguments of `bench smsc`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct BenchSmscArgs {
    /// SMPP port on 127.0.0.1
    #[arg(long, default_value_t = 2775)]
    port: u16,
    /// Port of the control API: GET /stats, POST /reset
    #[arg(long, default_value_t = 2776)]
    control: u16,
    /// Delay from a submit_sm to its response, in milliseconds
    #[arg(long, default_value_t = 0)]
    resp_delay_ms: u64,
    /// Delay from a response to the receipt, in milliseconds
    #[arg(long, default_value_t = 0)]
    receipt_delay_ms: u64,
    /// Maximum number of unacknowledged receipts per session
    #[arg(long, default_value_t = 500)]
    pub(crate) receipt_window: usize,
    /// Send no receipts
    #[arg(long)]
    pub(crate) no_receipts: bool,
    /// Acknowledge TCP segments immediately, which hides a Nagle delay of the client
    #[arg(long)]
    pub(crate) quickack: bool,
    /// Count distinct recipients, to detect lost and duplicate messages
    #[arg(long)]
    unique: bool,
}

impl BenchSmscArgs {
    pub(crate) fn resp_delay(&self) -> Duration {
        Duration::from_millis(self.resp_delay_ms)
    }

    pub(crate) fn receipt_delay(&self) -> Duration {
        Duration::from_millis(self.receipt_delay_ms)
    }
}

/// The counters since the last reset.
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
    /// The total delay of responses, and their number.
    held: (Duration, u32),
    recipients: HashSet<u64>,
}

/// The counters of a single read of a session.
#[derive(Default)]
pub(crate) struct ReadCounts {
    pub(crate) submits: u64,
    pub(crate) refused: u64,
    pub(crate) acks: u64,
    pub(crate) nacks: u64,
    pub(crate) others: u64,
    pub(crate) recipients: Vec<u64>,
}

/// The state shared by all sessions.
pub(crate) struct Smsc {
    pub(crate) options: BenchSmscArgs,
    started: Instant,
    next_id: AtomicU64,
    binds: AtomicU64,
    counts: Mutex<Counts>,
}

impl Smsc {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a unique message id.
    pub(crate) fn fresh_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    pub(crate) fn bound(&self) {
        self.binds.fetch_add(1, Relaxed);
    }

    /// Returns whether distinct recipients are counted.
    pub(crate) fn tracks_recipients(&self) -> bool {
        self.options.unique
    }

    pub(crate) fn count(&self, read: ReadCounts, now: Instant) {
        let mut counts = self.counts();
        counts.submits += read.submits;
        counts.refused += read.refused;
        counts.acks += read.acks;
        counts.nacks += read.nacks;
        counts.others += read.others;
        counts.recipients.extend(read.recipients);
        if read.submits > 0 {
            counts.first.get_or_insert(now);
            counts.last = Some(now);
        }
        if read.acks > 0 {
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
        let seconds = |at: Option<Instant>| at.map(|at| (at - self.started).as_secs_f64());
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

/// Runs `bench smsc`.
pub(crate) fn main(options: BenchSmscArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let control = TcpListener::bind((Ipv4Addr::LOCALHOST, options.control)).await?;
        output::stderr(&format!("SMSC on {}", listener.local_addr()?));
        let smsc = Arc::new(Smsc {
            options,
            started: Instant::now(),
            // Longer than 32 bits, like the ids of many carriers.
            next_id: AtomicU64::new(1_000_000_000_000),
            binds: AtomicU64::new(0),
            counts: Mutex::default(),
        });
        let control_api = Router::new()
            .route("/stats", get(|State(smsc): State<Arc<Smsc>>| async move { smsc.stats() }))
            .route("/reset", axum::routing::post(reset))
            .with_state(smsc.clone());
        tokio::select! {
            result = axum::serve(control, control_api) => Ok(result?),
            result = accept_sessions(listener, smsc) => result,
        }
    })
}

async fn reset(State(smsc): State<Arc<Smsc>>) -> String {
    *smsc.counts() = Counts::default();
    smsc.stats()
}

async fn accept_sessions(listener: TcpListener, smsc: Arc<Smsc>) -> anyhow::Result<()> {
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let session = BenchSession::new(accepted?.0, smsc.clone())?;
                sessions.spawn(session.run());
            }
            Some(ended) = sessions.join_next() => {
                if let Err(why) = ended? {
                    output::stderr(&format!("session failed: {why:#}"));
                }
            }
        }
    }
}
