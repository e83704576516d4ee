//! The phone: virtual handsets on a page, for test messages.

use crate::app::App;
use crate::dashboard::bubbles::{self, Bubble};
use crate::dashboard::draft;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
use crate::dashboard::visit::{Posted, Visit};
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account::Mode;
use heliograph_domain::phone::Recipient;
use heliograph_service::{conversations, handsets, messages};
use std::sync::Arc;
use uuid::Uuid;
use view::{Handset, Step, Told};

mod view;

/// Handsets beside the phone.
const HANDSETS: usize = 30;
/// Bubbles on a phone.
const BUBBLES: usize = 100;
/// The longest text that can be typed on a handset, in characters.
const LONGEST: usize = 1_000;
/// Whom the first message is for, unless somebody knows better: a number that belongs to nobody.
const NOBODY: &str = "+447700900123";
/// Who writes it, and what.
const SENDER: &str = "Heliograph";
const HELLO: &str = "Hello from Heliograph 👋 Write back!";

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/phone", get(newest))
        .route("/phone/send", post(send))
        .route("/phone/{number}", get(one))
        .route("/phone/{number}/reply", post(reply))
}

#[derive(Template)]
#[template(path = "dashboard/phone.html")]
struct Page {
    shell: Shell,
    /// The address of this page, which is read again when something changed.
    here: String,
    handsets: Vec<Handset>,
    /// The open one; empty when there is none.
    number: String,
    initials: String,
    /// Who wrote to it last.
    sender: String,
    bubbles: Vec<Bubble>,
    opted_out: bool,
    happened: Vec<Step>,
    told: Vec<Told>,
    /// What was typed into the reply, and what is wrong with it.
    reply: String,
    reply_error: String,
    reply_once: Uuid,
    compose: Compose,
    /// The ready line for a terminal.
    curl: String,
}

/// The form for a test message: what was typed, and what is wrong with it.
struct Compose {
    recipient: String,
    recipient_error: String,
    originator: String,
    originator_error: String,
    text: String,
    text_error: String,
    /// Whatever is sent under this name is sent once.
    once: Uuid,
    open: bool,
}

/// What a form held that was sent back.
#[derive(Default)]
struct Typed {
    form: Form,
    faults: Faults,
}

async fn newest(State(app): State<Arc<App>>, visit: Visit) -> Result<Response, Refusal> {
    show(&app, &visit, None, Typed::default()).await
}

async fn one(
    State(app): State<Arc<App>>,
    visit: Visit,
    Path(number): Path<String>,
) -> Result<Response, Refusal> {
    show(&app, &visit, Some(handset(&number)?), Typed::default()).await
}

fn handset(number: &str) -> Result<Recipient, Refusal> {
    Recipient::from_digits(number).ok_or_else(Refusal::not_found)
}

async fn show(
    app: &App,
    visit: &Visit,
    number: Option<Recipient>,
    typed: Typed,
) -> Result<Response, Refusal> {
    let (cx, caller) = (&app.context, visit.caller());
    if caller.mode != Mode::Test {
        return Ok(page::go("/messages"));
    }
    let mut shell = visit.shell(app, "phone", "Phone").await?;
    shell.notice = draft::notice(&typed.faults);
    let people = conversations::people(cx, &caller, HANDSETS).await?;
    let number = number.or(people.first().map(|p| p.number));
    let (mut said, mut opted_out, mut told) = (Vec::new(), false, Vec::new());
    if let Some(number) = number {
        said = conversations::with(cx, &caller, number, (Uuid::max(), BUBBLES)).await?;
        opted_out = conversations::opted_out(cx, &caller, number).await?;
        told = view::told(app, &caller, &said).await?;
    }
    let shown = number.map(|n| n.to_string()).unwrap_or_default();
    let status =
        if typed.faults.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let nonce = shell.nonce.clone();
    let page = Page {
        shell,
        here: if shown.is_empty() { "/phone".to_owned() } else { format!("/phone/{shown}") },
        handsets: people.iter().map(|p| Handset::new(p, number)).collect(),
        initials: bubbles::initials(&shown),
        number: shown,
        sender: view::sender(&said),
        bubbles: bubbles::bubbles(&said),
        opted_out,
        happened: view::steps(&said),
        told,
        reply: typed.form.raw("text").to_owned(),
        reply_error: typed.faults.of("reply").to_owned(),
        reply_once: cx.next_id().0,
        compose: Compose::new(&typed, cx.next_id().0),
        curl: curl(&visit.base),
    };
    Ok(page::html(status, &nonce, page.render()))
}

fn curl(base: &str) -> String {
    let body = r#"{"originator":"Heliograph","recipient":"+447700900123","text":"Hello, world"}"#;
    format!(
        "curl {base}/v1/send/sms -H 'Authorization: Bearer YOUR_TEST_KEY' -H 'Content-Type: application/json' -d '{body}'"
    )
}

impl Compose {
    fn new(typed: &Typed, once: Uuid) -> Self {
        let Typed { form, faults } = typed;
        let begun = ["recipient", "originator", "text"].iter().any(|f| !faults.of(f).is_empty());
        let or = |name: &str, other: &str| match begun {
            true => form.raw(name).to_owned(),
            false => other.to_owned(),
        };
        Self {
            recipient: or("recipient", NOBODY),
            recipient_error: faults.of("recipient").to_owned(),
            originator: or("originator", SENDER),
            originator_error: faults.of("originator").to_owned(),
            text: or("text", HELLO),
            text_error: faults.of("text").to_owned(),
            once,
            open: begun,
        }
    }
}

/// Sends a test message from the page itself.
async fn send(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    let caller = visit.caller();
    if caller.mode != Mode::Test {
        return Err(Refusal::not_found());
    }
    let mut faults = Faults::default();
    let Some(send) = draft::read(&form, &mut faults) else {
        return show(&app, &visit, None, Typed { form, faults }).await;
    };
    let number = send.recipient;
    let once = draft::once(&form)?;
    match messages::send(&app.context, &app.writer, &caller, send, Some(once)).await {
        Ok(_) => Ok(page::go(&format!("/phone/{number}"))),
        Err(error) => {
            draft::explain(error, &mut faults)?;
            show(&app, &visit, Some(number), Typed { form, faults }).await
        }
    }
}

/// Types a reply on the handset.
async fn reply(
    State(app): State<Arc<App>>,
    Path(number): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    let number = handset(&number)?;
    let text = form.text("text").replace("\r\n", "\n");
    let mut faults = Faults::default();
    if text.is_empty() {
        faults.add("reply", "write something, or choose one of the words above");
    } else if text.chars().count() > LONGEST {
        faults.add("reply", format!("at most {LONGEST} characters fit"));
    }
    let (true, Ok(once)) = (faults.is_empty(), form.text("once").parse::<Uuid>()) else {
        return show(&app, &visit, Some(number), Typed { form, faults }).await;
    };
    handsets::reply(&app.context, &visit.caller(), (once, number), &text).await?;
    Ok(page::go(&format!("/phone/{number}")))
}
