//! One message: what it is, what happened to it, and who was told.

use crate::app::App;
use crate::dashboard::moment;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Shell};
use crate::dashboard::visit::{Posted, Visit, done, told};
use askama::Template;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{self, Message, State as Standing, Status, Step as Event};
use heliograph_domain::text::foreign;
use heliograph_domain::time::Timestamp;
use heliograph_service::cancel::is_untouched;
use heliograph_service::error::Error;
use heliograph_service::messages::{self, Detail};
use heliograph_service::webhooks::{self, ToldOf};
use std::sync::Arc;

const DONE: &[(&str, &str)] =
    &[("cancelled", "It is called back: it will not be sent, and its money is available again.")];
/// Characters that are named beside the encoding.
const NAMED: usize = 5;

#[derive(Template)]
#[template(path = "dashboard/message.html")]
struct Page {
    shell: Shell,
    here: String,
    message: View,
    steps: Vec<Step>,
}

struct View {
    id: String,
    recipient: String,
    originator: String,
    status: String,
    test: bool,
    iso: String,
    at: String,
    cancellable: bool,
    cancel_action: String,
    failure: &'static str,
    failure_hint: &'static str,
    carrier_code: String,
    possible_duplicate: bool,
    text: String,
    size: String,
    reference: String,
    key: String,
    encoding: String,
    parts: Vec<Part>,
    price: String,
    charged: String,
    expires_iso: String,
    expires: String,
}

/// One of several parts.
struct Part {
    number: u16,
    state: &'static str,
    words: &'static str,
}

/// Something that happened, or is to come.
struct Step {
    title: String,
    /// `good`, `failed` or `pending`.
    state: &'static str,
    iso: String,
    at: String,
    detail: String,
    href: String,
    link: String,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    visit: Visit,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    page(&app, &visit, which(&id)?, (StatusCode::OK, told(&uri, DONE))).await
}

/// Calls a message back.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let (id, caller) = (which(&id)?, posted.visit.caller());
    match messages::cancel(&app.context, &app.writer, &caller, id).await {
        Ok(_) => Ok(done(&format!("/messages/{id}"), "cancelled")),
        Err(Error::NotCancellable(why)) => {
            let notice = Notice::bad(format!("It can't be called back any more. {why}"));
            page(&app, &posted.visit, id, (StatusCode::CONFLICT, Some(notice))).await
        }
        Err(other) => Err(other.into()),
    }
}

fn which(id: &str) -> Result<MessageId, Refusal> {
    id.parse().map_err(|_| Refusal::not_found())
}

async fn page(
    app: &App,
    visit: &Visit,
    id: MessageId,
    (status, notice): (StatusCode, Option<Notice>),
) -> Result<Response, Refusal> {
    let (cx, caller) = (&app.context, visit.caller());
    let (message, state) = messages::get(cx, &caller, id).await?;
    let detail = messages::detail(cx, &caller, &message).await?;
    let ended: Vec<_> = state.done_at.map(|at| (id.0, at)).into_iter().collect();
    let told = webhooks::told_of(cx, &caller, &ended).await?;
    let mut shell = visit.shell(app, "messages", &format!("To +{}", message.recipient)).await?;
    shell.notice = notice;
    let nonce = shell.nonce.clone();
    let mut view = View::new(&message, &state, detail, &caller.currency);
    view.cancellable = shell.sends && is_untouched(&state);
    let steps = steps(&message, &state, &told);
    let page = Page { shell, here: format!("/messages/{id}"), message: view, steps };
    Ok(page::html(status, &nonce, page.render()))
}

impl View {
    fn new(m: &Message, s: &Standing, detail: Detail, currency: &str) -> Self {
        let (iso, at) = moment::day_and_clock(m.accepted_at);
        let (expires_iso, expires) = moment::day_and_clock(m.expires_at);
        let failure = s.failure.as_ref();
        let money = |amount| match m.mode {
            heliograph_domain::account::Mode::Test => "free, as every test message".to_owned(),
            heliograph_domain::account::Mode::Live => format!("{amount} {currency}"),
        };
        Self {
            id: m.id.to_string(),
            recipient: m.recipient.to_string(),
            originator: m.originator.as_str().to_owned(),
            status: s.status.name().to_lowercase(),
            test: m.mode == heliograph_domain::account::Mode::Test,
            iso,
            at,
            cancellable: false,
            cancel_action: format!("/messages/{}/cancel", m.id),
            failure: failure.map_or("", |f| f.code.detail()),
            failure_hint: failure.map_or("", |f| f.code.advice()),
            carrier_code: failure.and_then(|f| f.carrier_code.clone()).unwrap_or_default(),
            possible_duplicate: s.possible_duplicate,
            text: m.text.clone(),
            size: size(m),
            reference: m.reference.clone().unwrap_or_default(),
            key: detail.key.unwrap_or_default(),
            encoding: encoding(m),
            parts: parts(m, s, &detail.parts),
            price: money(message::price(m, s)),
            charged: money(s.captured),
            expires_iso,
            expires,
        }
    }
}

