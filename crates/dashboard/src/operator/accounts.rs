//! `/operator/accounts`: accounts with their balance and members, credit, and sign-in links.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::format;
use crate::layout::{Layout, Notice};
use crate::operator::OperatorRequest;
use crate::page;
use crate::session::{SessionForm, SessionRequest};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::fields::CreditNote;
use heliograph_domain::id::{AccountId, UserId};
use heliograph_domain::money::Amount;
use heliograph_domain::wording::sentence;
use heliograph_service::identity::accounts::{self, Member};
use heliograph_service::identity::magic_links;
use heliograph_service::kernel::error::Error;
use std::sync::Arc;
use uuid::Uuid;

/// Accounts per page.
const PAGE_SIZE: usize = 25;
/// The longest search text: the longest email address.
const SEARCH_LIMIT: usize = 254;
const HERE: &str = "/operator/accounts";
const RESUBMITTED: &str = "This form was already submitted with another amount. Check the \
                           balance, then submit it again.";

pub(super) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route(HERE, get(show))
        .route("/operator/accounts/{id}/credit", post(credit))
        .route("/operator/accounts/{id}/link", post(link))
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
    let state = PageState { credited, ..PageState::default() };
    render(&app, &request, query, state).await
}

async fn render(
    app: &DashboardState,
    request: &SessionRequest,
    query: AccountQuery,
    state: PageState,
) -> Result<Response, PageError> {
    let cx = &app.context;
    let look = i64::try_from(PAGE_SIZE + 1).unwrap_or(i64::MAX);
    let mut all = accounts::page(cx, &query.search, AccountId(query.after), look).await?;
    let more = all.len() > PAGE_SIZE;
    all.truncate(PAGE_SIZE);
    let last = all.last().filter(|_| more).map(|(last, _)| last.id.0);
    let notice = state.credited.and_then(|(id, amount)| {
        let (account, _) = all.iter().find(|(account, _)| account.id == id)?;
        Some(credit_notice(account, amount))
    });
    let layout = Layout { notice, ..request.layout(app, "accounts", "Accounts").await? };
    let status =
        if state.errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let accounts = all.into_iter().map(|found| account(found, &state, cx.next_id().0));
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
    (account, members): (accounts::Account, Vec<Member>),
    state: &PageState,
    idempotency_key: Uuid,
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
        idempotency_key,
        amount: typed("amount"),
        amount_error: error("amount"),
        note: typed("note"),
        note_error: error("note"),
        members: members.into_iter().map(member).collect(),
        name: account.name,
        currency: account.currency,
    }
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
    render(&app, &request, query, state).await
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
    render(&app, &request, AccountQuery::read(&form), state).await
}
