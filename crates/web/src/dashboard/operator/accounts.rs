//! `/operator/accounts`: who uses the installation, what they have, and a way in for who lost theirs.

use crate::app::App;
use crate::dashboard::figure;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::operator::Operator;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
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

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/operator/accounts", get(show))
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
    /// The page that its forms come from.
    after: i64,
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

async fn show(
    State(app): State<Arc<App>>,
    Operator(visit): Operator,
    uri: Uri,
) -> Result<Response, Refusal> {
    let query = uri.query().unwrap_or_default();
    let after = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "after");
    let after = after.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut response = |shell: &mut Shell| {
        shell.notice = visit::told(&uri, &[("credited", "The balance is changed.")]);
    };
    render(&app, &visit, after, Extra::default(), &mut response).await
}

async fn render(
    app: &App,
    visit: &Visit,
    after: i64,
    extra: Extra,
    change: &mut (dyn FnMut(&mut Shell) + Send),
) -> Result<Response, Refusal> {
    let cx = &app.context;
    let mut shell = visit.shell(app, "accounts", "Accounts").await?;
    change(&mut shell);
    let look = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
    let mut all = accounts::page(cx, AccountId(after), look).await?;
    let more = all.len() > PAGE;
    all.truncate(PAGE);
    let mut people = Vec::new();
    let mut next = String::new();
    if let (Some(first), Some(last)) = (all.first(), all.last()) {
        people = accounts::people(cx, first.id, last.id).await?;
        if more {
            next = format!("/operator/accounts?after={}", last.id);
        }
    }
    let status =
        if extra.faults.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let accounts = all.into_iter().map(|a| account(a, &people, &extra, (cx.next_id().0, after)));
    let (link_for, link) = extra.link.clone().unwrap_or_default();
    let page = Page {
        accounts: accounts.collect(),
        link,
        link_for,
        first: if after > 0 { "/operator/accounts".to_owned() } else { String::new() },
        next,
        shell,
    };
    let nonce = page.shell.nonce.clone();
    Ok(page::html(status, &nonce, page.render()))
}

fn account(
    account: accounts::Account,
    people: &[Member],
    extra: &Extra,
    (once, after): (Uuid, i64),
) -> Account {
    let about = extra.about == Some(account.id);
    let typed = |name| if about { extra.form.raw(name).to_owned() } else { String::new() };
    let wrong = |name| if about { extra.faults.of(name).to_owned() } else { String::new() };
    let reserved = match account.reserved {
        Amount::ZERO => String::new(),
        some => format!("{some} {}", account.currency),
    };
    let its = people.iter().filter(|m| m.account == account.id);
    let person =
        |m: &Member| Person { id: m.user.to_string(), email: m.email.clone(), role: m.role.name() };
    let (since_iso, since) = figure::instant(account.created_at);
    Account {
        open: about,
        id: account.id.0,
        balance: format!("{} {}", account.available, account.currency),
        reserved,
        since_iso,
        since,
        once,
        after,
        amount: typed("amount"),
        amount_error: wrong("amount"),
        note: typed("note"),
        note_error: wrong("note"),
        people: its.map(person).collect(),
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
    let after = form.text("after").parse().unwrap_or(0);
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
        return Ok(visit::done(&format!("/operator/accounts?after={after}"), "credited"));
    }
    let extra = Extra { about: Some(about), form, faults, link: None };
    render(&app, &visit, after, extra, &mut |_| ()).await
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
    let after = form.text("after").parse().unwrap_or(0);
    let extra = Extra { link: Some((email, link)), ..Extra::default() };
    render(&app, &visit, after, extra, &mut |_| ()).await
}
