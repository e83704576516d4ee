//! The JSON representation of a message.

use crate::response::{as_string, as_string_opt};
use heliograph_domain::account::Mode;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{
    self, Failure, FailureCode, Message, MessageState, MessageStatus, TimelineEvent,
};
use heliograph_domain::money::Amount;
use heliograph_domain::openapi::Currency;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Encoding;
use heliograph_domain::time::Timestamp;
use heliograph_domain::wording::failures::failure_reason;
use heliograph_service::kernel::caller::Caller;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::{Uuid, uuid};

/// A message with its current status and timeline.
#[derive(Serialize, ToSchema)]
#[schema(as = Message)]
#[serde(rename_all = "camelCase")]
pub struct MessageView<'a> {
    /// The id of the message.
    #[serde(serialize_with = "as_string")]
    id: MessageId,
    /// The recipient.
    #[serde(serialize_with = "as_string")]
    recipient: Recipient,
    #[schema(value_type = MessageStatus)]
    status: &'static str,
    #[schema(value_type = Originator)]
    originator: &'a str,
    /// Your own reference.
    reference: Option<&'a str>,
    /// The id of the campaign, if the message belongs to one.
    #[serde(serialize_with = "as_string_opt")]
    campaign_id: Option<Uuid>,
    /// The text of the message.
    text: &'a str,
    #[schema(value_type = Mode)]
    mode: &'static str,
    #[schema(value_type = Encoding)]
    encoding: &'static str,
    /// The number of parts.
    #[schema(minimum = 1, maximum = 10)]
    parts: u16,
    /// The number of parts that the carrier accepted.
    #[schema(minimum = 0, maximum = 10)]
    parts_accepted: u16,
    /// The number of parts that were delivered to the handset.
    #[schema(minimum = 0, maximum = 10)]
    parts_delivered: u16,
    /// The price of the message; after a failure, the amount that was charged.
    #[serde(serialize_with = "as_string")]
    price: Amount,
    #[schema(value_type = Currency)]
    currency: &'a str,
    /// The time at which the message was accepted.
    #[serde(serialize_with = "as_string")]
    created_at: Timestamp,
    /// The end of the validity period.
    #[serde(serialize_with = "as_string")]
    expires_at: Timestamp,
    /// The time at which the carrier accepted the last part.
    #[schema(value_type = Option<Timestamp>)]
    sent_at: Option<String>,
    /// The time at which the message reached its final status.
    #[schema(value_type = Option<Timestamp>)]
    done_at: Option<String>,
    /// The reason of the failure, if the message failed.
    failure: Option<FailureView<'a>>,
    /// True if the carrier's response to a part was lost or ambiguous, and it is not known yet if
    /// the carrier accepted the part.
    in_doubt: bool,
    /// True if the message was sent again after a lost or ambiguous response. The recipient may have
    /// received it twice.
    possible_duplicate: bool,
    /// The events of the message in chronological order.
    timeline: Vec<StepView>,
}

/// The reason of a failure.
#[derive(Serialize, ToSchema)]
#[schema(as = Failure)]
#[serde(rename_all = "camelCase")]
struct FailureView<'a> {
    #[schema(value_type = FailureCode)]
    code: &'static str,
    /// True if sending the same message again would fail, too.
    permanent: bool,
    /// An explanation of `code` for people.
    detail: &'static str,
    /// The carrier's own error code, if it gave one.
    carrier_code: Option<&'a str>,
}

impl MessageView<'static> {
    /// Returns an example for the documentation: queued, delivered or cancelled.
    pub(crate) fn sample(status: MessageStatus) -> Self {
        let delivered = status == MessageStatus::Delivered;
        let parts = u16::from(delivered);
        let [accepted, sent, done] =
            [1_795_247_308_204, 1_795_247_308_302, 1_795_247_308_500].map(Timestamp);
        let steps = [
            Some((TimelineEvent::Accepted, accepted)),
            delivered.then_some((TimelineEvent::Sent, sent)),
            status.is_final().then_some((TimelineEvent::Ended(status), done)),
        ];
        let step =
            |(step, at): (TimelineEvent, Timestamp)| StepView { event: step.name(), at: Some(at) };
        Self {
            id: MessageId(uuid!("01a1fd13-fdac-71b5-af6a-ef0fb5c1bcea")),
            recipient: Recipient(447_700_900_123),
            status: status.name(),
            originator: "Heliograph",
            reference: Some("order 7"),
            campaign_id: None,
            text: "Your parcel comes at 9",
            mode: Mode::Live.name(),
            encoding: Encoding::Gsm7.name(),
            parts: 1,
            parts_accepted: parts,
            parts_delivered: parts,
            price: if status == MessageStatus::Cancelled { Amount::ZERO } else { Amount(42_000) },
            currency: "EUR",
            created_at: accepted,
            expires_at: Timestamp(1_795_420_108_204),
            sent_at: delivered.then(|| sent.to_string()),
            done_at: status.is_final().then(|| done.to_string()),
            failure: None,
            in_doubt: false,
            possible_duplicate: false,
            timeline: steps.into_iter().flatten().map(step).collect(),
        }
    }
}

impl<'a> MessageView<'a> {
    /// Returns the representation of a message of the caller's account.
    pub fn new(m: &'a Message, s: &'a MessageState, caller: &'a Caller) -> Self {
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
            timeline: timeline(m, s),
        }
    }
}

fn timeline(m: &Message, s: &MessageState) -> Vec<StepView> {
    let steps = message::timeline(m, s).into_iter();
    steps.map(|(step, at)| StepView { event: step.name(), at }).collect()
}

fn failure(f: &Failure) -> FailureView<'_> {
    FailureView {
        code: f.code.name(),
        permanent: f.code.permanent(),
        detail: failure_reason(f.code),
        carrier_code: f.carrier_code.as_deref(),
    }
}

/// An event of the timeline of a message.
#[derive(Serialize, ToSchema)]
#[schema(as = TimelineStep)]
struct StepView {
    /// The kind of event.
    #[schema(value_type = TimelineEvent)]
    event: &'static str,
    /// The time of the event; null if it is not known.
    #[serde(serialize_with = "as_string_opt")]
    at: Option<Timestamp>,
}
