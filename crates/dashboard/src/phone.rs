//! The Phone page: virtual handsets for test messages.

use crate::bubbles::{self, BubbleView};
use crate::composer;
use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::format;
use crate::layout::Layout;
use crate::page;
use crate::session::{SessionForm, SessionRequest};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account::Mode;
use heliograph_domain::fields::{FieldError, ReplyText};
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::wording::sentence;
use heliograph_service::messaging::conversations;
use heliograph_service::messaging::handsets::{self, HandsetThread};
use heliograph_service::messaging::messages;
use std::sync::Arc;
use uuid::Uuid;
use view::{DeliveryStep, HandsetRow, Thread, WebhookResult};

mod view;

/// The largest number of handsets in the list.
const HANDSETS: usize = 30;
/// The largest number of messages shown.
const BUBBLES: usize = 100;
/// The default recipient: a number reserved for fiction.
const RECIPIENT: &str = "+447700900123";
/// The default originator, a number that replies can go to, and the default text.
const ORIGINATOR: &str = "+447700900800";
const TEXT: &str = "Hello from Heliograph 👋 Reply to this message!";

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route("/phone", get(newest))
        .route("/phone/send", post(send))
        .route("/phone/{number}", get(one))
        .route("/phone/{number}/reply", post(reply))
}

#[derive(Template)]
#[template(path = "phone.html")]
struct Page {
    layout: Layout,
    /// The URL of this page, for live updates.
    here: String,
    handsets: Vec<HandsetRow>,
    /// The number of the open handset; empty when there is none.
    number: String,
    initials: String,
    /// The sender of the open thread, as a phone shows it and as a form submits it.
    sender: String,
    sender_value: String,
    /// Whether the handset can reply to this sender.
    can_reply: bool,
    /// The threads of the handset, the latest first.
    threads: Vec<Thread>,
    /// The time that the phone shows: in RFC 3339, and as text.
    now: (String, String),
    bubbles: Vec<BubbleView>,
    opted_out: bool,
    steps: Vec<DeliveryStep>,
    webhooks: Vec<WebhookResult>,
    /// The reply as typed, with its error.
    reply: String,
    reply_error: String,
    reply_idempotency_key: Uuid,
    compose: Compose,
    /// The curl command for the same message.
    curl: String,
}

/// The form for a test message, with its errors.
struct Compose {
    recipient: String,
    recipient_error: String,
    originator: String,
    originator_error: String,
    text: String,
    text_error: String,
    idempotency_key: Uuid,
    open: bool,
}

/// A rejected form, shown again with its errors.
#[derive(Default)]
struct RejectedForm {
    form: Form,
    errors: FieldErrors,
}

async fn newest(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
) -> Result<Response, PageError> {
    show(&app, &request, None, RejectedForm::default()).await
}

/// The open handset, and the sender whose thread is shown.
struct Open {
    number: Recipient,
    /// `None` for the sender of the last message.
    sender: Option<Originator>,
}

async fn one(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    Path(number): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    let query = Form::read(uri.query().unwrap_or_default().as_bytes())?;
    let open = Open { number: handset(&number)?, sender: query.text("sender").parse().ok() };
    show(&app, &request, Some(open), RejectedForm::default()).await
}

fn handset(number: &str) -> Result<Recipient, PageError> {
    Recipient::from_digits(number).ok_or_else(PageError::not_found)
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    open: Option<Open>,
    rejected: RejectedForm,
) -> Result<Response, PageError> {
    let (cx, caller) = (&app.context, request.caller());
    if caller.mode != Mode::Test {
        return Ok(page::redirect("/messages"));
    }
    let mut layout = request.layout(app, "phone", "Phone").await?;
    layout.notice = composer::notice(&rejected.errors);
    let handsets = conversations::recent_recipients(cx, &caller, HANDSETS).await?;
    let number = open.as_ref().map(|o| o.number).or(handsets.first().map(|p| p.number));
    let (mut messages, mut opted_out, mut webhooks) = (Vec::new(), false, Vec::new());
    let (mut senders, mut sender, mut chosen) = (Vec::new(), None, false);
    if let Some(number) = number {
        messages = conversations::entries(cx, &caller, number, Uuid::max(), BUBBLES).await?;
        senders = view::senders(&messages);
        chosen = open.as_ref().is_some_and(|o| o.sender.is_some());
        sender = open.and_then(|o| o.sender).filter(|sender| senders.contains(sender));
        sender = sender.or_else(|| senders.first().cloned());
        let shown = sender.as_ref().map_or("", Originator::as_str);
        messages.retain(|message| view::other_side(message) == shown);
        opted_out = conversations::opted_out(cx, &caller, number).await?;
        webhooks = view::webhook_results(app, &caller, &messages).await?;
    }
    let shown = number.map(|n| n.to_string()).unwrap_or_default();
    let status =
        if rejected.errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let nonce = layout.nonce.clone();
    let compose = Compose::new(&rejected, number, sender.as_ref(), cx.next_id().0);
    let threads: Vec<_> =
        senders.iter().map(|s| Thread::new(&shown, s, Some(s) == sender.as_ref())).collect();
    // A page without a chosen sender follows the newest message.
    let path = if shown.is_empty() { "/phone".to_owned() } else { format!("/phone/{shown}") };
    let thread = threads.iter().find(|thread| thread.open && chosen);
    let here = thread.map_or(path, |thread| thread.href.clone());
    let can_reply = sender
        .clone()
        .zip(number)
        .is_some_and(|(originator, handset)| HandsetThread { handset, originator }.can_reply());
    let page = Page {
        layout,
        here,
        handsets: handsets.iter().map(|p| HandsetRow::new(p, number)).collect(),
        initials: bubbles::initials(&shown),
        number: shown,
        sender: sender.as_ref().map(format::originator).unwrap_or_default(),
        sender_value: sender.map(|s| s.to_string()).unwrap_or_default(),
        can_reply,
        threads,
        now: format::time_of_day(cx.db.now()),
        bubbles: bubbles::bubbles(&messages),
        opted_out,
        steps: view::steps(&messages),
        webhooks,
        reply: rejected.form.raw("reply").to_owned(),
        reply_error: rejected.errors.get("reply").to_owned(),
        reply_idempotency_key: cx.next_id().0,
        compose,
        curl: curl(&request.base_url),
    };
    Ok(page::html(status, &nonce, page.render()))
}

