//! The composer: a message is written, counted, priced and sent.

mod count;

use crate::app::App;
use crate::dashboard::draft;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
use crate::dashboard::visit::{Posted, Visit};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use count::Count;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::id::MessageId;
use heliograph_domain::text::foreign;
use heliograph_service::caller::Caller;
use heliograph_service::error::Error;
use heliograph_service::messages::{self, Filter, Send};
use heliograph_service::once::Once;
use heliograph_service::price::Quote;
use std::sync::Arc;
use uuid::Uuid;

/// How long a message may be tried, in seconds and in words; the first is for who has no wish.
const VALIDITIES: [(&str, &str); 6] = [
    ("", "2 days"),
    ("300", "5 minutes"),
    ("3600", "1 hour"),
    ("21600", "6 hours"),
    ("86400", "1 day"),
    ("259200", "3 days"),
];

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/send", get(compose).post(send))
        .route("/send/count", post(recount))
        .route("/send/plain", post(plain))
}

#[derive(Template)]
#[template(path = "dashboard/send.html")]
struct Page {
    shell: Shell,
    form: Draft,
    validities: [(&'static str, &'static str); 6],
    count: Count,
}

/// The count alone.
#[derive(Template)]
#[template(path = "dashboard/count.html")]
struct Counted {
    shell: Shell,
    count: Count,
}

/// The same once more, with its price, before it is sent.
#[derive(Template)]
#[template(path = "dashboard/send_sure.html")]
struct Sure {
    shell: Shell,
    form: Draft,
    price: String,
    parts: u16,
    encoding: &'static str,
}

/// What was typed, and what is wrong with it.
struct Draft {
    recipient: String,
    originator: String,
    text: String,
    reference: String,
    validity: String,
    max_parts: String,
    override_optout: bool,
    once: String,
    faults: Faults,
}

impl Draft {
    fn new(form: &Form, faults: Faults) -> Self {
        let text = |name| form.text(name).to_owned();
        Self {
            recipient: text("recipient"),
            originator: text("originator"),
            text: draft::text(form),
            reference: text("reference"),
            validity: text("validity"),
            max_parts: text("maxParts"),
            override_optout: form.ticked("overrideOptout"),
            once: text("once"),
            faults,
        }
    }

    /// Something beyond the usual was asked for, or is wrong.
    fn is_special(&self) -> bool {
        let wrong =
            ["reference", "validity", "maxParts"].iter().any(|f| !self.faults.of(f).is_empty());
        let fields = [&self.reference, &self.validity, &self.max_parts];
        wrong || self.override_optout || fields.iter().any(|f| !f.is_empty())
    }
}

/// An empty composer, or one with what stands in the address.
async fn compose(State(app): State<Arc<App>>, visit: Visit, uri: Uri) -> Result<Response, Refusal> {
    visit.caller().needs(Scope::Send)?;
    let form = Form::read(uri.query().unwrap_or_default().as_bytes())?;
    let mut typed = Draft::new(&form, Faults::default());
    if typed.originator.is_empty() {
        let (newest, caller) = (MessageId(Uuid::max()), visit.caller());
        let last = messages::list(&app.context, &caller, &Filter::default(), (newest, 1)).await?;
        let last = last.messages.first().map(|(m, _)| m.originator.to_string());
        typed.originator = last.unwrap_or_default();
    }
    show(&app, &visit, &form, typed).await
}

async fn show(
    app: &App,
    visit: &Visit,
    form: &Form,
    mut typed: Draft,
) -> Result<Response, Refusal> {
    let count = Count::of(app, visit, form, &typed.text).await?;
    let mut shell = visit.shell(app, "send", "Send a message").await?;
    shell.notice = draft::notice(&typed.faults);
    if typed.once.is_empty() || shell.notice.is_some() {
        typed.once = app.context.next_id().0.to_string();
    }
    let status =
        if typed.faults.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let nonce = shell.nonce.clone();
    let page = Page { shell, form: typed, validities: VALIDITIES, count };
    Ok(page::html(status, &nonce, page.render()))
}

/// Says what a text comes to: as a piece of the page, or as the whole of it for who has no script.
async fn recount(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    visit.caller().needs(Scope::Send)?;
    if !visit.piece {
        return show(&app, &visit, &form, Draft::new(&form, Faults::default())).await;
    }
    let count = Count::of(&app, &visit, &form, &draft::text(&form)).await?;
    let shell = visit.shell(&app, "send", "Send a message").await?;
    let nonce = shell.nonce.clone();
    Ok(page::html(StatusCode::OK, &nonce, Counted { shell, count }.render()))
}

/// The composer with a text that says the same in the GSM alphabet, as far as it can.
async fn plain(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    visit.caller().needs(Scope::Send)?;
    let mut typed = Draft::new(&form, Faults::default());
    typed.text = foreign::plainly(&typed.text);
    show(&app, &visit, &form, typed).await
}

async fn send(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    let caller = visit.caller();
    caller.needs(Scope::Send)?;
    let mut faults = Faults::default();
    let Some(send) = draft::read(&form, &mut faults) else {
        return show(&app, &visit, &form, Draft::new(&form, faults)).await;
    };
    let once = draft::once(&form)?;
    match submit(&app, &caller, form.text("agreed"), (send, once)).await {
        Ok(Outcome::Sent(place)) => Ok(page::go(&place)),
        Ok(Outcome::Unsure(quote))
            if quote.part_price * quote.parts > visit.visitor.signed.available =>
        {
            draft::explain(Error::InsufficientBalance, &mut faults)?;
            show(&app, &visit, &form, Draft::new(&form, faults)).await
        }
        Ok(Outcome::Unsure(quote)) => ask(&app, &visit, &form, quote).await,
        Err(error) => {
            draft::explain(error, &mut faults)?;
            show(&app, &visit, &form, Draft::new(&form, faults)).await
        }
    }
}

/// What became of a draft.
enum Outcome {
    /// It is sent; where it can be looked at.
    Sent(String),
    /// It has a price that the person has not seen yet.
    Unsure(Quote),
}

/// Sends a draft; a live one only when its price is the one that was `agreed` to.
async fn submit(
    app: &App,
    caller: &Caller,
    agreed: &str,
    (send, once): (Send, Once),
) -> Result<Outcome, Error> {
    let cx = &app.context;
    if caller.mode == Mode::Live {
        let quote = messages::dry_run(cx, caller, &send).await?;
        if agreed != price(&quote, caller) {
            return Ok(Outcome::Unsure(quote));
        }
    }
    let sent = messages::send(cx, &app.writer, caller, send, Some(once)).await?;
    Ok(Outcome::Sent(match caller.mode {
        Mode::Test => format!("/phone/{}", sent.message.recipient),
        Mode::Live => format!("/messages/{}", sent.message.id),
    }))
}

fn price(quote: &Quote, caller: &Caller) -> String {
    format!("{} {}", quote.part_price * quote.parts, caller.currency)
}

/// Asks whether it shall be sent at this price.
async fn ask(app: &App, visit: &Visit, form: &Form, quote: Quote) -> Result<Response, Refusal> {
    let shell = visit.shell(app, "send", "Send this message?").await?;
    let nonce = shell.nonce.clone();
    let price = price(&quote, &visit.caller());
    let form = Draft::new(form, Faults::default());
    let page = Sure { shell, form, price, parts: quote.parts, encoding: quote.encoding.name() };
    Ok(page::html(StatusCode::OK, &nonce, page.render()))
}
