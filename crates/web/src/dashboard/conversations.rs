//! Conversations: who wrote, what was said, and a box for the answer.

mod view;

use crate::app::App;
use crate::dashboard::bubbles::{self, Bubble};
use crate::dashboard::draft;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
use crate::dashboard::visit::{Posted, Visit};
use crate::sending;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account::Scope;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_service::messages::{self, DEFAULT_VALIDITY, Send};
use heliograph_service::{caller::Caller, conversations};
use std::sync::Arc;
use uuid::Uuid;
use view::Person;

/// People in the list.
const PEOPLE: usize = 100;
/// Bubbles on a page.
const BUBBLES: usize = 100;

const NO_SENDER: &str =
    "Nobody wrote to or from this number yet: send the first message from the page 'Send'.";

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/conversations", get(all))
        .route("/conversations/{number}", get(one))
        .route("/conversations/{number}/reply", post(reply))
}

#[derive(Template)]
#[template(path = "dashboard/conversations.html")]
struct Page {
    shell: Shell,
    /// The address of this page, which is read again when something changed; empty where older texts are looked at.
    here: String,
    /// Whose conversations are listed, the latest first.
    people: Vec<Person>,
    query: String,
    /// The open one; empty when there is none.
    number: String,
    /// Who answers; empty when nothing was said.
    ours: String,
    opted_out: bool,
    bubbles: Vec<Bubble>,
    earlier: String,
    latest: String,
    once: Uuid,
    reply_text: String,
    reply_error: String,
}

/// What a form held that was sent back.
#[derive(Default)]
struct Typed {
    text: String,
    faults: Faults,
}

/// Which conversation is open, if one is, and before which bubble.
struct Open {
    number: Recipient,
    before: Option<Uuid>,
}

async fn all(State(app): State<Arc<App>>, visit: Visit, uri: Uri) -> Result<Response, Refusal> {
    let query = Form::read(uri.query().unwrap_or_default().as_bytes())?;
    let query = query.text("number");
    match query.parse::<Recipient>() {
        Ok(number) => Ok(page::go(&format!("/conversations/{number}"))),
        Err(_) => show(&app, &visit, None, (query, Typed::default())).await,
    }
}

async fn one(
    State(app): State<Arc<App>>,
    visit: Visit,
    Path(number): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let query = Form::read(uri.query().unwrap_or_default().as_bytes())?;
    let before = Some(query.text("before")).filter(|text| !text.is_empty()).map(str::parse);
    let before = before.transpose().map_err(|_| Refusal::not_found())?;
    let open = Open { number: person(&number)?, before };
    show(&app, &visit, Some(open), ("", Typed::default())).await
}

fn person(number: &str) -> Result<Recipient, Refusal> {
    Recipient::from_digits(number).ok_or_else(Refusal::not_found)
}

async fn show(
    app: &App,
    visit: &Visit,
    open: Option<Open>,
    (query, typed): (&str, Typed),
) -> Result<Response, Refusal> {
    let (cx, caller) = (&app.context, visit.caller());
    let number = open.as_ref().map(|o| o.number);
    let mut shell = visit.shell(app, "conversations", "Conversations").await?;
    shell.notice = draft::notice(&typed.faults);
    let people = conversations::latest(cx, &caller, PEOPLE).await?;
    let people = people.iter().map(|talk| Person::new(talk, number));
    let nonce = shell.nonce.clone();
    let mut page = Page {
        shell,
        here: "/conversations".to_owned(),
        people: people.filter(|p| p.fits(query)).collect(),
        query: query.to_owned(),
        number: number.map(|n| n.to_string()).unwrap_or_default(),
        ours: String::new(),
        opted_out: false,
        bubbles: Vec::new(),
        earlier: String::new(),
        latest: String::new(),
        once: cx.next_id().0,
        reply_text: typed.text,
        reply_error: typed.faults.of("text").to_owned(),
    };
    if let Some(open) = open {
        page.open(app, &caller, &open).await?;
    }
    let status =
        if typed.faults.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(page::html(status, &nonce, page.render()))
}

impl Page {
    /// Fills in what was said.
    async fn open(&mut self, app: &App, caller: &Caller, open: &Open) -> Result<(), Refusal> {
        let (cx, path) = (&app.context, format!("/conversations/{}", open.number));
        let before = open.before.unwrap_or(Uuid::max());
        let said = conversations::with(cx, caller, open.number, (before, BUBBLES)).await?;
        let ours = conversations::answers_as(cx, caller, open.number).await?;
        self.ours = ours.map(|ours| ours.to_string()).unwrap_or_default();
        self.opted_out = conversations::opted_out(cx, caller, open.number).await?;
        self.bubbles = bubbles::bubbles(&said);
        if let Some(first) = said.first().filter(|_| said.len() == BUBBLES) {
            self.earlier = format!("{path}?before={}", first.id());
        }
        match open.before {
            None => self.here = path,
            Some(_) => (self.here, self.latest) = (String::new(), path),
        }
        Ok(())
    }
}

/// Answers a person.
async fn reply(
    State(app): State<Arc<App>>,
    Path(number): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    let (cx, caller) = (&app.context, visit.caller());
    caller.needs(Scope::Send)?;
    let number = person(&number)?;
    let mut faults = Faults::default();
    let text = draft::text(&form);
    if text.trim().is_empty() {
        faults.add("text", sending::NO_TEXT);
    }
    // As the page said when the text was typed: they may have written to another number since.
    let from = Some(form.text("from")).filter(|from| !from.is_empty()).map(str::parse);
    match from.transpose() {
        Ok(Some(from)) if faults.is_empty() => {
            let once = draft::once(&form)?;
            let send = answer(from, number, text.clone());
            match messages::send(cx, &app.writer, &caller, send, Some(once)).await {
                Ok(_) => return Ok(page::go(&format!("/conversations/{number}"))),
                Err(error) => draft::explain(error, &mut faults)?,
            }
        }
        Ok(Some(_)) => {}
        Ok(None) | Err(_) => faults.add("text", NO_SENDER),
    }
    // There is one field, which stands for all that is wrong.
    let why = faults.of("recipient").to_owned();
    if !why.is_empty() {
        faults.add("text", why);
    }
    let open = Some(Open { number, before: None });
    show(&app, &visit, open, ("", Typed { text, faults })).await
}

fn answer(originator: Originator, recipient: Recipient, text: String) -> Send {
    let (reference, max_parts, validity) = (None, None, DEFAULT_VALIDITY);
    Send { originator, recipient, text, reference, validity, max_parts, block_optout: true }
}
