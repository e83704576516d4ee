//! `GET /v1/messages`: what was sent, the newest first.

use crate::api::messages::view::View;
use crate::app::App;
use crate::auth;
use crate::error::Problem;
use crate::error::fault::FaultCode;
use crate::openapi::operation::Operation;
use crate::openapi::written::WrittenNumber;
use crate::query::{Page, Params, listed};
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::Status;
use heliograph_domain::time::Timestamp;
use heliograph_service::messages::{self, Filter};
use std::str::FromStr;
use std::sync::Arc;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

pub(crate) fn about() -> Operation {
    let time = "An instant in RFC 3339, like `2026-11-20T09:00:00Z`; a plus sign in it is written as `%2B`.";
    Operation::get("/v1/messages", "listMessages", "Lists messages, the newest first")
        .describe(
            "All filters that are given must hold. A page reads a limited number of messages, so that it comes at once \
             however many there are: where few of them match, it may hold fewer than `limit`, even none, and still have \
             a `nextCursor`. Only a page whose `nextCursor` is null is the last.",
        )
        .narrowed("status", "Where they stand.", Ref::from_schema_name(<Status as ToSchema>::name()))
        .narrowed("recipient", "Whom they are for.", WrittenNumber::schema())
        .narrowed("reference", "What you gave them, exactly.", text(r"^[^\x00]*$", None))
        .narrowed("campaignId", "The campaign that they belong to.", text("", Some("uuid")))
        .narrowed("from", &format!("Accepted then or later. {time}"), text("", Some("date-time")))
        .narrowed("to", &format!("Accepted before that. {time}"), text("", Some("date-time")))
        .answers_page(&View::sample(Status::Delivered))
}

fn text(pattern: &str, format: Option<&str>) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = text.format(format.map(|f| SchemaFormat::Custom(f.to_owned())));
    text.pattern((!pattern.is_empty()).then_some(pattern))
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    let mut params = Params::read(&uri);
    let page: Page<MessageId> = Page::take(&mut params);
    let filter = filter(&mut params);
    params.end()?;
    let before = page.after.unwrap_or(MessageId(Uuid::max()));
    let found = messages::list(&app.context, &caller, &filter, (before, page.limit())).await?;
    let data = found.messages.iter().map(|(m, s)| View::new(m, s, &caller)).collect();
    Ok(listed(data, found.next.as_ref()))
}

fn filter(params: &mut Params<'_>) -> Filter {
    Filter {
        status: params.parsed("status", FaultCode::InvalidValue, read),
        recipient: params.parsed("recipient", FaultCode::InvalidNumber, read),
        reference: params.text("reference").map(std::borrow::Cow::into_owned),
        campaign: params.parsed("campaignId", FaultCode::InvalidValue, |text| {
            text.parse().map_err(|_| "this must be the id of a campaign, a UUID".to_owned())
        }),
        from: params.parsed("from", FaultCode::InvalidTime, instant),
        to: params.parsed("to", FaultCode::InvalidTime, instant),
    }
}

fn read<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: T::Err| e.to_string())
}

/// A plus sign that nobody encoded arrives as a blank: in an instant it can only have been a plus.
fn instant(text: &str) -> Result<Timestamp, String> {
    match text.rsplit_once(' ') {
        Some((time, offset)) if time.contains('T') => read(&format!("{time}+{offset}")),
        _ => read(text),
    }
}
