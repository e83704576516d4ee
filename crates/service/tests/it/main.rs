//! The rules as a whole, with the writer and a database, on both engines; the test is the carrier.

#[cfg(test)]
mod accept;
#[cfg(test)]
mod backlog;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod carrier;
#[cfg(test)]
mod carriers;
#[cfg(test)]
mod courier;
#[cfg(test)]
#[cfg(feature = "test-postgres")]
mod crossing;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod listeners;
#[cfg(test)]
#[cfg(feature = "test-postgres")]
mod lost_commit;
#[cfg(test)]
mod mails;
#[cfg(test)]
mod node;
#[cfg(test)]
mod optouts;
#[cfg(test)]
mod people;
#[cfg(test)]
mod random;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod road;
#[cfg(test)]
mod stats;
#[cfg(test)]
#[path = "../../../store/tests/it/support.rs"]
mod support;
#[cfg(test)]
mod verdicts;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod world;
#[cfg(test)]
mod writer;
