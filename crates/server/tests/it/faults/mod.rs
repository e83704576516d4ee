//! Fault drills: lost peers, interrupted work, shutdown, overload and slow clients.

mod backup;
mod draining;
mod shutdown;
mod slow_clients;
