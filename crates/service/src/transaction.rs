//! What one transaction of the writer does, kind by kind.
//!
//! The order is the order of locks, the same on every node: idempotency keys, the queue, messages by
//! id, accounts by number; new rows last, since nobody waits for those.

use crate::accept::{self, Closed};
use crate::context::Context;
use crate::dispatch::{self, Desks};
use crate::progress::{self, Changes};
use crate::writer::{Accepted, Batch, Handed, Rules};
use heliograph_domain::id::{AccountId, CarrierId, MessageId};
use heliograph_domain::lease::{LEASE, Leased};
use heliograph_domain::message::{Event, Failure, FailureCode};
use heliograph_store::{Result, Tx, queue};
use std::collections::HashMap;
use std::time::Instant;

/// The writer's rules.
pub struct Road {
    context: Context,
    desks: Desks,
}

/// What has to be told when a batch is durable.
#[derive(Debug)]
pub struct Answers {
    closed: Closed,
    claimed: Vec<(Vec<Leased>, bool)>,
    since: Instant,
}

impl Road {
    /// Rules that hand freshly accepted messages to these desks.
    pub const fn new(context: Context, desks: Desks) -> Self {
        Self { context, desks }
    }
}

impl Rules for Road {
    type Answers = Answers;

    async fn apply(&mut self, tx: &mut Tx, batch: &Batch) -> Result<Answers> {
        let (now, since) = (self.context.db.now(), Instant::now());
        let mut changes = Changes::default();
        let verdicts = accept::open(tx, &batch.accepts, now).await?;
        let settlements: Vec<_> = batch.progress.iter().flat_map(|(p, _)| &p.settlements).collect();
        let receipts: Vec<_> = batch.progress.iter().flat_map(|(p, _)| &p.receipts).collect();
        progress::note(tx, &settlements, &receipts, now, &mut changes).await?;
        for (leases, _) in &batch.renewals {
            queue::renew(tx, leases, now.after(LEASE)).await?;
        }
        let mut claimed = Vec::with_capacity(batch.claims.len());
        for c in &batch.claims {
            claimed.push(dispatch::claim(tx, self.context.node, c, now, &mut changes).await?);
        }
        for (expired, _) in &batch.expiries {
            for key in queue::expire(tx, expired, now).await? {
                changes.add(key, Event::SendFailed(Failure::plain(FailureCode::Expired)));
            }
        }
        let moves = progress::fold(tx, changes, now).await?;
        let closed =
            accept::close(&self.context, &self.desks, tx, &batch.accepts, (verdicts, moves))
                .await?;
        Ok(Answers { closed, claimed, since })
    }

    fn answer(&mut self, batch: Batch, answers: Answers) {
        let Answers { closed, claimed, since } = answers;
        let made = closed.verdicts.iter().filter(|v| **v == Accepted::Done).count();
        metrics::counter!("heliograph_accepted_total").increment(made as u64);
        for (accept, verdict) in batch.accepts.into_iter().zip(closed.verdicts) {
            let _ = accept.reply.send(Ok(verdict));
        }
        for (_, reply) in batch.progress {
            let _ = reply.send(Ok(()));
        }
        for (_, reply) in batch.renewals {
            let _ = reply.send(Ok(()));
        }
        for (_, reply) in batch.expiries {
            let _ = reply.send(Ok(()));
        }
        for (claim, (leased, more)) in batch.claims.into_iter().zip(claimed) {
            // Before `left` below: what was accepted in this very batch came after this claim.
            match more {
                true => self.desks.left(claim.carrier),
                false => self.desks.drained(claim.carrier),
            }
            let _ = claim.reply.send(Ok(dispatch::place(leased, claim.room, since)));
        }
        self.hand_over(closed.handed);
        for carrier in closed.left {
            self.desks.left(carrier);
        }
    }

    fn probe(&mut self, batch: &Batch, answers: &Answers) -> Option<(AccountId, MessageId)> {
        // Everything but a new message is fenced by its lease or by the state machine.
        let mut told = batch.accepts.iter().zip(&answers.closed.verdicts);
        let (made, _) = told.find(|(_, verdict)| **verdict == Accepted::Done)?;
        Some((made.message.account, made.message.id))
    }
}

impl Road {
    fn hand_over(&self, handed: HashMap<CarrierId, Vec<Handed>>) {
        for (carrier, messages) in handed {
            self.desks.hand_over(carrier, messages);
        }
    }
}
