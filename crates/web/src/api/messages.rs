//! `POST /v1/send/sms`, and what was sent: `/v1/messages`.

mod list;

use crate::app::App;
use crate::auth;
use crate::body::{self, Fields};
use crate::error::Problem;
use crate::error::fault::FaultCode;
use crate::once;
use crate::query;
use crate::view::{json, shown, shown_if};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{self, Failure, Message, State as MessageState};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_service::caller::Caller;
use heliograph_service::error::Error;
use heliograph_service::messages::{self, DEFAULT_VALIDITY, Send};
use heliograph_service::price::Quote;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const BODY_LIMIT: usize = 1 << 20;
const REFERENCE_LIMIT: usize = 255;

type One = Result<Path<String>, PathRejection>;

/// Where [`send_sms`] answers.
pub(crate) const SEND_SMS: &str = "/v1/send/sms";

pub(crate) fn routes() -> Router<Arc<App>> {
    let send = |State(app): State<Arc<App>>, request: Request| async move {
        let (head, body) = request.into_parts();
        send_sms(&app, &head, body).await
    };
    Router::new()
        .route("/send/sms", post(send))
        .route("/messages", get(list::list))
        .route("/messages/{id}", get(show))
        .route("/messages/{id}/cancel", post(cancel))
}

/// Accepts one message.
pub(crate) async fn send_sms(app: &App, head: &Parts, body: Body) -> Result<Response, Problem> {
    let headers = &head.headers;
    let caller = auth::writer(app, headers).await?;
    let bytes = body::read(headers, body, BODY_LIMIT).await?;
    let (request, dry_run) = match query::none(&head.uri).and_then(|()| parse(&bytes)) {
        Ok(parsed) => parsed,
        Err(problem) => {
            // Who may not ask is not told what was wrong with the question.
            Box::pin(auth::reader(app, headers)).await?;
            return Err(problem);
        }
    };
    if dry_run {
        // No transaction follows that would look at the key again.
        let caller = Box::pin(auth::reader(app, headers)).await?;
        let quote = messages::dry_run(&app.context, &caller, &request).await?;
        return Ok(json(StatusCode::OK, &quoted(&request, quote, &caller)));
    }
    let once = once::read(headers, &bytes)?;
    let sent = messages::send(&app.context, &app.writer, &caller, request, once).await;
    if let Err(Error::Unauthenticated) = sent {
        app.keyring.forget(caller.key);
    }
    let sent = sent?;
    let state = MessageState::accepted(sent.message.parts, sent.message.part_price);
    let mut response = json(StatusCode::CREATED, &View::new(&sent.message, &state, &caller));
    let headers = response.headers_mut();
    if let Ok(address) = HeaderValue::from_str(&format!("/v1/messages/{}", sent.message.id)) {
        headers.insert(header::LOCATION, address);
    }
    if sent.replayed {
        once::mark(headers);
    }
    Ok(response)
}

async fn show(
    State(app): State<Arc<App>>,
    id: One,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    let (message, state) = messages::get(&app.context, &caller, which(id)?).await?;
    Ok(json(StatusCode::OK, &Shown::new(&message, &state, &caller)))
}

/// Calls a message back. There is nothing to say about it: a body is refused unless it is empty.
async fn cancel(
    State(app): State<Arc<App>>,
    id: One,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::reader(&app, &head.headers).await?;
    query::none(&head.uri)?;
    body::none(body).await?;
    let done = messages::cancel(&app.context, &app.writer, &caller, which(id)?).await;
    let (message, state) = done?;
    Ok(json(StatusCode::OK, &Shown::new(&message, &state, &caller)))
}

fn which(id: One) -> Result<MessageId, Problem> {
    let Path(id) = id.map_err(|_| Problem::not_found())?;
    id.parse().map_err(|_| Problem::not_found())
}

fn parse(json: &[u8]) -> Result<(Send, bool), Problem> {
    let mut fields = Fields::parse(json)?;
    let originator = fields.required("originator", FaultCode::InvalidOriginator);
    let recipient = fields.required("recipient", FaultCode::InvalidNumber);
    let text = fields.required_text("text").map(std::borrow::Cow::into_owned);
    if text.as_deref() == Some("") {
        fields.fault("text", FaultCode::Required, "The text must hold at least one character.");
    }
    let reference = fields.text("reference").map(std::borrow::Cow::into_owned);
    if reference.as_ref().is_some_and(|r| r.chars().count() > REFERENCE_LIMIT) {
        let detail = format!("This must be at most {REFERENCE_LIMIT} characters.");
        fields.fault("reference", FaultCode::TooLong, detail);
    }
    let validity = fields.number("validitySeconds", 60, 259_200);
    let max_parts = fields.number("maxParts", 1, 255).and_then(|n| u16::try_from(n).ok());
    let dry_run = fields.flag("dryRun").unwrap_or(false);
    // Consent is the safe default: only who says so overrides it.
    let block_optout = fields.flag("blockOptout").unwrap_or(true);
    refuse_what_is_to_come(&mut fields);
    fields.end()?;
    // Without a fault, all three are there.
    let (Some(originator), Some(recipient), Some(text)) = (originator, recipient, text) else {
        return Err(Problem::invalid("A required field is missing.", Vec::new()));
    };
    let validity = validity.and_then(|s| u64::try_from(s).ok());
    let validity = validity.map_or(DEFAULT_VALIDITY, Duration::from_secs);
    let send = Send { originator, recipient, text, reference, validity, max_parts, block_optout };
    Ok((send, dry_run))
}

