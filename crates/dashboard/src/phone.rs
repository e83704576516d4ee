//! The Phone page: virtual handsets for test messages.

use crate::bubbles::{self, BubbleView};
use crate::composer;
use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::layout::Layout;
use crate::page;
use crate::session::{SessionForm, SessionRequest};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account::Mode;
use heliograph_domain::fields::{FieldError, ReplyText};
use heliograph_domain::phone::Recipient;
use heliograph_domain::wording::sentence;
use heliograph_service::messaging::conversations;
use heliograph_service::messaging::handsets;
use heliograph_service::messaging::messages;
use std::sync::Arc;
use uuid::Uuid;
use view::{DeliveryStep, HandsetRow, WebhookResult};

mod view;

/// The largest number of handsets in the list.
const HANDSETS: usize = 30;
/// The largest number of messages shown.
const BUBBLES: usize = 100;
/// The default recipient: a number reserved for fiction.
const RECIPIENT: &str = "+447700900123";
/// The default originator and text.
const ORIGINATOR: &str = "Heliograph";
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
    /// True if a form has errors: a live update would remove them.
    has_errors: bool,
    handsets: Vec<HandsetRow>,
    /// The number of the open handset; empty when there is none.
    number: String,
    initials: String,
    /// The originator of the last message to it.
    sender: String,
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

async fn one(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    Path(number): Path<String>,
) -> Result<Response, PageError> {
    show(&app, &request, Some(handset(&number)?), RejectedForm::default()).await
}

fn handset(number: &str) -> Result<Recipient, PageError> {
    Recipient::from_digits(number).ok_or_else(PageError::not_found)
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    number: Option<Recipient>,
    rejected: RejectedForm,
) -> Result<Response, PageError> {
    let (cx, caller) = (&app.context, request.caller());
    if caller.mode != Mode::Test {
        return Ok(page::redirect("/messages"));
    }
    let mut layout = request.layout(app, "phone", "Phone").await?;
    layout.notice = composer::notice(&rejected.errors);
    let handsets = conversations::recent_recipients(cx, &caller, HANDSETS).await?;
    let number = number.or(handsets.first().map(|p| p.number));
    let (mut messages, mut opted_out, mut webhooks) = (Vec::new(), false, Vec::new());
    if let Some(number) = number {
        messages = conversations::entries(cx, &caller, number, Uuid::max(), BUBBLES).await?;
        opted_out = conversations::opted_out(cx, &caller, number).await?;
        webhooks = view::webhook_results(app, &caller, &messages).await?;
    }
    let shown = number.map(|n| n.to_string()).unwrap_or_default();
    let status =
        if rejected.errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let nonce = layout.nonce.clone();
    let compose = Compose::new(&rejected, cx.next_id().0);
    let page = Page {
        layout,
        has_errors: !rejected.errors.is_empty(),
        here: if shown.is_empty() { "/phone".to_owned() } else { format!("/phone/{shown}") },
        handsets: handsets.iter().map(|p| HandsetRow::new(p, number)).collect(),
        initials: bubbles::initials(&shown),
        number: shown,
        sender: view::sender(&messages),
        bubbles: bubbles::bubbles(&messages),
        opted_out,
        steps: view::steps(&messages),
        webhooks,
        // Both forms have a field with this name.
        reply: if compose.open { String::new() } else { rejected.form.raw("text").to_owned() },
        reply_error: rejected.errors.get("reply").to_owned(),
        reply_idempotency_key: cx.next_id().0,
        compose,
        curl: curl(&request.base_url),
    };
    Ok(page::html(status, &nonce, page.render()))
}

fn curl(base: &str) -> String {
    let body = r#"{"originator":"Heliograph","recipient":"+447700900123","text":"Hello, world"}"#;
    format!(
        "curl {base}/v1/send/sms -H 'Authorization: Bearer YOUR_TEST_KEY' -H 'Content-Type: application/json' -d '{body}'"
    )
}

impl Compose {
    fn new(rejected: &RejectedForm, idempotency_key: Uuid) -> Self {
        let RejectedForm { form, errors } = rejected;
        let open = ["recipient", "originator", "text"].iter().any(|f| !errors.get(f).is_empty());
        let or = |name: &str, other: &str| match open {
            true => form.raw(name).to_owned(),
            false => other.to_owned(),
        };
        Self {
            recipient: or("recipient", RECIPIENT),
            recipient_error: errors.get("recipient").to_owned(),
            originator: or("originator", ORIGINATOR),
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
            show(&app, &request, Some(number), RejectedForm { form, errors }).await
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
    let text: Option<ReplyText> = match composer::text(&form).try_into() {
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
    let (Some(text), Ok(key)) = (text, form.text("idempotency_key").parse::<Uuid>()) else {
        return show(&app, &request, Some(number), RejectedForm { form, errors }).await;
    };
    handsets::reply(&app.context, &request.caller(), key, number, text).await?;
    Ok(page::redirect(&format!("/phone/{number}")))
}
