//! A message as the API shows it.

use crate::view::{shown, shown_if};
use heliograph_domain::account::Mode;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{self, Failure, FailureCode, Message, State, Status, Step};
use heliograph_domain::money::Amount;
use heliograph_domain::openapi::Currency;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Encoding;
use heliograph_domain::time::Timestamp;
use heliograph_service::caller::Caller;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::{Uuid, uuid};

/// A message, and where it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = Message)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View<'a> {
    /// Its id.
    #[serde(serialize_with = "shown")]
    id: MessageId,
    /// Whom it is for.
    #[serde(serialize_with = "shown")]
    recipient: Recipient,
    #[schema(value_type = Status)]
    status: &'static str,
    #[schema(value_type = Originator)]
    originator: &'a str,
    /// What you gave it.
    reference: Option<&'a str>,
    /// The campaign that it belongs to.
    #[serde(serialize_with = "shown_if")]
    campaign_id: Option<Uuid>,
    /// What it says.
    text: &'a str,
    #[schema(value_type = Mode)]
    mode: &'static str,
    #[schema(value_type = Encoding)]
    encoding: &'static str,
    /// In how many parts it is sent.
    #[schema(minimum = 1, maximum = 10)]
    parts: u16,
    /// How many of them a carrier took.
    #[schema(minimum = 0, maximum = 10)]
    parts_accepted: u16,
    /// How many of them are on the handset.
    #[schema(minimum = 0, maximum = 10)]
    parts_delivered: u16,
    /// What it costs; once it has failed, what it did cost.
    #[serde(serialize_with = "shown")]
    price: Amount,
    #[schema(value_type = Currency)]
    currency: &'a str,
    /// When it was accepted.
    #[serde(serialize_with = "shown")]
    created_at: Timestamp,
    /// When its validity ends.
    #[serde(serialize_with = "shown")]
    expires_at: Timestamp,
    /// When a carrier had taken its last part.
    #[schema(value_type = Option<Timestamp>)]
    sent_at: Option<String>,
    /// When it reached its final status.
    #[schema(value_type = Option<Timestamp>)]
    done_at: Option<String>,
    /// Why it failed, if it did.
    failure: Option<FailureView<'a>>,
    /// The carrier's response to a part was lost: whether it was taken is not known yet.
    in_doubt: bool,
    /// It was sent again after a lost response: the recipient may have it twice.
    possible_duplicate: bool,
    /// What happened to it, in order.
    timeline: Vec<StepView>,
}

/// Why a message failed.
#[derive(Serialize, ToSchema)]
#[schema(as = Failure)]
#[serde(rename_all = "camelCase")]
struct FailureView<'a> {
    #[schema(value_type = FailureCode)]
    code: &'static str,
    /// Whether the same message would fail again.
    permanent: bool,
    /// The same as `code` in one sentence, for people.
    detail: &'static str,
    /// The carrier's own word for it, if there was one.
    carrier_code: Option<&'a str>,
}

impl View<'static> {
    /// One for the document: queued, delivered or cancelled.
    pub(crate) fn sample(status: Status) -> Self {
        let delivered = status == Status::Delivered;
        let parts = u16::from(delivered);
        let [accepted, sent, done] =
            [1_795_247_308_204, 1_795_247_308_302, 1_795_247_308_500].map(Timestamp);
        let steps = [
            Some((Step::Accepted, accepted)),
            delivered.then_some((Step::Sent, sent)),
            status.is_final().then_some((Step::Ended(status), done)),
        ];
        let step = |(step, at): (Step, Timestamp)| StepView { event: step.name(), at: Some(at) };
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
            price: if status == Status::Cancelled { Amount::ZERO } else { Amount(42_000) },
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

impl<'a> View<'a> {
    pub(crate) fn new(m: &'a Message, s: &'a State, caller: &'a Caller) -> Self {
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

fn timeline(m: &Message, s: &State) -> Vec<StepView> {
    let steps = message::timeline(m, s).into_iter();
    steps.map(|(step, at)| StepView { event: step.name(), at }).collect()
}

fn failure(f: &Failure) -> FailureView<'_> {
    FailureView {
        code: f.code.name(),
        permanent: f.code.permanent(),
        detail: f.code.detail(),
        carrier_code: f.carrier_code.as_deref(),
    }
}

/// One thing that happened to a message.
#[derive(Serialize, ToSchema)]
#[schema(as = TimelineStep)]
struct StepView {
    /// What happened.
    #[schema(value_type = Step)]
    event: &'static str,
    /// When; null where only that it happened is known.
    #[serde(serialize_with = "shown_if")]
    at: Option<Timestamp>,
}
