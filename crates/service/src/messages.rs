//! Messages: sending one, and looking at one.

use crate::caller::Caller;
use crate::cancel;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::once::Once;
use crate::price;
use crate::replies::Confirmation;
use crate::writer::{Accept, Accepted, Cancel, Cancelled, Command, Writer};
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::id::{AccountId, ApiKeyId, MessageId, OptoutListId};
use heliograph_domain::message::{Message, State, Status};
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_store::idempotency::{self, Key};
pub use heliograph_store::messages::{Filter, Page};
use heliograph_store::{api_keys, messages, optouts, parts, queue};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a message may take when its sender says nothing: 48 h.
pub const DEFAULT_VALIDITY: Duration = Duration::from_secs(172_800);

/// How often a message is looked for that moves while it is called back.
const CANCEL_TRIES: u32 = 3;

/// A single message as a client asks for it.
#[derive(Clone, Debug)]
pub struct Send {
    /// Who it is from.
    pub originator: Originator,
    /// Whom it is for.
    pub recipient: Recipient,
    /// What it says.
    pub text: String,
    /// The client's own name for it.
    pub reference: Option<String>,
    /// How long it may take.
    pub validity: Duration,
    /// Refuse rather than send more parts than this.
    pub max_parts: Option<u16>,
    /// Refuse to send to people on the default opt-out list.
    pub block_optout: bool,
}

/// What [`send`] made.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The message.
    pub message: Arc<Message>,
    /// It was made by an earlier request with the same idempotency key.
    pub replayed: bool,
}

/// What a message would be, if it would be at all: nothing is stored.
///
/// # Errors
/// What would speak against it, but for the balance.
pub async fn dry_run(cx: &Context, caller: &Caller, send: &Send) -> Result<price::Quote> {
    let quote = quote(cx, caller, send)?;
    let pair = [(caller.optout_list, send.recipient)];
    let mut conn = cx.db.read().await?;
    if send.block_optout && !conn.ask(optouts::listed(&pair)).await?.is_empty() {
        return Err(Error::RecipientOptedOut);
    }
    Ok(quote)
}

fn quote(cx: &Context, caller: &Caller, send: &Send) -> Result<price::Quote> {
    caller.needs(Scope::Send)?;
    price::quote(&cx.settings(), caller.mode, send.recipient, &send.text, send.max_parts)
}

/// Accepts a message: when this returns, it is durable and will be sent.
///
/// # Errors
/// What speaks against it; then nothing was stored.
pub async fn send(
    cx: &Context,
    writer: &Writer,
    caller: &Caller,
    send: Send,
    once: Option<Once>,
) -> Result<Sent> {
    let quote = quote(cx, caller, &send)?;
    let sender = Sender {
        account: caller.account,
        mode: caller.mode,
        key: caller.key,
        list: send.block_optout.then_some(caller.optout_list),
    };
    let message = Arc::new(compose(cx, &sender, send, quote));
    let (reply, answer) = oneshot::channel();
    let idempotency = once.map(|o| {
        let route = idempotency::SEND_SMS;
        (Key { account: caller.account, mode: caller.mode, route, key: o.key }, o.fingerprint)
    });
    let accept = Accept { message: message.clone(), idempotency, reply };
    writer.try_send(Command::Accept(accept))?;
    let verdict = answer.await.map_err(|_| Error::Overloaded("shutting down".to_owned()))??;
    match verdict {
        Accepted::Done => Ok(Sent { message, replayed: false }),
        Accepted::Replayed(id) => {
            let (message, _) = Box::pin(find(cx, caller, id)).await?;
            Ok(Sent { message: Arc::new(message), replayed: true })
        }
        Accepted::KeyReused => Err(Error::IdempotencyKeyReused),
        Accepted::KeyInvalid => Err(Error::Unauthenticated),
        Accepted::InsufficientBalance => Err(Error::InsufficientBalance),
        Accepted::OptedOut => Err(Error::RecipientOptedOut),
    }
}

/// Sends the answer to somebody's one word, if the account can; whoever opted out a moment ago gets it all the same.
///
/// # Errors
/// What speaks against it; then nothing was stored.
pub async fn confirm(cx: &Context, writer: &Writer, answer: Confirmation) -> Result<()> {
    let Confirmation { account, mode, from, to, text } = answer;
    let quote = price::quote(&cx.settings(), mode, to, &text, None)?;
    let originator = from.parse().map_err(|_| Error::NotFound)?;
    let (reference, validity) = (None, DEFAULT_VALIDITY);
    let (max_parts, block_optout) = (None, false);
    let send =
        Send { originator, recipient: to, text, reference, validity, max_parts, block_optout };
    let message =
        Arc::new(compose(cx, &Sender { account, mode, key: None, list: None }, send, quote));
    let (reply, answer) = oneshot::channel();
    writer.try_send(Command::Accept(Accept { message, idempotency: None, reply }))?;
    match answer.await.map_err(|_| Error::Overloaded("shutting down".to_owned()))?? {
        Accepted::InsufficientBalance => Err(Error::InsufficientBalance),
        _ => Ok(()),
    }
}

