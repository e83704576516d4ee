//! The page of an opt-out list.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::format;
use crate::layout::{Layout, Notice};
use crate::optouts::list_path;
use crate::page;
use crate::session::{self, SessionRequest};
use crate::state::DashboardState;
use askama::Template;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::fields::ListName;
use heliograph_domain::id::OptoutListId;
use heliograph_domain::optout::{Optout, OptoutList, OptoutSource};
use heliograph_domain::phone::Recipient;
use heliograph_domain::wording::sentence;
use heliograph_service::audience::optouts::{self, OptoutListRef};
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::Error;
use uuid::Uuid;

/// Numbers per page.
const PAGE_SIZE: usize = 50;
/// The largest number of lists in the menu: the limit of an account.
const MAX_LISTS: i64 = 1_000;

/// Notices of previous actions.
const NOTICES: &[(&str, &str)] = &[
    ("created", "List created."),
    ("added", "Number added to the list."),
    ("exists", "This number is already on the list. Its original entry was kept."),
    ("removed", "Number removed. Messages to it are allowed again."),
    ("deleted", "List deleted, with all its numbers."),
];

#[derive(Template)]
#[template(path = "optouts.html")]
struct Page {
    layout: Layout,
    lists: Vec<List>,
    list: List,
    /// The number searched for, with its error.
    query: String,
    query_error: String,
    entries: Vec<Entry>,
    remove_action: String,
    delete_action: String,
    first: String,
    next: String,
    form: Forms,
    /// The number of invalid numbers of an import, and the errors of the first ones.
    skipped: String,
    skipped_lines: Vec<String>,
}

struct List {
    id: String,
    name: String,
    standard: bool,
}

struct Entry {
    number: String,
    source: String,
    href: String,
    iso: String,
    at: String,
}

/// The forms as typed, with their errors.
struct Forms {
    number: String,
    number_error: String,
    numbers: String,
    numbers_error: String,
    name: String,
    name_error: String,
    idempotency_key: Uuid,
}

/// The search and the page of a list, as query parameters.
#[derive(Default)]
pub(super) struct OptoutQuery {
    /// The number searched for, as typed.
    number: String,
    /// The last number of the previous page.
    after: u64,
}

impl OptoutQuery {
    pub(super) fn read(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let field = |name: &str| {
            let found = url::form_urlencoded::parse(query.as_bytes()).find(|(n, _)| n == name);
            found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        Self { number: field("number"), after: field("after").parse().unwrap_or(0) }
    }
}

/// One-time content of the page: a notice, rejected forms, the result of an import.
#[derive(Default)]
pub(super) struct OptoutFormState {
    pub(super) notice: Option<Notice>,
    pub(super) form: Form,
    pub(super) errors: FieldErrors,
    /// The numbers to import, as typed.
    pub(super) typed: String,
    pub(super) skipped_lines: Vec<String>,
    pub(super) skipped: String,
}

impl OptoutFormState {
    /// Creates it with the notice of the query.
    pub(super) fn from_uri(uri: &Uri) -> Self {
        Self { notice: session::notice_from(uri, NOTICES), ..Self::default() }
    }

