//! The public HTTP API under `/v1`, and the operational endpoints beside it.

mod authentication;
mod billing;
mod health;
mod https;
mod idempotency;
mod inbound_messages;
mod messages;
mod openapi;
mod optouts;
mod optouts_input;
mod optouts_queued;
mod rate_limits;
mod routing;
mod send_sms;
mod send_sms_input;
mod tenants;
