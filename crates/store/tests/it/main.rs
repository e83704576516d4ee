//! Tests of the store through its public functions, on the engine selected by `HELIOGRAPH_TEST_ENGINE`.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod api_keys;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod balances;
#[cfg(test)]
mod carrier_refs;
#[cfg(test)]
mod check;
#[cfg(test)]
mod deliveries;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod events;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod inbound;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod message_lists;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod optouts;
#[cfg(test)]
mod parts;
#[cfg(test)]
#[cfg(feature = "test-postgres")]
mod postgres;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod sealing;
#[cfg(test)]
mod sqlite;
#[cfg(test)]
mod transactions;
#[cfg(test)]
mod webhook_fixtures;
