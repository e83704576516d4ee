//! Tests of PostgreSQL only. They use PostgreSQL, whichever engine the run uses.

mod lock_order;
mod lost_commit;