fn size(m: &Message) -> String {
    let (characters, parts) = (m.text.chars().count(), m.parts);
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    format!(
        "{characters} character{}, {parts} part{}",
        plural(characters),
        plural(usize::from(parts))
    )
}

fn encoding(m: &Message) -> String {
    let culprits = foreign::culprits(&m.text);
    let named: Vec<_> = culprits.iter().take(NAMED).map(char::to_string).collect();
    match culprits.len() {
        0 => m.encoding.name().to_owned(),
        n => format!(
            "{}, because of {}{}",
            m.encoding.name(),
            named.join(" "),
            if n > NAMED { " and others" } else { "" }
        ),
    }
}

/// Where each part stands, when there are several.
fn parts(m: &Message, s: &Standing, taken: &[(i16, bool)]) -> Vec<Part> {
    let part = |number: u16| {
        let found = taken.iter().find(|(n, _)| u16::try_from(*n).is_ok_and(|n| n == number));
        let (state, words) = match found {
            Some((_, true)) => ("delivered", "delivered"),
            Some(_) if s.status == Status::Failed => ("sent", "sent, did not arrive"),
            Some(_) => ("sent", "sent"),
            None if s.status.is_final() => ("cancelled", "not sent"),
            None => ("queued", "waiting"),
        };
        Part { number, state, words }
    };
    (1..=m.parts).filter(|_| m.parts > 1).map(part).collect()
}

/// The whole story, and what is to come.
fn steps(m: &Message, s: &Standing, told: &[ToldOf]) -> Vec<Step> {
    let happened = message::timeline(m, s).into_iter();
    let mut steps: Vec<_> = happened.map(|(event, at)| Step::of(event, at, s)).collect();
    match s.status {
        Status::Queued => steps.push(Step::new("On its way to the carrier", "pending", None)),
        Status::Sent => steps.push(Step::new("Waiting for the receipt", "pending", None)),
        Status::Delivered | Status::Failed | Status::Cancelled => {}
    }
    steps.extend(told.iter().map(Step::told));
    steps
}

impl Step {
    fn new(title: &str, state: &'static str, at: Option<Timestamp>) -> Self {
        let (iso, at) = at.map(moment::clock).unwrap_or_default();
        let (detail, href, link) = <_>::default();
        Self { title: title.to_owned(), state, iso, at, detail, href, link }
    }

    fn of(event: Event, at: Option<Timestamp>, s: &Standing) -> Self {
        match event {
            Event::Accepted => Self::new("Accepted", "good", at),
            Event::SentAgain => {
                let detail = "The carrier's answer was lost.".to_owned();
                Self { detail, ..Self::new("Sent again", "good", at) }
            }
            Event::Sent => Self::new("Sent to the carrier", "good", at),
            Event::Ended(Status::Delivered) => Self::new("Delivered", "good", at),
            Event::Ended(Status::Cancelled) => Self::new("Cancelled", "failed", at),
            Event::Ended(_) => {
                let detail = s.failure.as_ref().map_or("", |f| f.code.detail()).to_owned();
                Self { detail, ..Self::new("Failed", "failed", at) }
            }
            Event::LateReceipt => {
                let detail = "It counted as failed before, and still does.".to_owned();
                Self { detail, ..Self::new("Arrived after all", "good", at) }
            }
        }
    }

    fn told(told: &ToldOf) -> Self {
        let (state, detail) = match told.outcome {
            None => ("pending", "The webhook is on its way.".to_owned()),
            Some(0) => ("failed", "The webhook got no answer.".to_owned()),
            Some(status @ 200..=299) => {
                ("good", format!("The webhook was answered with {status}."))
            }
            Some(status) => ("failed", format!("The webhook was answered with {status}.")),
        };
        Self {
            detail,
            href: format!("/settings/webhooks/{}", told.endpoint),
            link: told.url.clone(),
            ..Self::new(&format!("Told {}", told.kind.name()), state, told.at)
        }
    }
}
