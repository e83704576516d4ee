//! The one writer of a node: collects what queued while the last transaction committed, and commits
//! it as one.
//!
//! It knows what travels, not what it means: [`Rules`] does the work of a batch, kind by kind. No
//! timer: an idle server adds no delay.

use crate::context::Context;
use crate::parcel::{Collect, Report, ReportReply};
use crate::replies::{Confirmation, Heard};
use heliograph_domain::id::{AccountId, CarrierId, InboundId, MessageId};
use heliograph_domain::lease::{Lease, Leased};
use heliograph_domain::message::{Failure, Message};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::Receipt;
pub use heliograph_store::Error;
use heliograph_store::idempotency::Key;
use heliograph_store::queue::{Expired, Place};
use heliograph_store::{Result, Tx, inbound_messages, messages};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// Rows that one transaction changes, about: enough to spread the price of a commit, few enough to
/// keep it short.
const BATCH: usize = 512;
/// Commands that may wait; beyond it callers are told to come back later.
const INBOX: usize = 4_096;
/// How often a batch that met another node's is tried.
const CONFLICTS: u32 = 5;

/// A message that wants to come into being.
#[derive(Debug)]
pub struct Accept {
    /// The message, complete.
    pub message: Arc<Message>,
    /// The client's idempotency key and the SHA-256 of what it asked for.
    pub idempotency: Option<(Key, [u8; 32])>,
    /// Told what came of it.
    pub reply: oneshot::Sender<Result<Accepted>>,
}

/// What came of an [`Accept`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepted {
    /// It is durable.
    Done,
    /// The same was asked before, and made this.
    Replayed(MessageId),
    /// The same idempotency key was used for something else.
    KeyReused,
    /// The key was revoked meanwhile, or may not send.
    KeyInvalid,
    /// The balance does not cover it.
    InsufficientBalance,
    /// The recipient is on the list that it enforces.
    OptedOut,
}

/// Told that news is durable, and given what people are to be answered; or given the news back.
pub type ProgressReply = oneshot::Sender<std::result::Result<Vec<Confirmation>, (Error, Progress)>>;

/// What became of leased messages, and what receipts say.
#[derive(Debug, Default)]
pub struct Progress {
    /// In the order of the wire.
    pub settlements: Vec<Settlement>,
    /// In the order of the wire.
    pub receipts: Vec<(CarrierId, Receipt)>,
    /// In the order of the wire.
    pub heard: Vec<Heard>,
}

/// What became of one leased message.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The right to say so.
    pub lease: Lease,
    /// Whom the message is for.
    pub recipient: Recipient,
    /// Of how many parts it is.
    pub parts: u16,
    /// The parts that the carrier took, and what it calls them.
    pub taken: Vec<(u8, String)>,
    /// What is to follow.
    pub then: Then,
}

/// What follows a [`Settlement`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Then {
    /// Nothing: all parts are out.
    Done,
    /// It will not be sent (any further).
    Fail(Failure),
    /// Another try later.
    Retry {
        /// How much later.
        after: Duration,
        /// Whether this was a try.
        tried: bool,
    },
    /// It may be out. Another try, marked as a possible duplicate.
    Doubt,
}

/// A dispatcher that has room.
#[derive(Debug)]
pub struct Claim {
    /// Whose work it wants.
    pub carrier: CarrierId,
    /// One for each message that it has room for.
    pub room: OwnedSemaphorePermit,
    /// Given what was found.
    pub reply: oneshot::Sender<Result<Vec<Handed>>>,
}

/// A leased message on its way to the dispatcher, with its place there.
#[derive(Debug)]
pub struct Handed {
    /// The message and its lease.
    pub leased: Leased,
    /// When the lease began, by the monotonic clock; never later than the database thinks.
    pub since: Instant,
    /// Its place; free again when this is dropped.
    pub room: OwnedSemaphorePermit,
}

/// A message that its owner calls back.
#[derive(Debug)]
pub struct Cancel {
    /// Whose.
    pub account: AccountId,
    /// Which.
    pub message: MessageId,
    /// Where it waits.
    pub place: Place,
    /// Told what came of it.
    pub reply: oneshot::Sender<Result<Cancelled>>,
}

/// What came of a [`Cancel`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancelled {
    /// It will not be sent.
    Done,
    /// It does not wait there any more: somebody has begun, or it was put off.
    Moved,
}

