//! The REST API under `/v1`.

mod messages;

pub(crate) use messages::{SEND_SMS, routes, send_sms};
