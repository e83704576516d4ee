//! The periodic care for messages in flight: renewing their leases, and recalling opted-out ones.

use crate::dispatch::{Dispatcher, Step};
use heliograph_domain::lease::RENEW_AFTER;
use heliograph_service::audience::optouts;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::renew::Renew;
use heliograph_service::kernel::log_limit::LogLimit;
use std::collections::HashSet;
use std::time::Instant;
use tokio::sync::oneshot;
use uuid::Uuid;

static CHECK_FAILED: LogLimit = LogLimit::new();

impl Dispatcher {
    pub(super) async fn on_poll(&mut self) {
        self.may_have_work = true;
        let now = Instant::now();
        let mut leases = Vec::new();
        for entry in self.in_flight.values_mut() {
            if now.duration_since(entry.renewed) > RENEW_AFTER {
                entry.renewed = now;
                leases.push(entry.item.leased.lease.clone());
            }
        }
        if !leases.is_empty() {
            // Only messages that the carrier is slow to answer get here. If the renewal fails,
            // another node takes over after the lease expires, and fencing makes this node's result
            // harmless.
            let (reply, _) = oneshot::channel();
            drop(self.writer.send(Command::Renew(Renew { leases, reply })).await);
        }
        self.check_optouts();
    }

    /// Looks up which recipients of messages in flight have opted out since.
    fn check_optouts(&mut self) {
        let entry = self.in_flight.values().filter(|h| h.item.leased.message.optout_list.is_some());
        let messages: Vec<_> = entry.map(|h| h.item.leased.message.clone()).collect();
        if self.checking_optouts || messages.is_empty() {
            return;
        }
        self.checking_optouts = true;
        let context = self.context.clone();
        self.pending.push(Box::pin(async move {
            let out = optouts::opted_out(&context, &messages).await;
            if let Err(error) = &out
                && let Some(omitted) = CHECK_FAILED.admit()
            {
                tracing::warn!(%error, omitted, "failed to check opt-outs");
            }
            Step::OptoutsFound(out.unwrap_or_default())
        }));
    }

    /// Recalls parts that were not submitted yet. Their messages return to the table, where the
    /// next claim fails them.
    pub(super) fn recall(&mut self, out: &HashSet<Uuid>) {
        self.checking_optouts = false;
        for entry in self.in_flight.values() {
            if out.contains(&entry.item.leased.message.id.0) {
                entry.recall.recall();
            }
        }
    }
}
