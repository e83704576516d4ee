//! The page of one message: details, segments, timeline and webhooks.

use crate::error_page::PageError;
use crate::format;
use crate::layout::{Layout, Notice};
use crate::messages::advice::advice;
use crate::page;
use crate::session::{SessionForm, SessionRequest, notice_from, redirect_with_notice};
use crate::state::DashboardState;
use askama::Template;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::account::Mode;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{self, Message, MessageState, MessageStatus, TimelineEvent};
use heliograph_domain::text::non_gsm;
use heliograph_domain::time::Timestamp;
use heliograph_domain::wording::cancellation::not_cancellable;
use heliograph_domain::wording::failures::failure_reason;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::Error;
use heliograph_service::messaging::cancel::is_untouched;
use heliograph_service::messaging::messages::{self, MessageDetail};
use heliograph_service::webhooks::endpoints::{self, EndpointDelivery};
use std::sync::Arc;

const NOTICES: &[(&str, &str)] = &[(
    "cancelled",
    "Message cancelled. It will not be sent, and the reserved amount was released.",
)];
/// The largest number of characters listed with the encoding.
const MAX_LISTED: usize = 5;

#[derive(Template)]
#[template(path = "message.html")]
struct Page {
    layout: Layout,
    here: String,
    message: MessageView,
    steps: Vec<Step>,
    deliveries: Vec<Step>,
}

struct MessageView {
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
    sent_by: String,
    encoding: String,
    segments: Vec<Segment>,
    price: String,
    charged: String,
    expires_iso: String,
    expires: String,
}

/// A segment of a long message.
struct Segment {
    number: u16,
    state: &'static str,
    text: &'static str,
}

/// An entry of the timeline.
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
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    let id = parse_id(&id)?;
    let notice = notice_from(&uri, NOTICES);
    match page(&app, &request, id, (StatusCode::OK, notice)).await {
        Err(error) => Err(in_other_mode(&app, &request, id).await.unwrap_or(error)),
        shown => shown,
    }
}

/// Returns the redirect to a message of the other mode; a link without a mode may lead to it.
async fn in_other_mode(
    app: &DashboardState,
    request: &SessionRequest,
    id: MessageId,
) -> Option<PageError> {
    let mode = match request.mode() {
        Mode::Live => Mode::Test,
        Mode::Test => Mode::Live,
    };
    let caller = Caller { mode, ..request.caller() };
    messages::get(&app.context, &caller, id).await.ok()?;
    Some(PageError::OtherMode(format!("/messages/{id}?mode={}", mode.name())))
}

/// Cancels a queued message.
pub(crate) async fn cancel(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let (id, caller) = (parse_id(&id)?, posted.request.caller());
    match messages::cancel(&app.context, &app.writer, &caller, id).await {
        Ok(_) => Ok(redirect_with_notice(&format!("/messages/{id}"), "cancelled")),
        Err(Error::NotCancellable(reason)) => {
            let why = not_cancellable(reason);
            let notice = Notice::error(format!("This message can no longer be cancelled. {why}"));
            page(&app, &posted.request, id, (StatusCode::CONFLICT, Some(notice))).await
        }
        Err(other) => Err(other.into()),
    }
}

fn parse_id(id: &str) -> Result<MessageId, PageError> {
    id.parse().map_err(|_| PageError::not_found())
}

async fn page(
    app: &DashboardState,
    request: &SessionRequest,
    id: MessageId,
    (status, notice): (StatusCode, Option<Notice>),
) -> Result<Response, PageError> {
    let (cx, caller) = (&app.context, request.caller());
    let (message, state) = messages::get(cx, &caller, id).await?;
    let detail = messages::detail(cx, &caller, &message).await?;
    let ended: Vec<_> = state.done_at.map(|at| (id.0, at)).into_iter().collect();
    let webhooks = endpoints::deliveries_about(cx, &caller, &ended).await?;
    let mut layout = request.layout(app, "messages", &format!("To +{}", message.recipient)).await?;
    layout.notice = notice;
    let nonce = layout.nonce.clone();
    let mut view = MessageView::new(&message, &state, detail, &caller.currency);
    view.cancellable = layout.can_send && is_untouched(&state);
    let steps = steps(&message, &state);
    let deliveries = webhooks.iter().map(Step::webhook).collect();
    let page = Page { layout, here: format!("/messages/{id}"), message: view, steps, deliveries };
    Ok(page::html(status, &nonce, page.render()))
}

impl MessageView {
    fn new(m: &Message, s: &MessageState, detail: MessageDetail, currency: &str) -> Self {
        let (iso, at) = format::date_time(m.accepted_at);
        let (expires_iso, expires) = format::date_time(m.expires_at);
        let failure = s.failure.as_ref();
        let money = |amount| match m.mode {
            Mode::Test => "Free (test mode)".to_owned(),
            Mode::Live => format::money(amount, currency),
        };
        Self {
            id: m.id.to_string(),
            recipient: m.recipient.to_string(),
            originator: format::originator(&m.originator),
            status: s.status.name().to_lowercase(),
            test: m.mode == Mode::Test,
            iso,
            at,
            cancellable: false,
            cancel_action: format!("/messages/{}/cancel", m.id),
            failure: failure.map_or("", |f| failure_reason(f.code)),
            failure_hint: failure.map_or("", |f| advice(f.code)),
            carrier_code: failure.and_then(|f| f.carrier_code.clone()).unwrap_or_default(),
            possible_duplicate: s.possible_duplicate,
            text: m.text.clone(),
            size: size(m),
            reference: m.reference.clone().unwrap_or_default(),
            sent_by: sent_by(m, detail.key, detail.user),
            encoding: encoding(m),
            segments: segments(m, s, &detail.parts),
            price: money(message::price(m, s)),
            charged: money(s.captured),
            expires_iso,
            expires,
        }
    }
}

