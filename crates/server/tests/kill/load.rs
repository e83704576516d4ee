//! The messages that are sent, each told from all others by its number, and where to send them.

use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

/// What drivers and watcher share.
pub(crate) struct Load {
    pub(crate) key: String,
    /// Where each node listens, while it does.
    nodes: RwLock<Vec<Option<SocketAddr>>>,
    next: AtomicU64,
    over: AtomicBool,
    /// What the watcher may look at: every message that was acknowledged.
    accepted: Mutex<Vec<String>>,
}

/// One message, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message(pub(crate) u64);

impl Message {
    /// Each its own: a British mobile number. It ends in 0, so that the SMSC delivers.
    pub(crate) fn recipient(self) -> String {
        format!("447{:08}0", self.0)
    }

    /// Every ninth has three parts.
    pub(crate) fn parts(self) -> u8 {
        if self.0.is_multiple_of(9) { 3 } else { 1 }
    }

    /// Every second is sent with an idempotency key, and again until there is an answer.
    pub(crate) fn idempotency_key(self) -> Option<String> {
        self.0.is_multiple_of(2).then(|| format!("order {}", self.0))
    }

    pub(crate) fn body(self) -> String {
        let text = format!("message {} {}", self.0, "and more ".repeat(self.more()));
        json!({ "originator": "Kill", "recipient": self.recipient(), "text": text }).to_string()
    }

    fn more(self) -> usize {
        if self.parts() == 3 { 40 } else { 2 }
    }
}

impl Load {
    pub(crate) fn new(key: String, nodes: usize) -> Self {
        Self {
            key,
            nodes: RwLock::new(vec![None; nodes]),
            next: AtomicU64::new(0),
            over: AtomicBool::new(false),
            accepted: Mutex::default(),
        }
    }

    /// A message that nobody else sends.
    pub(crate) fn next(&self) -> Message {
        Message(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// How many messages there are.
    pub(crate) fn messages(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub(crate) fn set_node(&self, n: usize, address: Option<SocketAddr>) {
        self.nodes.write().unwrap_or_else(PoisonError::into_inner)[n] = address;
    }

    /// Any node that listens.
    pub(crate) fn node(&self) -> Option<SocketAddr> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        let up: Vec<_> = nodes.iter().flatten().copied().collect();
        fastrand::choice(up)
    }

    /// No new messages from now on.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn add_accepted(&self, id: &str) {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).push(id.to_owned());
    }

    /// Any message that was acknowledged.
    pub(crate) fn any_accepted(&self) -> Option<String> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        fastrand::choice(accepted.iter()).cloned()
    }
}
