//! `POST /v1/send/sms`.

use crate::auth;
use crate::body;
use crate::error::Problem;
use crate::error::code::ProblemCode;
use crate::idempotency;
use crate::messages::view::MessageView;
use crate::openapi::input_types::{
    Flag, NotYetScheduled, NotYetShortened, OriginatorInput, PhoneNumberInput, ReferenceInput,
};
use crate::openapi::operation::Operation;
use crate::query;
use crate::request::{self, request};
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
use heliograph_domain::text::{self, Encoding, non_gsm};
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::Error;
use heliograph_service::messaging::messages::{self, DryRun, SendRequest};
use serde::Serialize;
use serde_json::json as value;
use std::sync::Arc;
use utoipa::ToSchema;

const BODY_LIMIT: usize = 1 << 20;
/// The largest number of characters that a quote lists.
const MAX_NON_GSM: usize = 20;

/// The path of [`send_sms`].
pub(crate) const SEND_SMS: &str = "/v1/send/sms";

// No field has a `default` in the schema: generated clients would require the field, or always
// send it.
request! {
    /// A message to send.
    #[schema(as = SendSms)]
    struct SendBody {
        #[schema(value_type = OriginatorInput)]
        originator: Originator,
        #[schema(value_type = PhoneNumberInput)]
        recipient: Recipient,
        #[schema(inline)]
        text: MessageText,
        #[schema(value_type = Option<ReferenceInput>, inline)]
        reference: Option<Reference>,
        /// Rejects the message if the recipient is on the default opt-out list. The default is
        /// `true`. The strings `"true"` and `"false"` are also accepted.
        #[schema(value_type = Option<bool>)]
        block_optout: Option<Flag> as "blockOptout",
        #[schema(inline)]
        validity: Option<Validity> as "validitySeconds",
        #[schema(inline)]
        max_parts: Option<MaxParts> as "maxParts",
        /// Validates the request and returns a quote; nothing is stored, sent or charged. The
        /// default is `false`.
        dry_run: Option<bool> as "dryRun",
        /// Reserved for short links, which are not available yet: must be `false` if present.
        #[schema(inline)]
        #[expect(dead_code, reason = "read to refuse it")]
        shorten_url: Option<NotYetShortened> as "shortenUrl",
        #[schema(value_type = NotYetScheduled, inline, required = false)]
        #[expect(dead_code, reason = "read to refuse it")]
        schedule: Option<NotYetScheduled>,
        #[schema(value_type = NotYetScheduled, inline, required = false)]
        #[expect(dead_code, reason = "read to refuse it")]
        schedule_timezone: Option<NotYetScheduled> as "scheduleTimezone",
    }
}

impl SendBody {
    fn into_request(self) -> SendRequest {
        SendRequest {
            originator: self.originator,
            recipient: self.recipient,
            text: self.text,
            reference: self.reference,
            validity: self.validity.unwrap_or_default(),
            max_parts: self.max_parts,
            // The safe default: opt-outs are enforced unless the client says otherwise.
            block_optout: self.block_optout.is_none_or(|Flag(block)| block),
        }
    }
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
            ProblemCode::SenderNotAllowed,
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
    let bytes = body::read_json(&caller, headers, body, BODY_LIMIT).await?;
    let parsed = query::require_empty(&head.uri).and_then(|()| request::parse(&bytes));
    let parsed =
        parsed.and_then(|body: SendBody| Ok((body, idempotency::read_key(headers, &bytes)?)));
    let (body, key) = match parsed {
        Ok(parsed) => parsed,
        Err(problem) => {
            // An unauthorized caller does not learn what is wrong with the request.
            Box::pin(auth::authenticate_again(&app, headers)).await?;
            return Err(problem);
        }
    };
    let dry_run = body.dry_run.unwrap_or(false);
    let request = body.into_request();
    if dry_run {
        // No transaction follows that would check the key again.
        let caller = Box::pin(auth::authenticate_again(&app, headers)).await?;
        let done = messages::dry_run(&app.context, &caller, &request).await?;
        return Ok(json(StatusCode::OK, &QuoteView::new(&request, done, &caller)));
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
    /// The number of characters that still fit into the last part, in the current encoding.
    #[schema(minimum = 0, maximum = 160)]
    characters_left: usize,
    /// The distinct characters that are not in the GSM alphabet and therefore require `UCS_2`, at
    /// most 20.
    #[schema(max_items = 20)]
    non_gsm_characters: Vec<String>,
    /// The balance that is available now; null in test mode, which has no balance.
    #[schema(value_type = Option<Amount>)]
    available: Option<String>,
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
            characters_left: 138,
            non_gsm_characters: Vec::new(),
            available: Some(Amount(12_340_000).to_string()),
        }
    }
}

impl<'a> QuoteView<'a> {
    fn new(send: &'a SendRequest, done: DryRun, caller: &'a Caller) -> Self {
        let DryRun { quote, available } = done;
        let non_gsm = non_gsm::non_gsm_graphemes(send.text.as_str()).into_iter();
        Self {
            dry_run: true,
            recipient: send.recipient.to_string(),
            originator: send.originator.as_str(),
            encoding: quote.encoding.name(),
            parts: quote.parts,
            price: (quote.part_price * quote.parts).to_string(),
            currency: &caller.currency,
            characters_left: text::units_left(send.text.as_str()),
            non_gsm_characters: non_gsm.take(MAX_NON_GSM).map(String::from).collect(),
            available: available.map(|a| a.to_string()),
        }
    }
}
