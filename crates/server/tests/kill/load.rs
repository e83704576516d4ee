//! The messages to send, identified by a number, and the addresses of the nodes.

use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

/// The state that clients and watcher share.
pub(crate) struct Load {
    pub(crate) key: String,
    /// The address of each node that listens.
    nodes: RwLock<Vec<Option<SocketAddr>>>,
    next: AtomicU64,
    over: AtomicBool,
    /// The ids of all acknowledged messages.
    accepted: Mutex<Vec<String>>,
}

/// A message, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message(pub(crate) u64);

impl Message {
    /// Returns a unique British mobile number. The final 0 lets the SMSC deliver.
    pub(crate) fn recipient(self) -> String {
        format!("447{:08}0", self.0)
    }

    /// Returns 3 for every ninth message, otherwise 1.
    pub(crate) fn parts(self) -> u8 {
        if self.0.is_multiple_of(9) { 3 } else { 1 }
    }

    /// Returns an idempotency key for every second message, which is retried until there is a
    /// response.
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

    /// Returns a message that no other client sends.
    pub(crate) fn next(&self) -> Message {
        Message(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number of messages.
    pub(crate) fn messages(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub(crate) fn set_node(&self, n: usize, address: Option<SocketAddr>) {
        self.nodes.write().unwrap_or_else(PoisonError::into_inner)[n] = address;
    }

    /// Returns the address of a random node.
    pub(crate) fn node(&self) -> Option<SocketAddr> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        let up: Vec<_> = nodes.iter().flatten().copied().collect();
        fastrand::choice(up)
    }

    /// Ends the load.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn add_accepted(&self, id: &str) {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).push(id.to_owned());
    }

    /// Returns a random acknowledged message.
    pub(crate) fn any_accepted(&self) -> Option<String> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        fastrand::choice(accepted.iter()).cloned()
    }
}
