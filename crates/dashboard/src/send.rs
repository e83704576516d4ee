//! The composer page: writing, pricing and sending a message.

mod message_size;

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
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::fields::{MaxParts, Reference};
use heliograph_domain::id::MessageId;
use heliograph_domain::text::non_gsm;
use heliograph_service::billing::price::Quote;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::Error;
use heliograph_service::kernel::idempotency::RequestKey;
use heliograph_service::messaging::messages::{self, MessageFilter, SendRequest};
use message_size::MessageSize;
use std::sync::Arc;
use uuid::Uuid;

/// The choices for the validity period, in seconds and as text; the first is the default.
const VALIDITIES: [(&str, &str); 6] = [
    ("", "2 days"),
    ("300", "5 minutes"),
    ("3600", "1 hour"),
    ("21600", "6 hours"),
    ("86400", "1 day"),
    ("259200", "3 days"),
];

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route("/send", get(compose).post(send))
        .route("/send/count", post(update_size))
        .route("/send/plain", post(replace_special))
}

#[derive(Template)]
#[template(path = "send.html")]
struct Page {
    layout: Layout,
    form: ComposerForm,
    validities: [(&'static str, &'static str); 6],
    size: MessageSize,
}

/// The size panel alone, for live updates.
#[derive(Template)]
#[template(path = "message_size.html")]
struct SizePanel {
    layout: Layout,
    size: MessageSize,
}

/// The confirmation page with the price.
#[derive(Template)]
#[template(path = "send_confirm.html")]
struct Confirm {
    layout: Layout,
    form: ComposerForm,
    price: String,
    segments: u16,
    encoding: &'static str,
}

/// The form as typed, with its errors.
struct ComposerForm {
    recipient: String,
    originator: String,
    text: String,
    reference: String,
    validity: String,
    max_parts: String,
    override_optout: bool,
    idempotency_key: String,
    errors: FieldErrors,
}

impl ComposerForm {
    fn new(form: &Form, errors: FieldErrors) -> Self {
        let text = |name| form.text(name).to_owned();
        Self {
            recipient: text("recipient"),
            originator: text("originator"),
            text: composer::text(form),
            reference: text("reference"),
            validity: text("validity"),
            max_parts: text("maxParts"),
            override_optout: form.is_checked("overrideOptout"),
            idempotency_key: text("idempotency_key"),
            errors,
        }
    }

    /// Returns whether a field under “More options” is set or invalid.
    fn has_options(&self) -> bool {
        let invalid =
            ["reference", "validity", "maxParts"].iter().any(|f| !self.errors.get(f).is_empty());
        let fields = [&self.reference, &self.validity, &self.max_parts];
        invalid || self.override_optout || fields.iter().any(|f| !f.is_empty())
    }
}

/// Shows the composer, filled from query parameters, or with the message `copy`.
async fn compose(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    request.caller().require_scope(Scope::Send)?;
    let form = Form::read(uri.query().unwrap_or_default().as_bytes())?;
    let mut typed = ComposerForm::new(&form, FieldErrors::default());
    if let Ok(id) = form.text("copy").parse() {
        match messages::get(&app.context, &request.caller(), id).await {
            Ok((message, _)) => {
                typed.recipient = format!("+{}", message.recipient);
                typed.originator = message.originator.to_string();
                typed.text = message.text;
            }
            // A message of another account or mode: the form is empty.
            Err(Error::NotFound) => {}
            Err(other) => return Err(other.into()),
        }
    }
    if typed.originator.is_empty() {
        let (newest, caller) = (MessageId(Uuid::max()), request.caller());
        let last =
            messages::list(&app.context, &caller, &MessageFilter::default(), newest, 1).await?;
        let last = last.messages.first().map(|(m, _)| m.originator.to_string());
        typed.originator = last.unwrap_or_default();
    }
    show(&app, &request, &form, typed).await
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    form: &Form,
    mut typed: ComposerForm,
) -> Result<Response, PageError> {
    let size = MessageSize::of(app, request, form, &typed.text).await?;
    let mut layout = request.layout(app, "send", "Send message").await?;
    layout.notice = composer::notice(&typed.errors);
    if typed.idempotency_key.is_empty() || layout.notice.is_some() {
        typed.idempotency_key = app.context.next_id().0.to_string();
    }
    let status =
        if typed.errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let nonce = layout.nonce.clone();
    let page = Page { layout, form: typed, validities: VALIDITIES, size };
    Ok(page::html(status, &nonce, page.render()))
}

