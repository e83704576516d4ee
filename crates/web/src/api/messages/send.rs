//! `POST /v1/send/sms`.

use crate::api::messages::view::View;
use crate::app::App;
use crate::auth;
use crate::body::{self, Fields};
use crate::error::Problem;
use crate::error::code::Code;
use crate::error::fault::FaultCode;
use crate::once;
use crate::openapi::operation::Operation;
use crate::openapi::written::{NotYetScheduled, OnlyFalse, WrittenNumber, WrittenOriginator};
use crate::query;
use crate::sending;
use crate::view::json;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use heliograph_domain::message::{State, Status};
use heliograph_domain::money::Amount;
use heliograph_domain::openapi::Currency;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Encoding;
use heliograph_service::caller::Caller;
use heliograph_service::error::Error;
use heliograph_service::messages::{self, DEFAULT_VALIDITY, Send};
use heliograph_service::price::Quote;
use serde::Serialize;
use serde_json::json as value;
use std::time::Duration;
use utoipa::ToSchema;

const BODY_LIMIT: usize = 1 << 20;

/// Where [`send_sms`] answers.
pub(crate) const SEND_SMS: &str = "/v1/send/sms";

// What `parse` reads. No field has a `default`: clients generated from one would ask for the field, or send it always.
/// A message to be sent.
#[derive(ToSchema)]
#[schema(as = SendSms)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it documents what is read field by field")]
struct SendBody {
    #[schema(value_type = WrittenOriginator)]
    originator: String,
    #[schema(value_type = WrittenNumber)]
    recipient: String,
    /// What it says. It is sent in at most 10 parts: up to 1,530 characters of the GSM alphabet, or 670 of others.
    /// Braces mean nothing here.
    #[schema(min_length = 1, max_length = 1530, pattern = r"^[^\x00]*$")]
    text: String,
    /// Your own name for it, which comes back in answers and webhooks. It need not be unique.
    #[schema(max_length = 255, pattern = r"^[^\x00]*$")]
    reference: Option<String>,
    /// Refuse to send to people on the default opt-out list. Only `false` overrides it.
    block_optout: Option<bool>,
    /// How many seconds the message may take; what is not delivered by then has failed as `expired`. Left out,
    /// it is 172800: two days.
    #[schema(minimum = 60, maximum = 259_200)]
    validity_seconds: Option<u32>,
    /// Refuse to send more parts than this.
    #[schema(minimum = 1, maximum = 255)]
    max_parts: Option<u32>,
    /// Only say what it would be: nothing is stored, sent or charged.
    dry_run: Option<bool>,
    /// Short links are to come: only `false` is taken yet.
    #[schema(value_type = Option<OnlyFalse>, inline)]
    shorten_url: Option<bool>,
    #[schema(value_type = NotYetScheduled, inline, required = false)]
    schedule: Option<String>,
    #[schema(value_type = NotYetScheduled, inline, required = false)]
    schedule_timezone: Option<String>,
}

pub(crate) fn about() -> Operation {
    let least = value!({ "originator": "Heliograph", "recipient": "+447700900123", "text": "Hello, world" });
    let most = value!({
        "originator": "Heliograph", "recipient": "+44 7700 900123", "text": "Your parcel comes at 9",
        "reference": "order 7", "blockOptout": true, "validitySeconds": 3600, "maxParts": 1, "dryRun": false,
    });
    Operation::post(SEND_SMS, "sendSms", "Sends one message")
        .describe(
            "What has been answered with 201 is on disk and will be sent. The price is set aside, and charged part by \
             part as the carrier takes them.",
        )
        .takes::<SendBody>(&[("as short as it gets", least), ("every field", most)])
        .answers(StatusCode::OK, "What it would be: an answer to `dryRun`.", &QuoteView::sample())
        .answers(StatusCode::CREATED, "It is accepted.", &View::sample(Status::Queued))
        .header("Location")
        .idempotent()
        .problems(&[
            Code::InsufficientBalance,
            Code::RecipientOptedOut,
            Code::DestinationNotAllowed,
        ])
}

/// Accepts one message.
pub(crate) async fn send_sms(app: &App, head: &Parts, body: Body) -> Result<Response, Problem> {
    let headers = &head.headers;
    let caller = auth::writer(app, headers).await?;
    let bytes = body::read(headers, body, BODY_LIMIT).await?;
    let asked = query::none(&head.uri).and_then(|()| parse(&bytes));
    let asked = asked.and_then(|asked| Ok((asked, once::read(headers, &bytes)?)));
    let ((request, dry_run), once) = match asked {
        Ok(asked) => asked,
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
    let sent = messages::send(&app.context, &app.writer, &caller, request, once).await;
    if let (Err(Error::Unauthenticated), Some(key)) = (&sent, caller.key) {
        app.keyring.forget(key);
    }
    let sent = sent?;
    let state = State::accepted(sent.message.parts, sent.message.part_price);
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

fn parse(json: &[u8]) -> Result<(Send, bool), Problem> {
    let mut fields = Fields::parse(json)?;
    let originator = fields.required("originator", FaultCode::InvalidOriginator);
    let recipient = fields.required("recipient", FaultCode::InvalidNumber);
    let text = fields.required_text("text").map(std::borrow::Cow::into_owned);
    if text.as_deref() == Some("") {
        fields.fault("text", FaultCode::Required, sending::NO_TEXT);
    }
    let reference = fields.text("reference").map(std::borrow::Cow::into_owned);
    if let Some(detail) = reference.as_deref().and_then(sending::bad_reference) {
        fields.fault("reference", FaultCode::TooLong, detail);
    }
    let validity = fields.number("validitySeconds", &sending::VALIDITY);
    let max_parts =
        fields.number("maxParts", &sending::MAX_PARTS).and_then(|n| u16::try_from(n).ok());
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

/// What a message would be.
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
    /// In how many parts it would be sent.
    #[schema(minimum = 1, maximum = 10)]
    parts: u16,
    /// What all of them would cost.
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
