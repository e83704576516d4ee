//! `/operator/accounts`: who uses the installation, what they have, and a way in for who lost theirs.

use crate::app::App;
use crate::dashboard::figure;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::operator::Operator;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Shell};
use crate::dashboard::visit::{self, Posted, Visit};
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::id::{AccountId, UserId};
use heliograph_domain::money::Amount;
use heliograph_service::accounts::{self, Member};
use heliograph_service::error::Error;
use heliograph_service::one_time_links;
use std::sync::Arc;
use uuid::Uuid;

/// Accounts on one page.
const PAGE: usize = 25;
const NOTE_LIMIT: usize = 200;
/// As long as an address can be.
const PART_LIMIT: usize = 254;
const HERE: &str = "/operator/accounts";

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(show))
        .route("/operator/accounts/{id}/credit", post(credit))
        .route("/operator/accounts/{id}/link", post(link))
}

#[derive(Template)]
#[template(path = "dashboard/accounts.html")]
struct Page {
    shell: Shell,
    /// A sign-in link that was just made; empty when none was.
    link: String,
    link_for: String,
    accounts: Vec<Account>,
    looked: Looked,
    first: String,
    next: String,
}

struct Account {
    open: bool,
    id: i64,
    name: String,
    balance: String,
    reserved: String,
    currency: String,
    since_iso: String,
    since: String,
    /// What is typed into its form is done once under this name.
    once: Uuid,
    amount: String,
    amount_error: String,
    note: String,
    note_error: String,
    people: Vec<Person>,
}

struct Person {
    id: String,
    email: String,
    role: &'static str,
}

/// What a page shows besides the accounts.
#[derive(Default)]
struct Extra {
    /// The account whose form was sent back, and what was typed.
    about: Option<AccountId>,
    form: Form,
    faults: Faults,
    /// A link and whom it is for.
    link: Option<(String, String)>,
}

/// Which accounts are looked at.
#[derive(Clone, Default)]
struct Looked {
    /// What stands in their names, or in the addresses of their people.
    part: String,
    /// Those after this one.
    after: i64,
}

impl Looked {
    fn read(form: &Form) -> Self {
        let part = form.text("find").chars().take(PART_LIMIT).collect();
        Self { part, after: form.text("after").parse().unwrap_or(0) }
    }

    /// The same list from another account on.
    fn from(&self, after: i64) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if !self.part.is_empty() {
            query.append_pair("find", &self.part);
        }
        if after > 0 {
            query.append_pair("after", &after.to_string());
        }
        let query = query.finish();
        if query.is_empty() { HERE.to_owned() } else { format!("{HERE}?{query}") }
    }
}

async fn show(
    State(app): State<Arc<App>>,
    Operator(visit): Operator,
    uri: Uri,
) -> Result<Response, Refusal> {
    let looked = Looked::read(&Form::read(uri.query().unwrap_or_default().as_bytes())?);
    let notice = visit::told(&uri, &[("credited", "The balance is changed.")]);
    render(&app, &visit, looked, notice, Extra::default()).await
}

async fn render(
    app: &App,
    visit: &Visit,
    looked: Looked,
    notice: Option<Notice>,
    extra: Extra,
) -> Result<Response, Refusal> {
    let cx = &app.context;
    let shell = Shell { notice, ..visit.shell(app, "accounts", "Accounts").await? };
    let look = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
    let mut all = accounts::page(cx, &looked.part, AccountId(looked.after), look).await?;
    let more = all.len() > PAGE;
    all.truncate(PAGE);
    let last = all.last().filter(|_| more).map(|(last, _)| last.id.0);
    let status =
        if extra.faults.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let accounts = all.into_iter().map(|found| account(found, &extra, cx.next_id().0));
    let (link_for, link) = extra.link.clone().unwrap_or_default();
    let page = Page {
        accounts: accounts.collect(),
        link,
        link_for,
        first: if looked.after > 0 { looked.from(0) } else { String::new() },
        next: last.map(|last| looked.from(last)).unwrap_or_default(),
        looked,
        shell,
    };
    let nonce = page.shell.nonce.clone();
    Ok(page::html(status, &nonce, page.render()))
}

fn account(
    (account, people): (accounts::Account, Vec<Member>),
    extra: &Extra,
    once: Uuid,
) -> Account {
    let about = extra.about == Some(account.id);
    let typed = |name| if about { extra.form.raw(name).to_owned() } else { String::new() };
    let wrong = |name| if about { extra.faults.of(name).to_owned() } else { String::new() };
    let reserved = match account.reserved {
        Amount::ZERO => String::new(),
        some => format!("{some} {}", account.currency),
    };
    let person = |m: Member| Person { id: m.user.to_string(), email: m.email, role: m.role.name() };
    let (since_iso, since) = figure::instant(account.created_at);
    Account {
        open: about,
        id: account.id.0,
        balance: format!("{} {}", account.available, account.currency),
        reserved,
        since_iso,
        since,
        once,
        amount: typed("amount"),
        amount_error: wrong("amount"),
        note: typed("note"),
        note_error: wrong("note"),
        people: people.into_iter().map(person).collect(),
        name: account.name,
        currency: account.currency,
    }
}

/// Changes a balance by hand.
async fn credit(
    State(app): State<Arc<App>>,
    Path(id): Path<i64>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    visit.visitor.operates()?;
    let mut faults = Faults::default();
    let looked = Looked::read(&form);
    let once = form.text("once").parse::<Uuid>().map_err(|_| Refusal::bad_form())?;
    let amount = match form.text("amount").parse::<Amount>() {
        Ok(Amount::ZERO) => Err("Nothing would change: write how much to add.".to_owned()),
        other => other.map_err(|error| error.to_string()),
    };
    if form.text("note").chars().count() > NOTE_LIMIT {
        faults.add("note", format!("A note has {NOTE_LIMIT} characters at most."));
    }
    let about = AccountId(id);
    let done = match (&amount, faults.is_empty()) {
        (Ok(amount), true) => {
            let actor = visit.visitor.operator_of(about, &visit.peer.address.to_string());
            accounts::credit_once(&app.context, &actor, once, *amount, form.text("note")).await
        }
        _ => Ok(()),
    };
    if let Err(why) = amount {
        faults.add("amount", why);
    }
    match done {
        Err(Error::InsufficientBalance) => {
            faults.add("amount", "The account has not so much: a balance is never below zero.");
        }
        Err(Error::IdempotencyKeyReused) => {
            faults.add("amount", "This form was sent before with another amount. Look at the balance, then send this.");
        }
        other => other?,
    }
    if faults.is_empty() {
        return Ok(visit::done(&looked.from(looked.after), "credited"));
    }
    let extra = Extra { about: Some(about), form, faults, link: None };
    render(&app, &visit, looked, None, extra).await
}

/// Makes a sign-in link for somebody, and shows it this once.
async fn link(
    State(app): State<Arc<App>>,
    Path(id): Path<i64>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    visit.visitor.operates()?;
    let user = form.text("user").parse::<UserId>().map_err(|_| Refusal::bad_form())?;
    let actor = visit.visitor.operator_of(AccountId(id), &visit.peer.address.to_string());
    let (email, token) = one_time_links::hand_out(&app.context, &actor, user).await?;
    let link = format!("{}/sign-in/{}", visit.base, token.reveal());
    let extra = Extra { link: Some((email, link)), ..Extra::default() };
    render(&app, &visit, Looked::read(&form), None, extra).await
}