fn curl(base: &str) -> String {
    let body =
        r#"{"originator":"+447700900800","recipient":"+447700900123","text":"Hello, world"}"#;
    format!(
        "curl {base}/v1/send/sms -H 'Authorization: Bearer YOUR_TEST_KEY' -H 'Content-Type: application/json' -d '{body}'"
    )
}

impl Compose {
    fn new(
        rejected: &RejectedForm,
        number: Option<Recipient>,
        sender: Option<&Originator>,
        idempotency_key: Uuid,
    ) -> Self {
        let RejectedForm { form, errors } = rejected;
        let open = ["recipient", "originator", "text"].iter().any(|f| !errors.get(f).is_empty());
        let or = |name: &str, other: &str| match open {
            true => form.raw(name).to_owned(),
            false => other.to_owned(),
        };
        Self {
            recipient: or(
                "recipient",
                &number.map_or_else(|| RECIPIENT.to_owned(), |n| format!("+{n}")),
            ),
            recipient_error: errors.get("recipient").to_owned(),
            originator: or(
                "originator",
                &sender.map_or_else(|| ORIGINATOR.to_owned(), format::originator),
            ),
            originator_error: errors.get("originator").to_owned(),
            text: or("text", TEXT),
            text_error: errors.get("text").to_owned(),
            idempotency_key,
            open,
        }
    }
}

/// Sends a test message.
async fn send(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    let caller = request.caller();
    if caller.mode != Mode::Test {
        return Err(PageError::not_found());
    }
    let mut errors = FieldErrors::default();
    let Some(send) = composer::read(&form, &mut errors) else {
        return show(&app, &request, None, RejectedForm { form, errors }).await;
    };
    let number = send.recipient;
    let key = composer::idempotency_key(&form)?;
    match messages::send(&app.context, &app.writer, &caller, send, Some(key)).await {
        Ok(_) => Ok(page::redirect(&format!("/phone/{number}"))),
        Err(error) => {
            composer::add_error(error, &mut errors)?;
            let open = Open { number, sender: None };
            show(&app, &request, Some(open), RejectedForm { form, errors }).await
        }
    }
}

/// Sends a reply from the handset.
async fn reply(
    State(app): State<Arc<DashboardState>>,
    Path(number): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    let number = handset(&number)?;
    let mut errors = FieldErrors::default();
    let text: Option<ReplyText> = match composer::line_breaks(form.raw("reply")).try_into() {
        Ok(text) => Some(text),
        Err(error) => {
            errors.add(
                "reply",
                match error {
                    FieldError::Empty(_) => "Enter a reply, or select one above.".to_owned(),
                    error => sentence(&error.to_string()),
                },
            );
            None
        }
    };
    let sender: Originator = form.text("sender").parse().map_err(|_| PageError::invalid_form())?;
    let (Some(text), Ok(key)) = (text, form.text("idempotency_key").parse::<Uuid>()) else {
        let open = Open { number, sender: Some(sender) };
        return show(&app, &request, Some(open), RejectedForm { form, errors }).await;
    };
    let thread = HandsetThread { handset: number, originator: sender };
    let page = Thread::new(&number.to_string(), &thread.originator, true).href;
    handsets::reply(&app.context, &request.caller(), key, thread, text).await?;
    Ok(page::redirect(&page))
}
