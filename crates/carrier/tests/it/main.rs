//! Tests of the SMPP client and the simulated SMSC over real sockets.

#[cfg(test)]
mod bound_pair;
#[cfg(test)]
mod control;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod inbound_messages;
#[cfg(test)]
mod link;
#[cfg(test)]
mod message_lifecycle;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod scripted_peer;
#[cfg(test)]
mod smsc;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod window;
