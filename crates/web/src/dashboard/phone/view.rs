//! How a phone looks: its handsets, its bubbles, and what happened to the last message.

use crate::app::App;
use crate::dashboard::bubbles::{glimpse, initials};
use crate::dashboard::moment;
use crate::dashboard::refusal::Refusal;
use heliograph_domain::message::{Message, State, Status};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_service::caller::Caller;
use heliograph_service::conversations::{self, Person};
use heliograph_service::webhooks;

/// A handset in the list.
pub(crate) struct Handset {
    pub(crate) number: String,
    pub(crate) initials: String,
    pub(crate) last: String,
    pub(crate) iso: String,
    pub(crate) at: String,
    pub(crate) open: bool,
}

impl Handset {
    pub(crate) fn new(person: &Person, open: Option<Recipient>) -> Self {
        let (message, number) = (&person.last.0, person.number.to_string());
        let (iso, at) = moment::clock(message.accepted_at);
        Self {
            initials: initials(&number),
            number,
            last: glimpse(&message.text),
            iso,
            at,
            open: Some(person.number) == open,
        }
    }
}

fn last_sent(said: &[conversations::Bubble]) -> Option<&(Message, State)> {
    said.iter().rev().find_map(|b| match b {
        conversations::Bubble::Sent(sent) => Some(&**sent),
        conversations::Bubble::Received(_) => None,
    })
}

/// To whom the handset's owner would reply.
pub(crate) fn sender(said: &[conversations::Bubble]) -> String {
    last_sent(said).map(|(m, _)| m.originator.as_str().to_owned()).unwrap_or_default()
}

/// One step of a message's way.
pub(crate) struct Step {
    pub(crate) title: &'static str,
    /// How long after the message was accepted.
    pub(crate) after: String,
    pub(crate) detail: String,
    /// `good`, `failed` or `pending`.
    pub(crate) state: &'static str,
}

impl Step {
    fn new(title: &'static str, state: &'static str, after: String) -> Self {
        Self { title, after, detail: String::new(), state }
    }
}

/// What happened to the last message that was sent, and what is to come.
pub(crate) fn steps(said: &[conversations::Bubble]) -> Vec<Step> {
    let Some((message, state)) = last_sent(said) else { return Vec::new() };
    let since = |at: Timestamp| after(at.millis() - message.accepted_at.millis());
    let plural = if message.parts == 1 { "" } else { "s" };
    let mut steps = vec![Step {
        detail: format!("{} part{plural}, {}", message.parts, message.encoding.name()),
        ..Step::new("Accepted", "good", "0 ms".to_owned())
    }];
    let ended = |title, kind| Step::new(title, kind, state.done_at.map(since).unwrap_or_default());
    match state.sent_at {
        Some(at) => steps.push(Step::new("Sent to the carrier", "good", since(at))),
        None if state.status == Status::Queued => {
            steps.push(Step::new("On its way to the carrier", "pending", String::new()));
        }
        None => {}
    }
    match state.status {
        Status::Delivered => steps.push(ended("Delivered", "good")),
        Status::Cancelled => steps.push(ended("Cancelled", "failed")),
        Status::Failed => {
            let why = state.failure.as_ref().map_or("", |f| f.code.detail());
            steps.push(Step { detail: why.to_owned(), ..ended("Failed", "failed") });
        }
        Status::Sent => steps.push(Step::new("Waiting for the receipt", "pending", String::new())),
        Status::Queued => {}
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

/// An endpoint that was told of what was last said.
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    /// `good`, `bad` or `pending`.
    pub(crate) state: &'static str,
    pub(crate) answer: String,
    pub(crate) href: String,
    pub(crate) url: String,
}

/// Whom the last message and the last reply were told.
pub(crate) async fn told(
    app: &App,
    caller: &Caller,
    said: &[conversations::Bubble],
) -> Result<Vec<Told>, Refusal> {
    let received = said.iter().rev().find_map(|b| match b {
        conversations::Bubble::Received(m) => Some((m.id.0, m.received_at)),
        conversations::Bubble::Sent(_) => None,
    });
    let ended = last_sent(said).and_then(|(m, state)| Some((m.id.0, state.done_at?)));
    let things: Vec<_> = ended.into_iter().chain(received).collect();
    let all = webhooks::told_of(&app.context, caller, &things).await?;
    let told = |t: webhooks::ToldOf| Told {
        kind: t.kind.name(),
        state: match t.outcome {
            None => "pending",
            Some(200..=299) => "good",
            Some(_) => "bad",
        },
        answer: match t.outcome {
            None => "on its way".to_owned(),
            Some(0) => "no answer".to_owned(),
            Some(status) => status.to_string(),
        },
        href: format!("/settings/webhooks/{}", t.endpoint),
        url: t.url,
    };
    Ok(all.into_iter().map(told).collect())
}
