//! `GET /v1/messages`: lists messages, newest first.

use crate::auth;
use crate::error::Problem;
use crate::error::fault::FaultCode;
use crate::messages::view::MessageView;
use crate::openapi::input_types::{OriginatorInput, PhoneNumberInput};
use crate::openapi::operation::Operation;
use crate::query::{PageParams, QueryParams};
use crate::state::ApiState;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::MessageStatus;
use heliograph_domain::openapi::closed_enum;
use heliograph_domain::time::{Day, Timestamp};
use heliograph_service::messaging::messages::{self, MessageFilter};
use std::str::FromStr;
use std::sync::Arc;
use utoipa::PartialSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type};
use uuid::Uuid;

pub(crate) fn operation() -> Operation {
    let time = "RFC 3339 with an offset, like `2026-11-20T09:00:00Z`; encode a plus sign as `%2B`. \
                A date, like `2026-11-20`, means the whole day in UTC.";
    Operation::get("/v1/messages", "listMessages", "List messages")
        .description(
            "Returns messages, newest first. Filters are combined with AND. A request scans a \
             bounded number of messages to respond quickly: if few of them match, a page can \
             contain fewer than `limit` messages, or none, and still have a `nextCursor`. Only a \
             page whose `nextCursor` is null is the last one.",
        )
        .query_list_param(
            "status",
            "Filter by status. Repeat the parameter for several: `status=QUEUED&status=SENT`.",
            closed_enum(MessageStatus::ALL.iter().map(|s| s.name()), None),
        )
        .query_param("recipient", "Filter by recipient.", PhoneNumberInput::schema())
        .query_param("originator", "Filter by originator.", OriginatorInput::schema())
        .query_param("reference", "Filter by exact reference.", text(r"^[^\x00]*$", None))
        .query_param("campaignId", "Filter by campaign.", text("", Some("uuid")))
        .query_param(
            "from",
            &format!("Only messages accepted at or after this time, or from the start of this day. {time}"),
            time_or_date(),
        )
        .query_param(
            "to",
            &format!("Only messages accepted before this time, or until the end of this day. {time}"),
            time_or_date(),
        )
        .page_response(&MessageView::sample(MessageStatus::Delivered))
}

fn time_or_date() -> Schema {
    let format = |name| text("", Some(name));
    Schema::OneOf(OneOfBuilder::new().item(format("date-time")).item(format("date")).build())
}

fn text(pattern: &str, format: Option<&str>) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = text.format(format.map(|f| SchemaFormat::Custom(f.to_owned())));
    text.pattern((!pattern.is_empty()).then_some(pattern))
}

pub(crate) async fn list(
    State(app): State<Arc<ApiState>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    let mut params = QueryParams::parse(&uri);
    let page: PageParams<MessageId> = PageParams::from_query(&mut params);
    let filter = filter(&mut params);
    params.finish()?;
    let before = page.after.unwrap_or(MessageId(Uuid::max()));
    let found = messages::list(&app.context, &caller, &filter, before, page.limit()).await?;
    let data = found.messages.iter().map(|(m, s)| MessageView::new(m, s, &caller)).collect();
    Ok(page.page_response(data, found.next.as_ref()))
}

fn filter(params: &mut QueryParams<'_>) -> MessageFilter {
    MessageFilter {
        statuses: params.parsed_list("status", FaultCode::InvalidValue, read),
        recipient: params.parsed("recipient", FaultCode::InvalidNumber, read),
        originator: params.parsed("originator", FaultCode::InvalidOriginator, read),
        reference: params.text("reference").map(std::borrow::Cow::into_owned),
        campaign: params.parsed("campaignId", FaultCode::InvalidValue, |text| {
            text.parse().map_err(|_| "campaignId must be a UUID".to_owned())
        }),
        search: None,
        from: params.parsed("from", FaultCode::InvalidTime, |text| time(text, |day| day.start)),
        to: params.parsed("to", FaultCode::InvalidTime, |text| time(text, |day| day.end)),
    }
}

fn read<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: T::Err| e.to_string())
}

/// Parses a timestamp, or a date, of which `bound` returns the start or the end.
fn time(text: &str, bound: fn(Day) -> Timestamp) -> Result<Timestamp, String> {
    match Day::parse(text) {
        Ok(day) => Ok(bound(day)),
        Err(_) => timestamp(text),
    }
}

/// Parses a timestamp. A plus sign that was not percent-encoded arrives as a space, which is undone
/// here.
fn timestamp(text: &str) -> Result<Timestamp, String> {
    match text.rsplit_once(' ') {
        Some((time, offset)) if time.contains('T') => read(&format!("{time}+{offset}")),
        _ => read(text),
    }
}
