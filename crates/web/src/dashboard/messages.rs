//! The log of messages, and one message with all that happened to it.

mod filter;
mod one;

use crate::app::App;
use crate::dashboard::moment;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
use crate::dashboard::visit::Visit;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use filter::Typed;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{self, Message, State as Standing, Status};
use heliograph_service::messages;
use std::sync::Arc;
use uuid::Uuid;

/// Messages on a page.
const ROWS: usize = 50;
/// How much of a text stands in a row, in characters.
const GLIMPSE: usize = 160;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/messages", get(log))
        .route("/messages/{id}", get(one::show))
        .route("/messages/{id}/cancel", post(one::cancel))
}

#[derive(Template)]
#[template(path = "dashboard/messages.html")]
struct Page {
    shell: Shell,
    /// The address of this page, which is read again when something changed; empty where older messages are looked at.
    here: String,
    statuses: [&'static str; 5],
    filter: Typed,
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
    parts: u16,
    /// With its currency; empty for what is free.
    price: String,
    iso: String,
    at: String,
}

impl Row {
    fn new(m: &Message, s: &Standing, currency: &str, free: bool) -> Self {
        let (iso, at) = moment::day_and_clock(m.accepted_at);
        Self {
            id: m.id.to_string(),
            recipient: m.recipient.to_string(),
            text: m.text.chars().take(GLIMPSE).collect(),
            status: s.status.name().to_lowercase(),
            reason: s.failure.as_ref().map_or("", |f| f.code.detail()),
            originator: m.originator.as_str().to_owned(),
            parts: m.parts,
            price: if free {
                String::new()
            } else {
                format!("{} {currency}", message::price(m, s))
            },
            iso,
            at,
        }
    }
}

async fn log(State(app): State<Arc<App>>, visit: Visit, uri: Uri) -> Result<Response, Refusal> {
    let typed = Typed::read(&uri)?;
    let shell = visit.shell(&app, "messages", "Messages").await?;
    let caller = visit.caller();
    let before = typed.before.unwrap_or(MessageId(Uuid::max()));
    let (mut rows, mut older) = (Vec::new(), String::new());
    if let Some(filter) = &typed.filter {
        let found = messages::list(&app.context, &caller, filter, (before, ROWS)).await?;
        let row = |(m, s): &(_, _)| Row::new(m, s, &caller.currency, shell.test);
        rows.extend(found.messages.iter().map(row));
        older = found.next.map(|next| typed.address(Some(next))).unwrap_or_default();
    }
    let newest = typed.address(None);
    let status =
        if typed.filter.is_some() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let nonce = shell.nonce.clone();
    let (here, newest) = match typed.before {
        None => (newest, String::new()),
        Some(_) => (String::new(), newest),
    };
    let (statuses, filter) = (Status::ALL.map(Status::name), typed);
    let page = Page { shell, here, statuses, filter, messages: rows, newest, older };
    Ok(page::html(status, &nonce, page.render()))
}
