//! A name server for the hosts of webhooks, which can stop answering.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The type of a question for an IPv4 address.
const A: [u8; 2] = [0, 1];

/// A name server: `inside` is a private address, all other names are the local machine.
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    /// While this is set, questions for names that begin with `slow` get no answer.
    pub(crate) stalled: Arc<AtomicBool>,
    /// The questions without an answer.
    pub(crate) unanswered: Arc<AtomicUsize>,
}

impl NameServer {
    pub(crate) fn start() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let server = Self { address, stalled: Arc::default(), unanswered: Arc::default() };
        let (stalled, unanswered) = (server.stalled.clone(), server.unanswered.clone());
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                let question = &question[..length];
                if stalled.load(Ordering::SeqCst) && name(question).starts_with(b"slow") {
                    unanswered.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                let _ = socket.send_to(&answer(question), from);
            }
        });
        server
    }
}

/// Returns the first label of the name in a question, behind its header of 12 bytes.
fn name(question: &[u8]) -> &[u8] {
    &question[13..13 + usize::from(question[12])]
}

/// Returns the answer (RFC 1035, section 4.1): the question, and one record without caching.
fn answer(question: &[u8]) -> Vec<u8> {
    let labels = question[12..].iter().position(|length| *length == 0).unwrap();
    let end = 12 + labels + 5;
    let is_a = question[end - 4..end - 2] == A;
    let address = if name(question) == b"inside" { [10, 0, 0, 1] } else { [127, 0, 0, 1] };
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    answer.extend(&question[12..end]);
    if is_a {
        // A pointer to the name, type A, class IN, no time to live, four bytes.
        answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address);
    }
    answer
}
