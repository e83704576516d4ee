//! View data of the Phone page: handsets, the timeline of the last message, and its webhooks.

use crate::bubbles::{initials, preview};
use crate::error_page::PageError;
use crate::format;
use crate::state::DashboardState;
use heliograph_domain::delivery_error::AttemptOutcome;
use heliograph_domain::message::{Message, MessageState, MessageStatus};
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_domain::wording::failures::failure_reason;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::messaging::conversations::{self, RecentRecipient};
use heliograph_service::webhooks::endpoints;

/// A handset in the list.
pub(crate) struct HandsetRow {
    pub(crate) number: String,
    pub(crate) initials: String,
    pub(crate) last: String,
    pub(crate) iso: String,
    pub(crate) at: String,
    pub(crate) open: bool,
}

impl HandsetRow {
    pub(crate) fn new(person: &RecentRecipient, open: Option<Recipient>) -> Self {
        let (message, number) = (&person.last.0, person.number.to_string());
        let (iso, at) = format::time_of_day(message.accepted_at);
        Self {
            initials: initials(&number),
            number,
            last: preview(&message.text),
            iso,
            at,
            open: Some(person.number) == open,
        }
    }
}

fn last_sent(messages: &[conversations::ConversationEntry]) -> Option<&(Message, MessageState)> {
    messages.iter().rev().find_map(|b| match b {
        conversations::ConversationEntry::Sent(sent) => Some(&**sent),
        conversations::ConversationEntry::Received(_) => None,
    })
}

/// A sender that wrote to a handset.
pub(crate) struct Thread {
    pub(crate) sender: String,
    pub(crate) href: String,
    pub(crate) open: bool,
}

/// Returns the other side of a message: the number or name that a handset shows.
pub(crate) fn other_side(entry: &conversations::ConversationEntry) -> &str {
    match entry {
        conversations::ConversationEntry::Sent(sent) => sent.0.originator.as_str(),
        conversations::ConversationEntry::Received(received) => &received.to,
    }
}

/// Returns the senders that wrote to a handset, the latest first.
pub(crate) fn senders(messages: &[conversations::ConversationEntry]) -> Vec<Originator> {
    let mut all: Vec<Originator> = Vec::new();
    for message in messages.iter().rev() {
        if let conversations::ConversationEntry::Sent(sent) = message
            && !all.contains(&sent.0.originator)
        {
            all.push(sent.0.originator.clone());
        }
    }
    all
}

impl Thread {
    pub(crate) fn new(number: &str, sender: &Originator, open: bool) -> Self {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("sender", sender.as_str())
            .finish();
        let href = format!("/phone/{number}?{query}");
        Self { sender: format::originator(sender), href, open }
    }
}

/// A step of the timeline.
pub(crate) struct DeliveryStep {
    pub(crate) title: &'static str,
    /// Time since the message was accepted.
    pub(crate) after: String,
    pub(crate) detail: String,
    /// `good`, `failed` or `pending`.
    pub(crate) state: &'static str,
}

impl DeliveryStep {
    fn new(title: &'static str, state: &'static str, after: String) -> Self {
        Self { title, after, detail: String::new(), state }
    }
}

/// Returns the timeline of the last message to the handset: past events, and the next expected one.
pub(crate) fn steps(messages: &[conversations::ConversationEntry]) -> Vec<DeliveryStep> {
    let Some((message, state)) = last_sent(messages) else { return Vec::new() };
    let since = |at: Timestamp| after(at.millis() - message.accepted_at.millis());
    let plural = if message.parts == 1 { "" } else { "s" };
    let mut steps = vec![DeliveryStep {
        detail: format!(
            "{} segment{plural}, {}",
            message.parts,
            format::encoding(message.encoding)
        ),
        ..DeliveryStep::new("Accepted", "good", "0 ms".to_owned())
    }];
    let ended =
        |title, kind| DeliveryStep::new(title, kind, state.done_at.map(since).unwrap_or_default());
    match state.sent_at {
        Some(at) => steps.push(DeliveryStep::new("Sent to carrier", "good", since(at))),
        None if state.status == MessageStatus::Queued => {
            steps.push(DeliveryStep::new("Waiting to be sent", "pending", String::new()));
        }
        None => {}
    }
    match state.status {
        MessageStatus::Delivered => steps.push(ended("Delivered", "good")),
        MessageStatus::Cancelled => steps.push(ended("Cancelled", "failed")),
        MessageStatus::Failed => {
            let why = state.failure.as_ref().map_or("", |f| failure_reason(f.code));
            steps.push(DeliveryStep { detail: why.to_owned(), ..ended("Failed", "failed") });
        }
        MessageStatus::Sent => {
            steps.push(DeliveryStep::new("Waiting for delivery receipt", "pending", String::new()))
        }
        MessageStatus::Queued => {}
    }
    steps
}

fn after(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{} min", millis / 60_000),
    }
}

/// The webhook of the last message or reply.
pub(crate) struct WebhookResult {
    pub(crate) kind: &'static str,
    /// `good`, `bad` or `pending`.
    pub(crate) state: &'static str,
    pub(crate) response: String,
    pub(crate) href: String,
    pub(crate) url: String,
}

/// Returns the webhooks of the last message and of the last reply.
pub(crate) async fn webhook_results(
    app: &DashboardState,
    caller: &Caller,
    messages: &[conversations::ConversationEntry],
) -> Result<Vec<WebhookResult>, PageError> {
    let received = messages.iter().rev().find_map(|b| match b {
        conversations::ConversationEntry::Received(m) => Some((m.id.0, m.received_at)),
        conversations::ConversationEntry::Sent(_) => None,
    });
    let ended = last_sent(messages).and_then(|(m, state)| Some((m.id.0, state.done_at?)));
    let subjects: Vec<_> = ended.into_iter().chain(received).collect();
    let all = endpoints::deliveries_about(&app.context, caller, &subjects).await?;
    let result = |t: endpoints::EndpointDelivery| WebhookResult {
        kind: t.kind.name(),
        state: match t.outcome {
            None => "pending",
            Some(outcome) if outcome.is_success() => "good",
            Some(_) => "bad",
        },
        response: match t.outcome.map(AttemptOutcome::status) {
            None => "Pending".to_owned(),
            Some(None) => "No response".to_owned(),
            Some(Some(status)) => status.to_string(),
        },
        href: format!("/settings/webhooks/{}", t.endpoint),
        url: t.url,
    };
    Ok(all.into_iter().map(result).collect())
}