/// Updates the size of the text: as a fragment for htmx, or as the whole page without scripts.
async fn update_size(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.caller().require_scope(Scope::Send)?;
    if !request.is_htmx {
        return show(&app, &request, &form, ComposerForm::new(&form, FieldErrors::default())).await;
    }
    let size = MessageSize::of(&app, &request, &form, &composer::text(&form)).await?;
    let layout = request.layout(&app, "send", "Send message").await?;
    let nonce = layout.nonce.clone();
    Ok(page::html(StatusCode::OK, &nonce, SizePanel { layout, size }.render()))
}

/// Shows the composer with special characters replaced by similar ones of the GSM alphabet, as far
/// as possible.
async fn replace_special(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.caller().require_scope(Scope::Send)?;
    let mut typed = ComposerForm::new(&form, FieldErrors::default());
    typed.text = non_gsm::replace_all(&typed.text);
    show(&app, &request, &form, typed).await
}

async fn send(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    let caller = request.caller();
    caller.require_scope(Scope::Send)?;
    let mut errors = FieldErrors::default();
    let Some(send) = composer::read(&form, &mut errors) else {
        return show(&app, &request, &form, ComposerForm::new(&form, errors)).await;
    };
    let key = composer::idempotency_key(&form)?;
    match submit(&app, &caller, form.text("agreed"), (send, key)).await {
        Ok(Outcome::Sent(path)) => Ok(page::redirect(&path)),
        Ok(Outcome::Unconfirmed(quote)) => confirm(&app, &request, &form, quote).await,
        Err(error) => {
            composer::add_error(error, &mut errors)?;
            show(&app, &request, &form, ComposerForm::new(&form, errors)).await
        }
    }
}

/// The result of submitting the form.
enum Outcome {
    /// The message was accepted; the path of its page.
    Sent(String),
    /// The price needs to be confirmed first.
    Unconfirmed(Quote),
}

/// Sends a message; in live mode only when its price equals the confirmed price `agreed`.
async fn submit(
    app: &DashboardState,
    caller: &Caller,
    agreed: &str,
    (send, key): (SendRequest, RequestKey),
) -> Result<Outcome, Error> {
    let cx = &app.context;
    if caller.mode == Mode::Live && agreed != price(&messages::quote(cx, caller, &send)?, caller) {
        return Ok(Outcome::Unconfirmed(messages::dry_run(cx, caller, &send).await?.quote));
    }
    let sent = messages::send(cx, &app.writer, caller, send, Some(key)).await?;
    Ok(Outcome::Sent(match caller.mode {
        Mode::Test => format!("/phone/{}", sent.message.recipient),
        Mode::Live => format!("/messages/{}", sent.message.id),
    }))
}

fn price(quote: &Quote, caller: &Caller) -> String {
    format::money(quote.part_price * quote.parts, &caller.currency)
}

/// Shows the confirmation page with the price.
async fn confirm(
    app: &DashboardState,
    request: &SessionRequest,
    form: &Form,
    quote: Quote,
) -> Result<Response, PageError> {
    let layout = request.layout(app, "send", "Send this message?").await?;
    let nonce = layout.nonce.clone();
    let price = price(&quote, &request.caller());
    let form = ComposerForm::new(form, FieldErrors::default());
    let page = Confirm {
        layout,
        form,
        price,
        segments: quote.parts,
        encoding: format::encoding(quote.encoding),
    };
    Ok(page::html(StatusCode::OK, &nonce, page.render()))
}