/// In whose name a message is composed.
struct Sender {
    account: AccountId,
    mode: Mode,
    key: Option<ApiKeyId>,
    /// The list that it enforces.
    list: Option<OptoutListId>,
}

fn compose(cx: &Context, sender: &Sender, send: Send, quote: price::Quote) -> Message {
    let (id, now) = cx.next_id();
    Message {
        id: MessageId(id),
        account: sender.account,
        mode: sender.mode,
        api_key: sender.key,
        campaign: None,
        country: send.recipient.country(),
        recipient: send.recipient,
        originator: send.originator,
        text: send.text,
        reference: send.reference,
        encoding: quote.encoding,
        parts: quote.parts,
        part_price: quote.part_price,
        carrier: quote.carrier,
        optout_list: sender.list.map(|list| list.0),
        accepted_at: now,
        scheduled_for: None,
        expires_at: now.after(send.validity),
    }
}

/// One of the caller's messages, and where it stands.
///
/// # Errors
/// [`Error::NotFound`] also for what is another account's.
pub async fn get(cx: &Context, caller: &Caller, id: MessageId) -> Result<(Message, State)> {
    caller.needs(Scope::Read)?;
    find(cx, caller, id).await
}

/// What a message's own row does not tell.
#[derive(Clone, Debug)]
pub struct Detail {
    /// What the key is called that sent it; none for what was sent in the dashboard, or by the service itself.
    pub key: Option<String>,
    /// The parts that the carrier took, counted from 1, each with whether it arrived; kept where there are several.
    pub parts: Vec<(i16, bool)>,
}

/// What there is to tell of one of the caller's messages besides.
///
/// # Errors
/// [`Error::Scope`], or what keeps the database away.
pub async fn detail(cx: &Context, caller: &Caller, message: &Message) -> Result<Detail> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let key = match message.api_key {
        Some(key) => api_keys::name(&mut conn, caller.account, key).await?,
        None => None,
    };
    let parts = match message.parts {
        ..=1 => Vec::new(),
        _ => parts::standing(&mut conn, caller.account, message.id).await?,
    };
    Ok(Detail { key, parts })
}

/// The caller's messages below `before` that were asked for, the newest first, and below which one there may be more:
/// a page may hold fewer than `limit`, even none, and not be the last.
///
/// # Errors
/// [`Error::Scope`], or what keeps the database away.
pub async fn list(
    cx: &Context,
    caller: &Caller,
    filter: &Filter,
    (before, limit): (MessageId, usize),
) -> Result<Page> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    Ok(messages::list(&mut conn, whose, filter, before, limit).await?)
}

/// Calls a message back that nobody has begun to submit; one that was called back before stays so.
///
/// # Errors
/// [`Error::NotCancellable`], [`Error::NotFound`].
pub async fn cancel(
    cx: &Context,
    writer: &Writer,
    caller: &Caller,
    id: MessageId,
) -> Result<(Message, State)> {
    caller.needs(Scope::Send)?;
    // A carrier may put the message off at this very moment, and then it waits elsewhere.
    for _ in 0..CANCEL_TRIES {
        let (message, state) = find(cx, caller, id).await?;
        if state.status == Status::Cancelled {
            return Ok((message, state));
        }
        if !cancel::is_untouched(&state) {
            return Err(Error::NotCancellable(too_late(&state)));
        }
        let place = queue::place(&mut cx.db.read().await?, &message).await?;
        let Some(place) = place else { continue };
        let (reply, answer) = oneshot::channel();
        let account = message.account;
        writer.try_send(Command::Cancel(Cancel { account, message: id, place, reply }))?;
        let done = answer.await.map_err(|_| Error::Overloaded("shutting down".to_owned()))??;
        if done == Cancelled::Done {
            return find(cx, caller, id).await;
        }
    }
    Err(Error::NotCancellable("It is on its way to the carrier at this moment."))
}

fn too_late(state: &State) -> &'static str {
    match state.status {
        Status::Queued if state.in_doubt => "A part of it may have gone out already.",
        Status::Queued => "A part of it went out already.",
        Status::Sent => "It was sent already.",
        Status::Delivered => "It was delivered already.",
        Status::Failed | Status::Cancelled => "It has ended already.",
    }
}

async fn find(cx: &Context, caller: &Caller, id: MessageId) -> Result<(Message, State)> {
    let mut conn = cx.db.read().await?;
    let found = messages::get(&mut conn, caller.account, caller.mode, id).await?;
    found.ok_or(Error::NotFound)
}
