//! `/operator/accounts`: accounts with their balance and members, credit, and sign-in links.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::format;
use crate::layout::{Layout, Notice};
use crate::operator::OperatorRequest;
use crate::page;
use crate::session::{self, SessionForm, SessionRequest};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::fields::CreditNote;
use heliograph_domain::id::{AccountId, UserId};
use heliograph_domain::money::Amount;
use heliograph_domain::wording::{limits, sentence};
use heliograph_service::identity::account_limits;
use heliograph_service::identity::accounts::{self, MAX_CREDIT, Member};
use heliograph_service::identity::{magic_links, sessions};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Error;
use std::sync::Arc;
use uuid::Uuid;

/// Accounts per page.
const PAGE_SIZE: usize = 25;
/// The longest search text: the longest email address.
const SEARCH_LIMIT: usize = 254;
const HERE: &str = "/operator/accounts";
const NOTICES: [(&str, &str); 2] = [
    ("limited", "Limits saved."),
    ("ended", "All sessions of the person were ended, and unused links no longer work."),
];
const RESUBMITTED: &str = "This form was already submitted with another amount. Check the \
                           balance, then submit it again.";
const LIMIT_ERROR: &str =
    "Enter a whole number from 0 to 4,294,967,295, or nothing for the default.";

pub(super) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route(HERE, get(show))
        .route("/operator/accounts/{id}/credit", post(credit))
        .route("/operator/accounts/{id}/link", post(link))
        .route("/operator/accounts/{id}/end-sessions", post(end_sessions))
        .route("/operator/accounts/{id}/limits", post(change_limits))
}

#[derive(Template)]
#[template(path = "accounts.html")]
struct Page {
    layout: Layout,
    /// A new sign-in link and its user; empty without one.
    link: String,
    link_for: String,
    accounts: Vec<AccountRow>,
    query: AccountQuery,
    first: String,
    next: String,
}

struct AccountRow {
    open: bool,
    id: i64,
    name: String,
    balance: String,
    reserved: String,
    currency: String,
    created_iso: String,
    created: String,
    idempotency_key: Uuid,
    amount: String,
    amount_error: String,
    note: String,
    note_error: String,
    members: Vec<MemberRow>,
    limits: Vec<LimitField>,
}

/// The field of one limit; empty for the default.
struct LimitField {
    name: &'static str,
    label: &'static str,
    value: String,
    default: u32,
    error: String,
}

struct MemberRow {
    id: String,
    email: String,
    role: &'static str,
}

/// One-time content of the page: a rejected form, or a new sign-in link.
#[derive(Default)]
struct PageState {
    /// The account whose form was rejected.
    account: Option<AccountId>,
    form: Form,
    errors: FieldErrors,
    /// True if that form was the one of limits.
    limits_rejected: bool,
    /// The user's email address and the link.
    link: Option<(String, String)>,
    /// The account whose balance was just changed, and by how much.
    credited: Option<(AccountId, Amount)>,
}

/// Reads the account and the amount of a change from the query that follows it.
fn credited_account(uri: &Uri) -> Option<(AccountId, Amount)> {
    let query = Form::read(uri.query()?.as_bytes()).ok()?;
    let account = query.text("credited").parse().ok()?;
    Some((AccountId(account), query.text("amount").parse().ok()?))
}

/// Describes a change of a balance.
fn credit_notice(account: &accounts::Account, amount: Amount) -> Notice {
    let accounts::Account { id, name, currency, available, .. } = account;
    let change = match amount.0 < 0 {
        true => {
            let amount = Amount(amount.0.saturating_neg());
            format!("{} deducted from", format::money(amount, currency))
        }
        false => format!("{} added to", format::money(amount, currency)),
    };
    let balance = format::money(*available, currency);
    Notice::success(format!("{change} {name} (#{}). The balance is {balance}.", id.0))
}

/// The search and the page of the list, as query parameters.
#[derive(Clone, Default)]
struct AccountQuery {
    /// Part of an account name or of a member's email address.
    search: String,
    /// The last account of the previous page.
    after: i64,
}