    /// Sets the result of an import.
    pub(super) fn imported(&mut self, added: usize, existing: usize, invalid: usize) {
        let count = |n| format::count(i64::try_from(n).unwrap_or(i64::MAX));
        let (added, existing) = (count(added), count(existing));
        let text = format!("Numbers added: {added}. Already on the list: {existing}.");
        self.notice = Some(match invalid {
            0 => Notice::success(text),
            _ => Notice::error(format!("{text} Invalid numbers: {}; see below.", count(invalid))),
        });
        if invalid > 0 {
            self.skipped = format!("Invalid numbers that were not added: {}.", count(invalid));
        }
    }
}

/// Shows a page of a list.
pub(super) async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    which: OptoutListRef,
    query: &OptoutQuery,
    state: OptoutFormState,
) -> Result<Response, PageError> {
    let (cx, caller) = (&app.context, request.caller());
    let list = optouts::list(cx, &caller, which).await?;
    let first = OptoutListId(Uuid::nil());
    let lists = optouts::lists(cx, &caller, first, MAX_LISTS).await?;
    let (mut found, query_error) = find(app, &caller, &list, query).await?;
    let more = found.len() > PAGE_SIZE;
    found.truncate(PAGE_SIZE);
    let next = found.last().filter(|_| more).map(|last| after(&list, last)).unwrap_or_default();
    let mut layout = request.layout(app, "optouts", "Opt-outs").await?;
    layout.notice = state.notice;
    let nonce = layout.nonce.clone();
    let has_errors = !state.errors.is_empty();
    let page = Page {
        layout,
        lists: lists.iter().map(List::new).collect(),
        query: query.number.clone(),
        query_error,
        entries: found.iter().map(Entry::new).collect(),
        delete_action: format!("{}/delete", list_path(list.id)),
        remove_action: format!("{}/remove", list_path(list.id)),
        first: if query.after > 0 { list_path(list.id) } else { String::new() },
        next,
        form: Forms {
            number: state.form.raw("number").to_owned(),
            number_error: state.errors.get("number").to_owned(),
            numbers: state.typed,
            numbers_error: state.errors.get("numbers").to_owned(),
            name: state.form.raw("name").to_owned(),
            name_error: state.errors.get("name").to_owned(),
            idempotency_key: cx.next_id().0,
        },
        skipped: state.skipped,
        skipped_lines: state.skipped_lines,
        list: List::new(&list),
    };
    let status = if has_errors { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(page::html(status, &nonce, page.render()))
}

fn after(list: &OptoutList, last: &Optout) -> String {
    format!("{}?after={}", list_path(list.id), last.number.0)
}

/// Returns the numbers to show (one more than a page if there are more), and the error of the
/// search.
async fn find(
    app: &DashboardState,
    caller: &Caller,
    list: &OptoutList,
    query: &OptoutQuery,
) -> Result<(Vec<Optout>, String), PageError> {
    let (cx, which) = (&app.context, OptoutListRef::Id(list.id));
    if query.number.is_empty() {
        let limit = i64::try_from(PAGE_SIZE + 1).unwrap_or(i64::MAX);
        return Ok((
            optouts::numbers(cx, caller, which, Recipient(query.after), limit).await?,
            String::new(),
        ));
    }
    match query.number.parse::<Recipient>() {
        Err(error) => Ok((Vec::new(), sentence(&error.to_string()))),
        Ok(number) => match optouts::number(cx, caller, which, number).await {
            Ok(found) => Ok((vec![found], String::new())),
            Err(Error::NotFound) => Ok((Vec::new(), String::new())),
            Err(other) => Err(other.into()),
        },
    }
}

impl List {
    fn new(list: &OptoutList) -> Self {
        Self { id: list.id.to_string(), name: list.name.clone(), standard: list.standard }
    }
}

impl Entry {
    fn new(optout: &Optout) -> Self {
        let (iso, at) = format::date_time(optout.at);
        let number = optout.number.to_string();
        let note = optout.note.as_deref().unwrap_or_default();
        let (source, href) = match (optout.source, &optout.originator) {
            (OptoutSource::Reply, Some(to)) => {
                (format!("Replied STOP to {to}"), format!("/conversations/{number}"))
            }
            (OptoutSource::Reply, None) => ("Replied STOP".to_owned(), String::new()),
            (OptoutSource::Import, _) if note.is_empty() => ("Imported".to_owned(), String::new()),
            (OptoutSource::Import, _) => (format!("Imported: {note}"), String::new()),
            (OptoutSource::Api, _) if note.is_empty() => {
                ("Added through the API".to_owned(), String::new())
            }
            (OptoutSource::Api, _) => (note.to_owned(), String::new()),
        };
        Self { number, source, href, iso, at }
    }
}
