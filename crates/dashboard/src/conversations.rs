//! The list of conversations, one conversation, and replies.

mod view;

use crate::bubbles::{self, BubbleView};
use crate::composer;
use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::layout::Layout;
use crate::page;
use crate::session::{SessionForm, SessionRequest};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account::Scope;
use heliograph_domain::fields::{MessageText, Validity};
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::messaging::conversations;
use heliograph_service::messaging::messages::{self, SendRequest};
use std::sync::Arc;
use uuid::Uuid;
use view::ConversationRow;

/// The largest number of conversations in the list.
const CONVERSATIONS: usize = 100;
/// Messages per page.
const BUBBLES: usize = 100;

const NO_ORIGINATOR: &str =
    "There are no messages with this number yet. Send the first message from the Send page.";

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route("/conversations", get(all))
        .route("/conversations/{number}", get(one))
        .route("/conversations/{number}/reply", post(reply))
}

#[derive(Template)]
#[template(path = "conversations.html")]
struct Page {
    layout: Layout,
    /// The URL of this page, for live updates; empty on pages with older messages.
    here: String,
    /// The conversations, latest first.
    conversations: Vec<ConversationRow>,
    query: String,
    /// The number of the open conversation; empty when none is open.
    number: String,
    /// The originator of replies; empty without messages.
    originator: String,
    opted_out: bool,
    bubbles: Vec<BubbleView>,
    earlier: String,
    latest: String,
    idempotency_key: Uuid,
    reply_text: String,
    reply_error: String,
}

/// A rejected reply, shown again with its errors.
#[derive(Default)]
struct ReplyForm {
    text: String,
    errors: FieldErrors,
}

/// The open conversation, and the message before which the page ends.
struct Open {
    number: Recipient,
    before: Option<Uuid>,
}

async fn all(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let query = Form::read(uri.query().unwrap_or_default().as_bytes())?;
    let query = query.text("number");
    match query.parse::<Recipient>() {
        Ok(number) => Ok(page::redirect(&format!("/conversations/{number}"))),
        Err(_) => show(&app, &request, None, (query, ReplyForm::default())).await,
    }
}

async fn one(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    Path(number): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    let query = Form::read(uri.query().unwrap_or_default().as_bytes())?;
    let before = Some(query.text("before")).filter(|text| !text.is_empty()).map(str::parse);
    let before = before.transpose().map_err(|_| PageError::not_found())?;
    let open = Open { number: parse_number(&number)?, before };
    show(&app, &request, Some(open), ("", ReplyForm::default())).await
}

fn parse_number(number: &str) -> Result<Recipient, PageError> {
    Recipient::from_digits(number).ok_or_else(PageError::not_found)
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    open: Option<Open>,
    (query, typed): (&str, ReplyForm),
) -> Result<Response, PageError> {
    let (cx, caller) = (&app.context, request.caller());
    let number = open.as_ref().map(|o| o.number);
    let mut layout = request.layout(app, "conversations", "Conversations").await?;
    layout.notice = composer::notice(&typed.errors);
    let latest = conversations::latest(cx, &caller, CONVERSATIONS).await?;
    let rows = latest.iter().map(|talk| ConversationRow::new(talk, number));
    let nonce = layout.nonce.clone();
    let mut page = Page {
        layout,
        here: "/conversations".to_owned(),
        conversations: rows.filter(|row| row.matches(query)).collect(),
        query: query.to_owned(),
        number: number.map(|n| n.to_string()).unwrap_or_default(),
        originator: String::new(),
        opted_out: false,
        bubbles: Vec::new(),
        earlier: String::new(),
        latest: String::new(),
        idempotency_key: cx.next_id().0,
        reply_text: typed.text,
        reply_error: typed.errors.get("text").to_owned(),
    };
    if let Some(open) = open {
        page.open(app, &caller, &open).await?;
    }
    let status =
        if typed.errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(page::html(status, &nonce, page.render()))
}

impl Page {
    /// Loads the messages of the open conversation.
    async fn open(
        &mut self,
        app: &DashboardState,
        caller: &Caller,
        open: &Open,
    ) -> Result<(), PageError> {
        let (cx, path) = (&app.context, format!("/conversations/{}", open.number));
        let before = open.before.unwrap_or(Uuid::max());
        let messages = conversations::entries(cx, caller, open.number, before, BUBBLES).await?;
        let originator = conversations::reply_originator(cx, caller, open.number).await?;
        self.originator = originator.map(|o| o.to_string()).unwrap_or_default();
        self.opted_out = conversations::opted_out(cx, caller, open.number).await?;
        self.bubbles = bubbles::bubbles(&messages);
        if let Some(first) = messages.first().filter(|_| messages.len() == BUBBLES) {
            self.earlier = format!("{path}?before={}", first.id());
        }
        match open.before {
            None => self.here = path,
            Some(_) => (self.here, self.latest) = (String::new(), path),
        }
        Ok(())
    }
}

/// Sends a reply.
async fn reply(
    State(app): State<Arc<DashboardState>>,
    Path(number): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    let (cx, caller) = (&app.context, request.caller());
    caller.require_scope(Scope::Send)?;
    let number = parse_number(&number)?;
    let mut errors = FieldErrors::default();
    let text = composer::message_text(&form, &mut errors);
    // The originator shown on the page: the recipient may have texted another number since.
    let from = Some(form.text("from")).filter(|from| !from.is_empty());
    let settings = cx.settings();
    let from = from.map(|from| settings.number_owners.originator(caller.account, from));
    match (from.transpose(), text) {
        (Ok(Some(from)), Some(text)) => {
            let key = composer::idempotency_key(&form)?;
            let send = reply_to(from, number, text);
            match messages::send(cx, &app.writer, &caller, send, Some(key)).await {
                Ok(_) => return Ok(page::redirect(&format!("/conversations/{number}"))),
                Err(error) => composer::add_error(error, &mut errors)?,
            }
        }
        (Ok(Some(_)), None) => {}
        (Ok(None) | Err(_), _) => errors.add("text", NO_ORIGINATOR),
    }
    // The form has one field, which shows all errors.
    for field in ["recipient", "originator"] {
        let message = errors.get(field).to_owned();
        if !message.is_empty() {
            errors.add("text", message);
        }
    }
    let open = Some(Open { number, before: None });
    show(&app, &request, open, ("", ReplyForm { text: composer::text(&form), errors })).await
}

fn reply_to(originator: Originator, recipient: Recipient, text: MessageText) -> SendRequest {
    SendRequest {
        originator,
        recipient,
        text,
        reference: None,
        validity: Validity::DEFAULT,
        max_parts: None,
        block_optout: true,
    }
}
