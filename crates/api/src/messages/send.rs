//! `POST /v1/send/sms`.

use crate::auth;
use crate::body::{self, JsonFields};
use crate::error::Problem;
use crate::error::code::ProblemCode;
use crate::error::fault::FaultCode;
use crate::idempotency;
use crate::messages::view::MessageView;
use crate::openapi::input_types::{NotYetScheduled, OnlyFalse, OriginatorInput, PhoneNumberInput};
use crate::openapi::operation::Operation;
use crate::query;
use crate::response::json;
use crate::state::ApiState;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use heliograph_domain::fields::{MaxParts, MessageText, Reference, Validity};
use heliograph_domain::message::{MessageState, MessageStatus};
use heliograph_domain::money::Amount;
use heliograph_domain::openapi::Currency;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Encoding;
use heliograph_service::billing::price::Quote;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::Error;
use heliograph_service::messaging::messages::{self, SendRequest};
use serde::Serialize;
use serde_json::json as value;
use std::sync::Arc;
use utoipa::ToSchema;

const BODY_LIMIT: usize = 1 << 20;

/// The path of [`send_sms`].
pub(crate) const SEND_SMS: &str = "/v1/send/sms";

// The schema of what `parse` reads. No field has a `default`: generated clients would require the
// field, or always send it.
/// A message to send.
#[derive(ToSchema)]
#[schema(as = SendSms)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema: the body is parsed field by field")]
struct SendBody {
    #[schema(value_type = OriginatorInput)]
    originator: String,
    #[schema(value_type = PhoneNumberInput)]
    recipient: String,
    /// The text of the message. A message has at most 10 parts: 1,530 characters of the GSM
    /// alphabet, or 670 characters if other characters are used. Braces have no special meaning.
    #[schema(min_length = 1, max_length = 1530, pattern = r"^[^\x00]*$")]
    text: String,
    /// Your own reference, returned in responses and webhooks. It does not have to be unique.
    #[schema(max_length = 255, pattern = r"^[^\x00]*$")]
    reference: Option<String>,
    /// Rejects the message if the recipient is on the default opt-out list. The default is `true`.
    block_optout: Option<bool>,
    /// The validity period in seconds. A message that is not delivered in time fails with
    /// `expired`. The default is 172800 (two days).
    #[schema(minimum = 60, maximum = 259_200)]
    validity_seconds: Option<u32>,
    /// Rejects the message if it needs more parts than this.
    #[schema(minimum = 1, maximum = 255)]
    max_parts: Option<u32>,
    /// Validates the request and returns a quote; nothing is stored, sent or charged. The default
    /// is `false`.
    dry_run: Option<bool>,
    /// Reserved for short links, which are not available yet: must be `false` if present.
    #[schema(value_type = Option<OnlyFalse>, inline)]
    shorten_url: Option<bool>,
    #[schema(value_type = NotYetScheduled, inline, required = false)]
    schedule: Option<String>,
    #[schema(value_type = NotYetScheduled, inline, required = false)]
    schedule_timezone: Option<String>,
}

pub(crate) fn operation() -> Operation {
    let minimal = value!({
        "originator": "Heliograph", "recipient": "+447700900123", "text": "Hello, world",
    });
    let full = value!({
        "originator": "Heliograph", "recipient": "+44 7700 900123",
        "text": "Your parcel comes at 9", "reference": "order 7", "blockOptout": true,
        "validitySeconds": 3600, "maxParts": 1, "dryRun": false,
    });
    Operation::post(SEND_SMS, "sendSms", "Send a message")
        .description(
            "Sends a message to one recipient. A message that is answered with 201 is durably \
             stored and will be sent. Its price is reserved, and charged part by part as the \
             carrier accepts them.",
        )
        .json_body::<SendBody>(&[("minimal", minimal), ("all fields", full)])
        .response(StatusCode::OK, "Quote (returned when `dryRun` is true).", &QuoteView::sample())
        .response(
            StatusCode::CREATED,
            "The accepted message.",
            &MessageView::sample(MessageStatus::Queued),
        )
        .response_header("Location")
        .idempotent()
        .problems(&[
            ProblemCode::InsufficientBalance,
            ProblemCode::RecipientOptedOut,
            ProblemCode::DestinationNotAllowed,
        ])
}

