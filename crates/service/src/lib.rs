//! Every rule and every transaction: what may happen, and what happens with it.

pub mod accept;
pub mod accounts;
pub mod api_keys;
pub mod backup;
pub mod caller;
pub mod cancel;
pub mod check;
pub mod context;
pub mod deliveries;
pub mod desk;
pub mod dispatch;
pub mod error;
pub mod events;
pub mod inbound_messages;
pub mod janitor;
pub mod messages;
pub mod nodes;
pub mod once;
pub mod optouts;
pub mod parcel;
pub mod price;
pub mod progress;
pub mod replies;
pub mod transaction;
pub mod webhooks;
pub mod writer;
