//! The list of conversations, one conversation, and replies.

mod view;

use crate::bubbles::{self, BubbleView};
use crate::composer;
use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::format;
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
use heliograph_domain::id::InboundId;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::context::Context;
use heliograph_service::messaging::conversations::{self, Conversation, ConversationPage};
use heliograph_service::messaging::messages::{self, SendRequest};
use std::sync::Arc;
use uuid::Uuid;
use view::ConversationRow;

/// Conversations per page of the list.
const CONVERSATIONS: usize = 50;
/// Messages per page.
const BUBBLES: usize = 100;

const HERE: &str = "/conversations";
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
    /// The conversations, the latest inbound message first.
    conversations: Vec<ConversationRow>,
    /// The URL of the list with older conversations; empty on the last page.
    older: String,
    /// The URL of the first page of the list; empty there.
    newest: String,
    query: String,
    /// The number of the open conversation; empty when none is open.
    number: String,
    /// The originator of replies; empty without messages.
    originator: String,
    /// The same, as people write it.
    replying_as: String,
    opted_out: bool,
    bubbles: Vec<BubbleView>,
    earlier: String,
    latest: String,
    idempotency_key: Uuid,
    reply_text: String,
    reply_error: String,
}

/// What the list of conversations shows.
#[derive(Default)]
struct ListQuery {
    /// Part of a number, as typed.
    number: String,
    /// The message below which the list begins.
    before: Option<InboundId>,
}

impl ListQuery {
    fn read(uri: &Uri) -> Result<Self, PageError> {
        let query = Form::read(uri.query().unwrap_or_default().as_bytes())?;
        let before = Some(query.text("older")).filter(|text| !text.is_empty()).map(str::parse);
        let before = before.transpose().map_err(|_| PageError::not_found())?;
        Ok(Self { number: query.text("number").to_owned(), before: before.map(InboundId) })
    }

    /// Returns the digits to search for; `None` if the text has none, so that nothing matches.
    fn digits(&self) -> Option<String> {
        let digits: String = self.number.chars().filter(char::is_ascii_digit).collect();
        (self.number.is_empty() || !digits.is_empty()).then_some(digits)
    }

    /// Returns the URL of the list that begins below a message.
    fn url(&self, before: Option<InboundId>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if !self.number.is_empty() {
            query.append_pair("number", &self.number);
        }
        if let Some(before) = before {
            query.append_pair("older", &before.0.to_string());
        }
        let query = query.finish();
        if query.is_empty() { HERE.to_owned() } else { format!("{HERE}?{query}") }
    }

    /// Returns a page of the list, and the message below which there are more.
    async fn page(
        &self,
        cx: &Context,
        caller: &Caller,
    ) -> Result<(Vec<Conversation>, Option<InboundId>), PageError> {
        let Some(digits) = self.digits() else { return Ok(<_>::default()) };
        let before = self.before.unwrap_or(InboundId(Uuid::max()));
        let limit = i64::try_from(CONVERSATIONS + 1).unwrap_or(i64::MAX);
        let page = ConversationPage { before, digits: &digits, limit };
        let mut all = conversations::list(cx, caller, page).await?;
        let more = all.len() > CONVERSATIONS;
        all.truncate(CONVERSATIONS);
        let next = all.last().filter(|_| more).map(|conversation| conversation.last.id);
        Ok((all, next))
    }
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
    let query = ListQuery::read(&uri)?;
    match query.number.parse::<Recipient>() {
        Ok(number) => Ok(page::redirect(&format!("{HERE}/{number}"))),
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
    conversations::mark_read(&app.context, &request.caller(), open.number).await?;
    show(&app, &request, Some(open), (ListQuery::default(), ReplyForm::default())).await
}

fn parse_number(number: &str) -> Result<Recipient, PageError> {
    Recipient::from_digits(number).ok_or_else(PageError::not_found)
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    open: Option<Open>,
    (query, typed): (ListQuery, ReplyForm),
) -> Result<Response, PageError> {
    let (cx, caller) = (&app.context, request.caller());
    let number = open.as_ref().map(|o| o.number);
    let mut layout = request.layout(app, "conversations", "Conversations").await?;
    layout.notice = composer::notice(&typed.errors);
    let (found, next) = query.page(cx, &caller).await?;
    let nonce = layout.nonce.clone();
    let mut page = Page {
        layout,
        here: query.url(query.before),
        conversations: found.iter().map(|c| ConversationRow::new(c, number)).collect(),
        older: next.map(|next| query.url(Some(next))).unwrap_or_default(),
        newest: query.before.map(|_| query.url(None)).unwrap_or_default(),
        query: query.number,
        number: number.map(|n| n.to_string()).unwrap_or_default(),
        originator: String::new(),
        replying_as: String::new(),
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
        self.replying_as = originator.as_ref().map(format::originator).unwrap_or_default();
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
    show(
        &app,
        &request,
        open,
        (ListQuery::default(), ReplyForm { text: composer::text(&form), errors }),
    )
    .await
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
