//! Tests of the service layer with its writer, on the engine selected by `HELIOGRAPH_TEST_ENGINE`.
//! The test is the carrier.

#[cfg(test)]
mod accept;
#[cfg(test)]
mod account_limits;
#[cfg(test)]
mod backlog;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod carriers;
mod clocks;
#[cfg(test)]
mod delivery_outcomes;
#[cfg(test)]
mod endpoint_worker;
#[cfg(test)]
mod fake_carrier;
#[cfg(test)]
mod fake_endpoints;
#[cfg(test)]
mod inbound;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod mails;
#[cfg(test)]
mod message_lifecycle;
#[cfg(test)]
mod model;
#[cfg(test)]
mod node;
#[cfg(test)]
mod optouts;
#[cfg(test)]
#[cfg(feature = "test-postgres")]
mod postgres;
#[cfg(test)]
mod random;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod stats;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod writer;