/// One thing to write.
#[derive(Debug)]
pub enum Command {
    /// A new message.
    Accept(Accept),
    /// News from the wire. On failure it is handed back, to be tried again.
    Progress(Progress, ProgressReply),
    /// A wish for work.
    Claim(Claim),
    /// Leases that are still needed.
    Renew(Vec<Lease>, oneshot::Sender<Result<()>>),
    /// Queued messages whose validity has ended.
    Expire(Vec<Expired>, oneshot::Sender<Result<()>>),
    /// A message that its owner calls back.
    Cancel(Cancel),
    /// A wish for webhooks to deliver.
    Collect(Collect),
    /// What became of webhooks. On failure it is handed back, to be tried again.
    Report(Report, ReportReply),
}

impl Command {
    fn weight(&self) -> usize {
        match self {
            Self::Accept(_) | Self::Cancel(_) => 1,
            Self::Progress(p, _) => p.settlements.len() + p.receipts.len() + p.heard.len(),
            Self::Claim(c) => c.room.num_permits(),
            Self::Renew(l, _) => l.len(),
            Self::Expire(m, _) => m.len(),
            Self::Collect(c) => c.room.num_permits(),
            Self::Report(r, _) => r.attempts.len(),
        }
    }
}

/// What one transaction writes, sorted by kind; each kind in the order in which it came.
#[derive(Debug, Default)]
pub struct Batch {
    /// New messages.
    pub accepts: Vec<Accept>,
    /// News from the wire.
    pub progress: Vec<(Progress, ProgressReply)>,
    /// Wishes for work.
    pub claims: Vec<Claim>,
    /// Leases that are still needed.
    pub renewals: Vec<(Vec<Lease>, oneshot::Sender<Result<()>>)>,
    /// Messages to expire.
    pub expiries: Vec<(Vec<Expired>, oneshot::Sender<Result<()>>)>,
    /// Messages that are called back.
    pub cancels: Vec<Cancel>,
    /// Wishes for webhooks to deliver.
    pub collects: Vec<Collect>,
    /// What became of webhooks.
    pub reports: Vec<(Report, ReportReply)>,
    weight: usize,
}

impl Batch {
    fn push(&mut self, command: Command) {
        self.weight += command.weight();
        match command {
            Command::Accept(a) => self.accepts.push(a),
            Command::Progress(p, reply) => self.progress.push((p, reply)),
            Command::Claim(c) => self.claims.push(c),
            Command::Renew(l, reply) => self.renewals.push((l, reply)),
            Command::Expire(m, reply) => self.expiries.push((m, reply)),
            Command::Cancel(c) => self.cancels.push(c),
            Command::Collect(c) => self.collects.push(c),
            Command::Report(r, reply) => self.reports.push((r, reply)),
        }
    }

    fn len(&self) -> usize {
        self.accepts.len()
            + self.progress.len()
            + self.claims.len()
            + self.renewals.len()
            + self.expiries.len()
            + self.cancels.len()
            + self.collects.len()
            + self.reports.len()
    }

    /// Cuts the batch in two, so that one bad command is found and its neighbours are not harmed.
    /// Wire order within a kind is kept: the first half goes first.
    fn split(mut self) -> (Self, Self) {
        fn rest<T>(all: &mut Vec<T>, first: &mut usize) -> Vec<T> {
            let stay = all.len().min(*first);
            *first -= stay;
            all.split_off(stay)
        }
        // Counted over all kinds: halves of each would leave one command of each together for ever.
        let mut first = self.len() / 2;
        let second = Self {
            accepts: rest(&mut self.accepts, &mut first),
            progress: rest(&mut self.progress, &mut first),
            claims: rest(&mut self.claims, &mut first),
            renewals: rest(&mut self.renewals, &mut first),
            expiries: rest(&mut self.expiries, &mut first),
            cancels: rest(&mut self.cancels, &mut first),
            collects: rest(&mut self.collects, &mut first),
            reports: rest(&mut self.reports, &mut first),
            weight: 0,
        };
        (self, second)
    }

    fn refuse(self, error: &Error) {
        for a in self.accepts {
            let _ = a.reply.send(Err(error.share()));
        }
        for (p, reply) in self.progress {
            let _ = reply.send(Err((error.share(), p)));
        }
        for c in self.claims {
            let _ = c.reply.send(Err(error.share()));
        }
        for (_, reply) in self.renewals {
            let _ = reply.send(Err(error.share()));
        }
        for (_, reply) in self.expiries {
            let _ = reply.send(Err(error.share()));
        }
        for c in self.cancels {
            let _ = c.reply.send(Err(error.share()));
        }
        for c in self.collects {
            let _ = c.reply.send(Err(error.share()));
        }
        for (r, reply) in self.reports {
            let _ = reply.send(Err((error.share(), r)));
        }
    }
}

/// What a batch means.
pub trait Rules: Send {
    /// What has to be told when the batch is durable.
    type Answers: Send;

    /// Writes the batch into a transaction. May be called again for the same batch when that
    /// transaction was undone.
    fn apply(
        &mut self,
        tx: &mut Tx,
        batch: &Batch,
    ) -> impl Future<Output = Result<Self::Answers>> + Send;