/// Returns who sent a message: an API key, a user, or the service itself.
fn sent_by(m: &Message, key: Option<String>, user: Option<String>) -> String {
    match (key, user) {
        (Some(key), _) => format!("API key “{key}”"),
        (None, Some(user)) => format!("{user} (dashboard)"),
        (None, None) if m.sent_by.is_some() => "A removed user (dashboard)".to_owned(),
        (None, None) => "Automatic reply".to_owned(),
    }
}

fn size(m: &Message) -> String {
    let (characters, parts) = (m.text.chars().count(), m.parts);
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    format!(
        "{characters} character{}, {parts} segment{}",
        plural(characters),
        plural(usize::from(parts))
    )
}

fn encoding(m: &Message) -> String {
    let non_gsm = non_gsm::non_gsm_graphemes(&m.text);
    let listed: Vec<_> = non_gsm.iter().take(MAX_LISTED).copied().collect();
    match non_gsm.len() {
        0 => format::encoding(m.encoding).to_owned(),
        n => format!(
            "{}, because of {}{}",
            format::encoding(m.encoding),
            listed.join(" "),
            if n > MAX_LISTED { " and others" } else { "" }
        ),
    }
}

/// Returns the state of each segment, when there are several.
fn segments(m: &Message, s: &MessageState, submitted: &[(i16, bool)]) -> Vec<Segment> {
    let segment = |number: u16| {
        let found = submitted.iter().find(|(n, _)| u16::try_from(*n).is_ok_and(|n| n == number));
        let (state, text) = match found {
            Some((_, true)) => ("delivered", "Delivered"),
            Some(_) if s.status == MessageStatus::Failed => ("sent", "Not delivered"),
            Some(_) => ("sent", "Sent"),
            None if s.status.is_final() => ("cancelled", "Not sent"),
            None => ("queued", "Queued"),
        };
        Segment { number, state, text }
    };
    (1..=m.parts).filter(|_| m.parts > 1).map(segment).collect()
}

/// Returns the timeline: past events, and the next expected one.
fn steps(m: &Message, s: &MessageState) -> Vec<Step> {
    let events = message::timeline(m, s).into_iter();
    let mut steps: Vec<_> = events.map(|(event, at)| Step::event(event, at, s)).collect();
    match s.status {
        MessageStatus::Queued => steps.push(Step::new("Waiting to be sent", "pending", None)),
        MessageStatus::Sent => {
            steps.push(Step::new("Waiting for delivery receipt", "pending", None))
        }
        MessageStatus::Delivered | MessageStatus::Failed | MessageStatus::Cancelled => {}
    }
    steps
}

impl Step {
    fn new(title: &str, state: &'static str, at: Option<Timestamp>) -> Self {
        let (iso, at) = at.map(format::time_of_day).unwrap_or_default();
        let (detail, href, link) = <_>::default();
        Self { title: title.to_owned(), state, iso, at, detail, href, link }
    }

    fn event(event: TimelineEvent, at: Option<Timestamp>, s: &MessageState) -> Self {
        match event {
            TimelineEvent::Accepted => Self::new("Accepted", "good", at),
            TimelineEvent::SentAgain => {
                let detail = "The carrier's response was lost.".to_owned();
                Self { detail, ..Self::new("Resent", "good", at) }
            }
            TimelineEvent::Sent => Self::new("Sent to carrier", "good", at),
            TimelineEvent::Ended(MessageStatus::Delivered) => Self::new("Delivered", "good", at),
            TimelineEvent::Ended(MessageStatus::Cancelled) => Self::new("Cancelled", "failed", at),
            TimelineEvent::Ended(_) => {
                let detail = s.failure.as_ref().map_or("", |f| failure_reason(f.code)).to_owned();
                Self { detail, ..Self::new("Failed", "failed", at) }
            }
            TimelineEvent::LateReceipt => {
                let detail = "The message had already failed; its status is unchanged.".to_owned();
                Self { detail, ..Self::new("Late delivery receipt", "good", at) }
            }
        }
    }

    fn webhook(webhook: &EndpointDelivery) -> Self {
        let (state, detail) = match webhook.outcome {
            None => ("pending", "The webhook is pending.".to_owned()),
            Some(outcome) => {
                let state = if outcome.is_success() { "good" } else { "failed" };
                let detail = match outcome.status() {
                    Some(status) => format!("The endpoint responded with {status}."),
                    None => "The endpoint did not respond.".to_owned(),
                };
                (state, detail)
            }
        };
        Self {
            detail,
            href: format!("/settings/webhooks/{}", webhook.endpoint),
            link: webhook.url.clone(),
            ..Self::new(webhook.kind.name(), state, webhook.at)
        }
    }
}
