//! Tests of the API inside of the process: each handler with its responses and its errors, over a
//! real database on the engine selected by `HELIOGRAPH_TEST_ENGINE`.

#[cfg(test)]
mod auth;
#[cfg(test)]
mod balance;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod fake_carrier;
#[cfg(test)]
mod health;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod inbound_messages;
#[cfg(test)]
mod messages_list;
#[cfg(test)]
mod messages_send;
#[cfg(test)]
mod messages_view;
#[cfg(test)]
mod optout_lists;
#[cfg(test)]
mod optout_numbers;
#[cfg(test)]
mod problems;
#[cfg(test)]
mod rate_limit;
#[cfg(test)]
mod redaction;
#[cfg(test)]
mod support;