    /// The batch is durable: tell everyone.
    fn answer(&mut self, batch: Batch, answers: Self::Answers);

    /// What tells whether a batch whose commit got no answer is there after all; `None` when it can be
    /// written again without harm.
    fn probe(&mut self, batch: &Batch, answers: &Self::Answers) -> Option<Witness>;
}

/// A row that is there when its batch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Witness {
    /// A message that the batch made.
    Made(AccountId, MessageId),
    /// One of a person that it took in.
    TakenIn(AccountId, InboundId),
}

/// The way to the writer; cheap to clone.
#[derive(Clone, Debug)]
pub struct Writer(mpsc::Sender<Command>);

/// The writer's end.
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<Command>);

/// A writer's both ends.
pub fn channel() -> (Writer, Inbox) {
    let (to, from) = mpsc::channel(INBOX);
    (Writer(to), Inbox(from))
}

impl Writer {
    /// Hands over a command, unless too many wait already: then at once an error.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub fn try_send(&self, command: Command) -> Result<()> {
        self.0.try_send(command).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => {
                Error::Unavailable("too much to write".to_owned())
            }
            mpsc::error::TrySendError::Closed(_) => Error::Unavailable("shutting down".to_owned()),
        })
    }

    /// Hands over a command as soon as there is room.
    ///
    /// # Errors
    /// The command itself, when the writer has ended.
    pub async fn send(&self, command: Command) -> std::result::Result<(), Command> {
        self.0.send(command).await.map_err(|e| e.0)
    }
}

/// Writes until all handles to the writer are gone and everything that waited is written.
pub async fn run<R: Rules>(context: Context, mut inbox: Inbox, mut rules: R) {
    while let Some(first) = inbox.0.recv().await {
        let mut batch = Batch::default();
        batch.push(first);
        while batch.weight < BATCH
            && let Ok(next) = inbox.0.try_recv()
        {
            batch.push(next);
        }
        metrics::histogram!("heliograph_writer_batch_rows").record(batch.weight as f64);
        let begun = Instant::now();
        write(&context, &mut rules, batch).await;
        metrics::histogram!("heliograph_writer_commit_seconds")
            .record(begun.elapsed().as_secs_f64());
    }
}

async fn write<R: Rules>(context: &Context, rules: &mut R, batch: Batch) {
    // A stack, not recursion: the halves of a batch that failed, the first half on top.
    let mut waiting = vec![batch];
    while let Some(batch) = waiting.pop() {
        match attempt(context, rules, &batch).await {
            Ok(answers) => rules.answer(batch, answers),
            Err(e @ (Error::Unavailable(_) | Error::CommitLost(_))) => {
                tracing::warn!(error = %e, commands = batch.len(), "nothing could be written");
                batch.refuse(&e);
            }
            Err(e) if batch.len() <= 1 => {
                tracing::error!(error = %e, "a command could not be written");
                batch.refuse(&e);
            }
            Err(e) => {
                tracing::warn!(error = %e, commands = batch.len(), "a batch failed and is written in halves");
                let (first, second) = batch.split();
                waiting.extend([second, first].into_iter().filter(|b| b.len() > 0));
            }
        }
    }
}

async fn attempt<R: Rules>(context: &Context, rules: &mut R, batch: &Batch) -> Result<R::Answers> {
    let mut conflicts = 0;
    loop {
        match transact(context, rules, batch).await {
            Err(Error::Conflict(_)) if conflicts < CONFLICTS => conflicts += 1,
            other => return other,
        }
    }
}

async fn transact<R: Rules>(context: &Context, rules: &mut R, batch: &Batch) -> Result<R::Answers> {
    let mut tx = context.db.write().await?;
    let answers = rules.apply(&mut tx, batch).await?;
    match tx.commit().await {
        Ok(()) => Ok(answers),
        Err(Error::CommitLost(e)) => {
            let Some(witness) = rules.probe(batch, &answers) else {
                return Err(Error::Conflict(e)); // harmless to write again
            };
            match is_there(context, witness).await {
                Ok(true) => Ok(answers),
                Ok(false) => Err(Error::Conflict(e)),
                Err(_) => Err(Error::CommitLost(e)),
            }
        }
        Err(e) => Err(e),
    }
}

async fn is_there(context: &Context, witness: Witness) -> Result<bool> {
    let mut conn = context.db.read().await?;
    match witness {
        Witness::Made(account, id) => messages::exists(&mut conn, account, id).await,
        Witness::TakenIn(account, id) => {
            let found = inbound_messages::whole(&mut conn, &[(account, id)]).await?;
            Ok(!found.is_empty())
        }
    }
}