/// Accepts one message.
pub(crate) async fn send_sms(
    State(app): State<Arc<ApiState>>,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let headers = &head.headers;
    let caller = auth::authenticate_cached(&app, headers).await?;
    let bytes = body::read_json(headers, body, BODY_LIMIT).await?;
    let parsed = query::require_empty(&head.uri).and_then(|()| parse(&bytes));
    let parsed = parsed.and_then(|parsed| Ok((parsed, idempotency::read_key(headers, &bytes)?)));
    let ((request, dry_run), key) = match parsed {
        Ok(parsed) => parsed,
        Err(problem) => {
            // An unauthorized caller does not learn what is wrong with the request.
            Box::pin(auth::authenticate(&app, headers)).await?;
            return Err(problem);
        }
    };
    if dry_run {
        // No transaction follows that would check the key again.
        let caller = Box::pin(auth::authenticate(&app, headers)).await?;
        let quote = messages::dry_run(&app.context, &caller, &request).await?;
        return Ok(json(StatusCode::OK, &quoted(&request, quote, &caller)));
    }
    let sent = messages::send(&app.context, &app.writer, &caller, request, key).await;
    if let (Err(Error::Unauthenticated), Some(key)) = (&sent, caller.key) {
        app.keyring.forget(key);
    }
    let sent = sent?;
    let state = MessageState::accepted(sent.message.parts, sent.message.part_price);
    let mut response = json(StatusCode::CREATED, &MessageView::new(&sent.message, &state, &caller));
    let headers = response.headers_mut();
    if let Ok(address) = HeaderValue::from_str(&format!("/v1/messages/{}", sent.message.id)) {
        headers.insert(header::LOCATION, address);
    }
    if sent.replayed {
        idempotency::mark_replayed(headers);
    }
    Ok(response)
}

fn parse(json: &[u8]) -> Result<(SendRequest, bool), Problem> {
    let mut fields = JsonFields::parse(json)?;
    let originator = fields.required("originator", FaultCode::InvalidOriginator);
    let recipient = fields.required("recipient", FaultCode::InvalidNumber);
    let text: Option<MessageText> = fields.required("text", FaultCode::Required);
    let reference: Option<Reference> = fields.optional("reference", FaultCode::TooLong);
    let validity: Option<Validity> = fields.number("validitySeconds");
    let max_parts: Option<MaxParts> = fields.number("maxParts");
    let dry_run = fields.flag("dryRun").unwrap_or(false);
    // The safe default: opt-outs are enforced unless the client says otherwise.
    let block_optout = fields.flag("blockOptout").unwrap_or(true);
    reject_unavailable(&mut fields);
    fields.finish()?;
    // All three are present, since there was no fault.
    let (Some(originator), Some(recipient), Some(text)) = (originator, recipient, text) else {
        return Err(Problem::invalid("A required field is missing.", Vec::new()));
    };
    let validity = validity.unwrap_or_default();
    let send =
        SendRequest { originator, recipient, text, reference, validity, max_parts, block_optout };
    Ok((send, dry_run))
}

/// Rejects fields of features that are not available yet, instead of ignoring them.
fn reject_unavailable(fields: &mut JsonFields<'_>) {
    if fields.flag("shortenUrl").unwrap_or(false) {
        let detail = "Short links are not available yet. Omit this field or set it to false.";
        fields.fault("shortenUrl", FaultCode::NotAvailable, detail);
    }
    for field in ["schedule", "scheduleTimezone"] {
        if fields.is_present(field) {
            let detail = "Scheduled sending is not available yet. Omit this field to send at once.";
            fields.fault(field, FaultCode::NotAvailable, detail);
        }
    }
}

/// The quote of a message, returned when `dryRun` is true.
#[derive(Serialize, ToSchema)]
#[schema(as = Quote)]
#[serde(rename_all = "camelCase")]
struct QuoteView<'a> {
    /// Always true.
    dry_run: bool,
    #[schema(value_type = Recipient)]
    recipient: String,
    #[schema(value_type = Originator)]
    originator: &'a str,
    #[schema(value_type = Encoding)]
    encoding: &'static str,
    /// The number of parts.
    #[schema(minimum = 1, maximum = 10)]
    parts: u16,
    /// The price of all parts.
    #[schema(value_type = Amount)]
    price: String,
    #[schema(value_type = Currency)]
    currency: &'a str,
}

impl QuoteView<'static> {
    fn sample() -> Self {
        Self {
            dry_run: true,
            recipient: "447700900123".to_owned(),
            originator: "Heliograph",
            encoding: Encoding::Gsm7.name(),
            parts: 1,
            price: Amount(42_000).to_string(),
            currency: "EUR",
        }
    }
}

fn quoted<'a>(send: &'a SendRequest, quote: Quote, caller: &'a Caller) -> QuoteView<'a> {
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