impl AccountQuery {
    fn read(form: &Form) -> Self {
        let search = form.text("find").chars().take(SEARCH_LIMIT).collect();
        Self { search, after: form.text("after").parse().unwrap_or(0) }
    }

    /// Returns the URL of the page that begins after an account.
    fn url(&self, after: i64) -> String {
        let mut params = url::form_urlencoded::Serializer::new(String::new());
        if !self.search.is_empty() {
            params.append_pair("find", &self.search);
        }
        if after > 0 {
            params.append_pair("after", &after.to_string());
        }
        let params = params.finish();
        if params.is_empty() { HERE.to_owned() } else { format!("{HERE}?{params}") }
    }
}

async fn show(
    State(app): State<Arc<DashboardState>>,
    OperatorRequest(request): OperatorRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let query = AccountQuery::read(&Form::read(uri.query().unwrap_or_default().as_bytes())?);
    let credited = credited_account(&uri);
    let notice = session::notice_from(&uri, &NOTICES);
    let state = PageState { credited, ..PageState::default() };
    render(&app, &request, query, notice, state).await
}

async fn render(
    app: &DashboardState,
    request: &SessionRequest,
    query: AccountQuery,
    notice: Option<Notice>,
    state: PageState,
) -> Result<Response, PageError> {
    let cx = &app.context;
    let look = i64::try_from(PAGE_SIZE + 1).unwrap_or(i64::MAX);
    let mut all = accounts::page(cx, &query.search, AccountId(query.after), look).await?;
    let more = all.len() > PAGE_SIZE;
    all.truncate(PAGE_SIZE);
    let last = all.last().filter(|_| more).map(|(last, _)| last.id.0);
    let credited = state.credited.and_then(|(id, amount)| {
        let (account, _) = all.iter().find(|(account, _)| account.id == id)?;
        Some(credit_notice(account, amount))
    });
    let notice = credited.or(notice);
    let layout = Layout { notice, ..request.layout(app, "accounts", "Accounts").await? };
    let status =
        if state.errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let accounts = all.into_iter().map(|found| account(cx, found, &state));
    let (link_for, link) = state.link.clone().unwrap_or_default();
    let page = Page {
        accounts: accounts.collect(),
        link,
        link_for,
        first: if query.after > 0 { query.url(0) } else { String::new() },
        next: last.map(|last| query.url(last)).unwrap_or_default(),
        query,
        layout,
    };
    let nonce = page.layout.nonce.clone();
    Ok(page::html(status, &nonce, page.render()))
}

fn account(
    cx: &Context,
    (account, members): (accounts::Account, Vec<Member>),
    state: &PageState,
) -> AccountRow {
    let rejected = state.account == Some(account.id);
    let typed = |name| if rejected { state.form.raw(name).to_owned() } else { String::new() };
    let error = |name| if rejected { state.errors.get(name).to_owned() } else { String::new() };
    let reserved = match account.reserved {
        Amount::ZERO => String::new(),
        some => format::money(some, &account.currency),
    };
    let member =
        |m: Member| MemberRow { id: m.user.to_string(), email: m.email, role: m.role.name() };
    let (created_iso, created) = format::date_time(account.created_at);
    AccountRow {
        open: rejected,
        id: account.id.0,
        balance: format::money(account.available, &account.currency),
        reserved,
        created_iso,
        created,
        idempotency_key: cx.next_id().0,
        limits: AccountLimit::ALL.map(|limit| limit_field(cx, account.id, limit, state)).into(),
        amount: typed("amount"),
        amount_error: error("amount"),
        note: typed("note"),
        note_error: error("note"),
        members: members.into_iter().map(member).collect(),
        name: account.name,
        currency: account.currency,
    }
}

fn limit_field(
    cx: &Context,
    account: AccountId,
    limit: AccountLimit,
    state: &PageState,
) -> LimitField {
    let name = limit.name();
    let (value, error) = match state.account == Some(account) && state.limits_rejected {
        true => (state.form.raw(name).to_owned(), state.errors.get(name).to_owned()),
        false => {
            let value = cx.limits.override_of(account, limit).map(|value| value.to_string());
            (value.unwrap_or_default(), String::new())
        }
    };
    let default = cx.limits.default_of(limit);
    LimitField { name, label: limits::account_limit(limit), value, default, error }
}

