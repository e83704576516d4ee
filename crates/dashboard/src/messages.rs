//! The list of messages, and the page of one message.

mod advice;
mod detail;
mod filter;

use crate::error_page::PageError;
use crate::format;
use crate::layout::Layout;
use crate::page;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use filter::{MessageListQuery, SEARCH_LIMIT};
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{self, Message, MessageState, MessageStatus};
use heliograph_domain::wording::failures::failure_reason;
use heliograph_service::messaging::messages;
use std::sync::Arc;
use uuid::Uuid;

/// Messages per page.
const ROWS: usize = 50;
/// The length of the text in a row, in characters.
const PREVIEW: usize = 160;

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route("/messages", get(list))
        .route("/messages/{id}", get(detail::show))
        .route("/messages/{id}/cancel", post(detail::cancel))
}

#[derive(Template)]
#[template(path = "messages.html")]
struct Page {
    layout: Layout,
    /// The URL of this page, for live updates; empty on pages with older messages.
    here: String,
    statuses: [&'static str; 5],
    periods: [(&'static str, &'static str); 3],
    filter: MessageListQuery,
    messages: Vec<Row>,
    newest: String,
    older: String,
}

struct Row {
    id: String,
    recipient: String,
    text: String,
    status: String,
    reason: &'static str,
    originator: String,
    segments: u16,
    /// The price with its currency; empty for test messages.
    price: String,
    iso: String,
    at: String,
}

impl Row {
    fn new(m: &Message, s: &MessageState, currency: &str, free: bool) -> Self {
        let (iso, at) = format::date_time(m.accepted_at);
        Self {
            id: m.id.to_string(),
            recipient: m.recipient.to_string(),
            text: m.text.chars().take(PREVIEW).collect(),
            status: s.status.name().to_lowercase(),
            reason: s.failure.as_ref().map_or("", |f| failure_reason(f.code)),
            originator: format::originator(&m.originator),
            segments: m.parts,
            price: if free { String::new() } else { format::money(message::price(m, s), currency) },
            iso,
            at,
        }
    }
}

async fn list(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let query = MessageListQuery::read(&uri, app.context.db.now())?;
    if let Ok(id) = query.search.parse::<MessageId>() {
        return Ok(page::redirect(&format!("/messages/{id}")));
    }
    let layout = request.layout(&app, "messages", "Messages").await?;
    let caller = request.caller();
    let before = query.before.unwrap_or(MessageId(Uuid::max()));
    let (mut rows, mut older) = (Vec::new(), String::new());
    if let Some(filter) = &query.filter {
        let filter = match query.search.as_str() {
            "" => filter.clone(),
            search => filter::with_search(&app.context, &caller, filter, search).await?,
        };
        let found = messages::list(&app.context, &caller, &filter, before, ROWS).await?;
        let row = |(m, s): &(_, _)| Row::new(m, s, &caller.currency, layout.test_mode);
        rows.extend(found.messages.iter().map(row));
        older = found.next.map(|next| query.url(Some(next))).unwrap_or_default();
    }
    let newest = query.url(None);
    let status =
        if query.filter.is_some() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let nonce = layout.nonce.clone();
    let (here, newest) = match query.before {
        None => (newest, String::new()),
        Some(_) => (String::new(), newest),
    };
    let (statuses, filter) = (MessageStatus::ALL.map(MessageStatus::name), query);
    let periods = filter::PERIODS.map(|(name, text, _)| (name, text));
    let page = Page { layout, here, statuses, periods, filter, messages: rows, newest, older };
    Ok(page::html(status, &nonce, page.render()))
}
