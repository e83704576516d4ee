//! The loop of the node's writer: collects commands, and commits them batch by batch.
//!
//! While one transaction commits, commands queue up; the writer then commits all of them as the
//! next transaction. There is no timer, so an idle server adds no delay.

use crate::group_commit::batch::{self, BatchReplies, CommitProbe, WriterDeps};
use crate::kernel::commands::command::Batch;
use crate::kernel::log_limit::LogLimit;
use crate::kernel::metrics::metrics;
use crate::kernel::writer::Inbox;
use async_recursion::async_recursion as boxed;
use heliograph_store::messaging::inbound_messages;
use heliograph_store::messaging::messages;
use heliograph_store::{Db, StoreError, StoreResult};
use std::time::Instant;

/// The approximate number of rows that one transaction changes: enough to spread the price of a
/// commit, few enough to keep it short.
const BATCH: usize = 512;
/// The number of times that a batch is retried after a conflict with another node's transaction.
const CONFLICTS: u32 = 5;

static UNAVAILABLE: LogLimit = LogLimit::new();
static FAILED: LogLimit = LogLimit::new();
static HALVED: LogLimit = LogLimit::new();

/// Runs the writer until all handles are gone and every queued command is written.
#[boxed]
pub async fn run(deps: WriterDeps, mut inbox: Inbox) {
    while let Some(first) = inbox.receive().await {
        let mut batch = Batch::default();
        batch.push(first);
        while batch.weight() < BATCH
            && let Some(next) = inbox.try_receive()
        {
            batch.push(next);
        }
        metrics().writer_batch_rows.observe(batch.weight() as f64);
        let started = Instant::now();
        write(&deps, batch).await;
        metrics().writer_commit.observe(started.elapsed().as_secs_f64());
    }
}

async fn write(deps: &WriterDeps, batch: Batch) {
    // The halves of a failed batch, the first half on top; a stack instead of recursion.
    let mut waiting = vec![batch];
    while let Some(batch) = waiting.pop() {
        match attempt(deps, &batch).await {
            Ok(replies) => batch::answer(deps, batch, replies),
            Err(e @ (StoreError::Unavailable(_) | StoreError::CommitLost(_))) => {
                if let Some(omitted) = UNAVAILABLE.admit() {
                    let commands = batch.len();
                    tracing::warn!(error = %e, commands, omitted, "failed to commit a batch");
                }
                batch.refuse(&e);
            }
            Err(e) if batch.len() <= 1 => {
                if let Some(omitted) = FAILED.admit() {
                    tracing::error!(error = %e, omitted, "failed to commit a command");
                }
                batch.refuse(&e);
            }
            Err(e) => {
                if let Some(omitted) = HALVED.admit() {
                    let commands = batch.len();
                    tracing::warn!(error = %e, commands, omitted, "batch failed, retrying it in halves");
                }
                let (first, second) = batch.split();
                waiting.extend([second, first].into_iter().filter(|b| b.len() > 0));
            }
        }
    }
}

async fn attempt(deps: &WriterDeps, batch: &Batch) -> StoreResult<BatchReplies> {
    let mut conflicts = 0;
    loop {
        match transact(deps, batch).await {
            Err(StoreError::Conflict(_)) if conflicts < CONFLICTS => conflicts += 1,
            other => return other,
        }
    }
}

async fn transact(deps: &WriterDeps, batch: &Batch) -> StoreResult<BatchReplies> {
    let db = &deps.context.db;
    let mut tx = db.write().await?;
    let replies = batch::apply(deps, &mut tx, batch).await?;
    match tx.commit().await {
        Ok(()) => Ok(replies),
        Err(StoreError::CommitLost(e)) => {
            let Some(probe) = batch::commit_probe(batch, &replies) else {
                return Err(StoreError::Conflict(e)); // safe to apply again
            };
            match exists(db, probe).await {
                Ok(true) => Ok(replies),
                Ok(false) => Err(StoreError::Conflict(e)),
                Err(_) => Err(StoreError::CommitLost(e)),
            }
        }
        Err(e) => Err(e),
    }
}

/// Returns whether the row of a probe exists.
async fn exists(db: &Db, probe: CommitProbe) -> StoreResult<bool> {
    let mut conn = db.read().await?;
    match probe {
        CommitProbe::Message(account, id) => messages::exists(&mut conn, account, id).await,
        CommitProbe::InboundMessage(account, id) => {
            let found = inbound_messages::get_many(&mut conn, &[(account, id)]).await?;
            Ok(!found.is_empty())
        }
    }
}
