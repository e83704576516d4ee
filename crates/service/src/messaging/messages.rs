//! Messages: sending, reading and cancelling them.

use crate::billing::price;
use crate::kernel::account_limits;
use crate::kernel::caller::Caller;
use crate::kernel::commands::accept::{Accept, AcceptOutcome};
use crate::kernel::commands::cancel::{Cancel, CancelOutcome};
use crate::kernel::commands::command::Command;
use crate::kernel::commands::progress::KeywordReply;
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result, Shortfall};
use crate::kernel::idempotency::RequestKey;
use crate::kernel::writer::Writer;
use crate::messaging::cancel;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::fields::{MaxParts, MessageText, Reference, Validity};
use heliograph_domain::id::{AccountId, ApiKeyId, MessageId, OptoutListId, UserId};
use heliograph_domain::message::{Message, MessageState, MessageStatus, NotCancellableReason};
use heliograph_domain::money::Amount;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_store::audience::optouts;
use heliograph_store::idempotency::{self, ScopedKey};
use heliograph_store::identity::{accounts, api_keys, users};
use heliograph_store::messaging::messages;
pub use heliograph_store::messaging::messages::{MessageFilter, MessagePage};
use heliograph_store::messaging::parts;
use heliograph_store::messaging::queue;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The number of attempts to find a message in the queue while it moves.
const CANCEL_TRIES: u32 = 3;

/// A request to send one message.
#[derive(Clone, Debug)]
pub struct SendRequest {
    /// The originator (sender).
    pub originator: Originator,
    /// The recipient.
    pub recipient: Recipient,
    /// The text.
    pub text: MessageText,
    /// The client's reference.
    pub reference: Option<Reference>,
    /// The time after which the message expires.
    pub validity: Validity,
    /// The largest number of parts allowed.
    pub max_parts: Option<MaxParts>,
    /// True to reject recipients on the default opt-out list.
    pub block_optout: bool,
}

/// The result of [`send`].
#[derive(Clone, Debug)]
pub struct SendResult {
    /// The message.
    pub message: Arc<Message>,
    /// True if an earlier request with the same idempotency key created the message.
    pub replayed: bool,
}

/// The result of a [`dry_run`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DryRun {
    /// The quote of the message.
    pub quote: price::Quote,
    /// The available balance; `None` in test mode, which has none.
    pub available: Option<Amount>,
}

/// Validates a message and returns its quote without storing anything.
///
/// # Errors
/// Those of [`send`], in the same order.
#[boxed]
pub async fn dry_run(cx: &Context, caller: &Caller, send: &SendRequest) -> Result<DryRun> {
    let quote = quote(cx, caller, send)?;
    let pair = [(caller.optout_list, send.recipient)];
    let mut conn = cx.db.read().await?;
    if send.block_optout && !conn.query_many(optouts::listed(&pair)).await?.is_empty() {
        return Err(Error::RecipientOptedOut);
    }
    drop(conn);
    if caller.mode == Mode::Test {
        return Ok(DryRun { quote, available: None });
    }
    let shortfall = shortfall(cx, caller, quote.part_price * quote.parts).await?;
    match shortfall.available >= shortfall.price {
        true => Ok(DryRun { quote, available: Some(shortfall.available) }),
        false => Err(Error::PriceNotCovered(shortfall)),
    }
}

/// Returns a price together with the available balance.
#[boxed]
async fn shortfall(cx: &Context, caller: &Caller, price: Amount) -> Result<Shortfall> {
    let mut conn = cx.db.read().await?;
    let balance = accounts::balance(&mut conn, caller.account).await?;
    let (available, _) = balance.ok_or(Error::NotFound)?;
    Ok(Shortfall { price, available, currency: caller.currency.clone() })
}

/// Returns the encoding, route and price of a message.
///
/// # Errors
/// [`Error::TooManyParts`], [`Error::DestinationNotAllowed`], [`Error::Scope`].
pub fn quote(cx: &Context, caller: &Caller, send: &SendRequest) -> Result<price::Quote> {
    caller.require_scope(Scope::Send)?;
    let settings = cx.settings();
    if !settings.number_owners.allow(caller.account, &send.originator) {
        return Err(Error::SenderNotAllowed);
    }
    price::quote(&settings, caller.mode, send.recipient, send.text.as_str(), send.max_parts)
}