/// What this version can't do is refused, never passed over in silence.
fn refuse_what_is_to_come(fields: &mut Fields<'_>) {
    if fields.flag("shortenUrl").unwrap_or(false) {
        let detail = "Short links are not available yet: leave this out, or say false.";
        fields.fault("shortenUrl", FaultCode::NotAvailable, detail);
    }
    for field in ["schedule", "scheduleTimezone"] {
        if fields.is_said(field) {
            let detail = "Scheduled sending is not available yet: leave this out to send at once.";
            fields.fault(field, FaultCode::NotAvailable, detail);
        }
    }
}

/// A message as the API shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    #[serde(serialize_with = "shown")]
    id: MessageId,
    #[serde(serialize_with = "shown")]
    recipient: Recipient,
    status: &'static str,
    originator: &'a str,
    reference: Option<&'a str>,
    #[serde(serialize_with = "shown_if")]
    campaign_id: Option<Uuid>,
    text: &'a str,
    mode: &'static str,
    encoding: &'static str,
    parts: u16,
    parts_accepted: u16,
    parts_delivered: u16,
    #[serde(serialize_with = "shown")]
    price: Amount,
    currency: &'a str,
    #[serde(serialize_with = "shown")]
    created_at: Timestamp,
    #[serde(serialize_with = "shown")]
    expires_at: Timestamp,
    sent_at: Option<String>,
    done_at: Option<String>,
    failure: Option<FailureView<'a>>,
    in_doubt: bool,
    possible_duplicate: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureView<'a> {
    code: &'static str,
    permanent: bool,
    detail: &'static str,
    carrier_code: Option<&'a str>,
}

impl<'a> View<'a> {
    fn new(m: &'a Message, s: &'a MessageState, caller: &'a Caller) -> Self {
        Self {
            id: m.id,
            recipient: m.recipient,
            status: s.status.name(),
            originator: m.originator.as_str(),
            reference: m.reference.as_deref(),
            campaign_id: m.campaign,
            text: &m.text,
            mode: m.mode.name(),
            encoding: m.encoding.name(),
            parts: m.parts,
            parts_accepted: s.parts_accepted,
            parts_delivered: s.parts_delivered,
            price: message::price(m, s),
            currency: &caller.currency,
            created_at: m.accepted_at,
            expires_at: m.expires_at,
            sent_at: s.sent_at.map(|t| t.to_string()),
            done_at: s.done_at.map(|t| t.to_string()),
            failure: s.failure.as_ref().map(failure),
            in_doubt: s.in_doubt,
            possible_duplicate: s.possible_duplicate,
        }
    }
}

/// A message as it is shown alone: with its timeline.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    view: View<'a>,
    timeline: Vec<Step>,
}

/// One thing that happened to a message.
#[derive(Serialize)]
struct Step {
    event: &'static str,
    /// `null` where only that it happened is known.
    #[serde(serialize_with = "shown_if")]
    at: Option<Timestamp>,
}

impl<'a> Shown<'a> {
    fn new(m: &'a Message, s: &'a MessageState, caller: &'a Caller) -> Self {
        let steps = message::timeline(m, s).into_iter();
        let timeline = steps.map(|(step, at)| Step { event: step.name(), at }).collect();
        Self { view: View::new(m, s, caller), timeline }
    }
}

fn failure(f: &Failure) -> FailureView<'_> {
    FailureView {
        code: f.code.name(),
        permanent: f.code.permanent(),
        detail: f.code.detail(),
        carrier_code: f.carrier_code.as_deref(),
    }
}

/// What a message would be.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QuoteView<'a> {
    dry_run: bool,
    recipient: String,
    originator: &'a str,
    encoding: &'static str,
    parts: u16,
    price: String,
    currency: &'a str,
}

fn quoted<'a>(send: &'a Send, quote: Quote, caller: &'a Caller) -> QuoteView<'a> {
    QuoteView {
        dry_run: true,
        recipient: send.recipient.to_string(),
        originator: send.originator.as_str(),
        encoding: quote.encoding.name(),
        parts: quote.parts,
        price: (quote.part_price * quote.parts).to_string(),
        currency: &caller.currency,
    }
}