/// Changes the limits of an account.
async fn change_limits(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<i64>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.visitor.require_operator()?;
    let (account, query) = (AccountId(id), AccountQuery::read(&form));
    let mut errors = FieldErrors::default();
    let mut changes = Vec::new();
    for limit in AccountLimit::ALL {
        let typed = form.text(limit.name());
        match typed.parse::<u32>() {
            Ok(value) => changes.push((limit, Some(value))),
            Err(_) if typed.is_empty() => changes.push((limit, None)),
            Err(_) => errors.add(limit.name(), LIMIT_ERROR),
        }
    }
    if !errors.is_empty() {
        let account = Some(account);
        let state =
            PageState { account, form, errors, limits_rejected: true, ..PageState::default() };
        return render(&app, &request, query, None, state).await;
    }
    let actor = request.visitor.operator_actor(account, &request.client.address.to_string());
    account_limits::change(&app.context, &actor, &changes).await?;
    Ok(session::redirect_with_notice(&query.url(query.after), "limited"))
}

/// Changes the balance of an account.
async fn credit(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<i64>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.visitor.require_operator()?;
    let mut errors = FieldErrors::default();
    let query = AccountQuery::read(&form);
    let key =
        form.text("idempotency_key").parse::<Uuid>().map_err(|_| PageError::invalid_form())?;
    let amount = match form.text("amount").parse::<Amount>() {
        Ok(Amount::ZERO) => Err("Enter an amount other than zero.".to_owned()),
        Ok(amount) if amount > MAX_CREDIT || amount < -MAX_CREDIT => {
            Err(format!("Enter at most {MAX_CREDIT} at a time."))
        }
        other => other.map_err(|error| sentence(&error.to_string())),
    };
    let note: Option<CreditNote> = form.parse("note", &mut errors);
    let account = AccountId(id);
    let changed = amount.as_ref().map(ToString::to_string).unwrap_or_default();
    let result = match (&amount, note) {
        (Ok(amount), Some(note)) => {
            let actor =
                request.visitor.operator_actor(account, &request.client.address.to_string());
            accounts::credit_once(&app.context, &actor, key, *amount, &note).await
        }
        _ => Ok(()),
    };
    if let Err(why) = amount {
        errors.add("amount", why);
    }
    match result {
        Err(Error::InsufficientBalance) => {
            errors.add(
                "amount",
                "Insufficient balance: the balance of an account cannot be negative.",
            );
        }
        Err(Error::IdempotencyKeyReused) => {
            errors.add("amount", RESUBMITTED);
        }
        other => other?,
    }
    if errors.is_empty() {
        let page = query.url(query.after);
        let separator = if page.contains('?') { '&' } else { '?' };
        return Ok(page::redirect(&format!("{page}{separator}credited={id}&amount={changed}")));
    }
    let state = PageState { account: Some(account), form, errors, ..PageState::default() };
    render(&app, &request, query, None, state).await
}

/// Creates a sign-in link for a member and shows it once.
async fn link(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<i64>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.visitor.require_operator()?;
    let user = form.text("user").parse::<UserId>().map_err(|_| PageError::invalid_form())?;
    let actor = request.visitor.operator_actor(AccountId(id), &request.client.address.to_string());
    let (email, token) = magic_links::create_for_member(&app.context, &actor, user).await?;
    let link = format!("{}/sign-in/{}", request.base_url, token.reveal());
    let state = PageState { link: Some((email, link)), ..PageState::default() };
    render(&app, &request, AccountQuery::read(&form), None, state).await
}

/// Ends all sessions of a member.
async fn end_sessions(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<i64>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.visitor.require_operator()?;
    let user = form.text("user").parse::<UserId>().map_err(|_| PageError::invalid_form())?;
    let actor = request.visitor.operator_actor(AccountId(id), &request.client.address.to_string());
    sessions::end_all_of_member(&app.context, &actor, user).await?;
    let query = AccountQuery::read(&form);
    Ok(session::redirect_with_notice(&query.url(query.after), "ended"))
}