/// Accepts a message: when this returns, the message is durable and will be sent.
///
/// # Errors
/// [`Error::SenderNotAllowed`], [`Error::TooManyParts`], [`Error::DestinationNotAllowed`],
/// [`Error::PriceNotCovered`], [`Error::RecipientOptedOut`], [`Error::LimitReached`],
/// [`Error::IdempotencyKeyReused`], and [`Error::Unauthenticated`] when the API key was revoked
/// meanwhile. Nothing was stored then.
pub async fn send(
    cx: &Context,
    writer: &Writer,
    caller: &Caller,
    send: SendRequest,
    once: Option<RequestKey>,
) -> Result<SendResult> {
    let quote = quote(cx, caller, &send)?;
    if caller.mode == Mode::Test {
        account_limits::load_usage(&cx.db, &cx.limits, caller.account).await?;
    }
    let sender = Sender {
        account: caller.account,
        mode: caller.mode,
        key: caller.key,
        user: caller.user,
        list: send.block_optout.then_some(caller.optout_list),
    };
    let message = Arc::new(compose(cx, &sender, send, quote));
    let (reply, answer) = oneshot::channel();
    let idempotency = once.map(|o| {
        let route = idempotency::SEND_SMS;
        let key = o.key.into_string();
        (ScopedKey { account: caller.account, mode: caller.mode, route, key }, o.fingerprint)
    });
    let accept = Accept { message: message.clone(), idempotency, reply };
    writer.try_send(Command::Accept(accept))?;
    let outcome = answer.await.map_err(|_| Error::Overloaded("shutting down".to_owned()))??;
    match outcome {
        AcceptOutcome::Done => Ok(SendResult { message, replayed: false }),
        AcceptOutcome::Replayed(id) => {
            let (message, _) = Box::pin(find(cx, caller, id)).await?;
            Ok(SendResult { message: Arc::new(message), replayed: true })
        }
        AcceptOutcome::KeyReused => Err(Error::IdempotencyKeyReused),
        AcceptOutcome::KeyInvalid => Err(Error::Unauthenticated),
        AcceptOutcome::InsufficientBalance => {
            Err(Error::PriceNotCovered(shortfall(cx, caller, message.price()).await?))
        }
        AcceptOutcome::OptedOut => Err(Error::RecipientOptedOut),
        AcceptOutcome::LimitReached(limit) => Err(cx.limits.reached(caller.account, limit)),
    }
}

/// Sends an automatic reply to a keyword. It is sent even to a recipient who has just opted out.
///
/// # Errors
/// Those of [`send`].
#[boxed]
pub async fn send_keyword_reply(cx: &Context, writer: &Writer, answer: KeywordReply) -> Result<()> {
    let KeywordReply { account, mode, from, to, text } = answer;
    let settings = cx.settings();
    let quote = price::quote(&settings, mode, to, text.as_str(), None)?;
    let originator = settings.number_owners.originator(account, &from);
    let originator = originator.map_err(|_| Error::NotFound)?;
    let send = SendRequest {
        originator,
        recipient: to,
        text,
        reference: None,
        validity: Validity::DEFAULT,
        max_parts: None,
        block_optout: false,
    };
    let message = Arc::new(compose(
        cx,
        &Sender { account, mode, key: None, user: None, list: None },
        send,
        quote,
    ));
    let (reply, answer) = oneshot::channel();
    writer.try_send(Command::Accept(Accept { message, idempotency: None, reply }))?;
    match answer.await.map_err(|_| Error::Overloaded("shutting down".to_owned()))?? {
        AcceptOutcome::InsufficientBalance => Err(Error::InsufficientBalance),
        _ => Ok(()),
    }
}

/// The sender of a message.
struct Sender {
    account: AccountId,
    mode: Mode,
    key: Option<ApiKeyId>,
    user: Option<UserId>,
    /// The opt-out list that the message enforces.
    list: Option<OptoutListId>,
}

fn compose(cx: &Context, sender: &Sender, send: SendRequest, quote: price::Quote) -> Message {
    let (id, now) = cx.next_id();
    Message {
        id: MessageId(id),
        account: sender.account,
        mode: sender.mode,
        api_key: sender.key,
        sent_by: sender.user,
        campaign: None,
        recipient: send.recipient,
        originator: send.originator,
        text: send.text.into_string(),
        reference: send.reference.map(Reference::into_string),
        encoding: quote.encoding,
        parts: quote.parts,
        part_price: quote.part_price,
        carrier: quote.carrier,
        optout_list: sender.list.map(|list| list.0),
        accepted_at: now,
        scheduled_for: None,
        expires_at: now.after(send.validity.duration()),
    }
}

/// Returns a message of the caller and its state.
#[boxed]
pub async fn get(cx: &Context, caller: &Caller, id: MessageId) -> Result<(Message, MessageState)> {
    caller.require_scope(Scope::Read)?;
    find(cx, caller, id).await
}

/// Details of a message beyond its own row.
#[derive(Clone, Debug)]
pub struct MessageDetail {
    /// The name of the API key that sent it; `None` when the dashboard or the service itself sent
    /// it.
    pub key: Option<String>,
    /// The email address of the user who sent it from the dashboard.
    pub user: Option<String>,
    /// The accepted parts, counted from 1, each with whether it was delivered; kept for multipart
    /// messages.
    pub parts: Vec<(i16, bool)>,
}

/// Returns the details of a message of the caller.
#[boxed]
pub async fn detail(cx: &Context, caller: &Caller, message: &Message) -> Result<MessageDetail> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let key = match message.api_key {
        Some(key) => api_keys::name(&mut conn, caller.account, key).await?,
        None => None,
    };
    let user = match message.sent_by {
        Some(user) => users::by_id(&mut conn, user).await?.map(|user| user.email),
        None => None,
    };
    let parts = match message.parts {
        ..=1 => Vec::new(),
        _ => parts::list(&mut conn, caller.account, message.id).await?,
    };
    Ok(MessageDetail { key, user, parts })
}

/// Returns the caller's messages below `before` that match the filter, the newest first, and the id
/// below which there may be more. A page may hold fewer than `limit` messages, even none, without
/// being the last.
#[boxed]
pub async fn list(
    cx: &Context,
    caller: &Caller,
    filter: &MessageFilter,
    before: MessageId,
    limit: usize,
) -> Result<MessagePage> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    Ok(messages::list(&mut conn, whose, filter, before, limit).await?)
}

/// Cancels a message whose submission has not begun. Cancelling a cancelled message succeeds.
///
/// # Errors
/// [`Error::NotCancellable`], [`Error::NotFound`].
#[boxed]
pub async fn cancel(
    cx: &Context,
    writer: &Writer,
    caller: &Caller,
    id: MessageId,
) -> Result<(Message, MessageState)> {
    caller.require_scope(Scope::Send)?;
    // A carrier may postpone the message meanwhile, which moves it in the queue.
    for _ in 0..CANCEL_TRIES {
        let (message, state) = find(cx, caller, id).await?;
        if state.status == MessageStatus::Cancelled {
            return Ok((message, state));
        }
        if !cancel::is_untouched(&state) {
            return Err(Error::NotCancellable(NotCancellableReason::of(&state)));
        }
        let place = queue::position(&mut cx.db.read().await?, &message).await?;
        let Some(place) = place else { continue };
        let (reply, answer) = oneshot::channel();
        let account = message.account;
        writer.try_send(Command::Cancel(Cancel { account, message: id, place, reply }))?;
        let done = answer.await.map_err(|_| Error::Overloaded("shutting down".to_owned()))??;
        if done == CancelOutcome::Done {
            return find(cx, caller, id).await;
        }
    }
    Err(Error::NotCancellable(NotCancellableReason::InProgress))
}

async fn find(cx: &Context, caller: &Caller, id: MessageId) -> Result<(Message, MessageState)> {
    let mut conn = cx.db.read().await?;
    let found = messages::get(&mut conn, caller.account, caller.mode, id).await?;
    found.ok_or(Error::NotFound)
}
