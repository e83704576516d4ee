//! How a list looks, with what was typed into its forms.

use crate::app::App;
use crate::dashboard::figure;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::optouts::place;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Shell};
use crate::dashboard::visit::{self, Visit};
use askama::Template;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::id::OptoutListId;
use heliograph_domain::optout::{Optout, OptoutList, Source};
use heliograph_domain::phone::Recipient;
use heliograph_service::caller::Caller;
use heliograph_service::error::Error;
use heliograph_service::optouts::{self, Which};
use uuid::Uuid;

/// Numbers on one page.
const PAGE: usize = 50;
/// Lists that can be chosen from: as many as an account may have.
const LISTS: i64 = 1_000;

/// What is done on other pages and said on this one.
const WORDS: &[(&str, &str)] = &[
    ("made", "The list is there."),
    ("added", "The number is on the list now."),
    ("there", "The number was on the list already; its first evidence stays."),
    ("removed", "The number is off the list: they can be written to again."),
    ("deleted", "The list is gone, with everyone on it."),
];

#[derive(Template)]
#[template(path = "dashboard/optouts.html")]
struct Page {
    shell: Shell,
    lists: Vec<List>,
    list: List,
    /// The number that is looked for, and what is wrong with it.
    query: String,
    query_error: String,
    entries: Vec<Entry>,
    remove_action: String,
    delete_action: String,
    first: String,
    next: String,
    form: Typed,
    /// How many lines of a file could not be used, and what is wrong with the first of them.
    left_out: String,
    lines: Vec<String>,
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

/// What was typed, and what is wrong with it.
struct Typed {
    number: String,
    number_error: String,
    numbers: String,
    numbers_error: String,
    name: String,
    name_error: String,
    /// A list that is made twice under this name is made once.
    once: Uuid,
}

/// What of a list is looked at.
#[derive(Default)]
pub(super) struct Looked {
    /// One number, as it was typed.
    number: String,
    /// Those above this one.
    after: u64,
}

impl Looked {
    pub(super) fn read(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let field = |name: &str| {
            let found = url::form_urlencoded::parse(query.as_bytes()).find(|(n, _)| n == name);
            found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        Self { number: field("number"), after: field("after").parse().unwrap_or(0) }
    }
}

/// What a page shows besides its list.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) notice: Option<Notice>,
    pub(super) form: Form,
    pub(super) faults: Faults,
    /// What was typed to be imported.
    pub(super) typed: String,
    pub(super) lines: Vec<String>,
    pub(super) left_out: String,
}

impl Extra {
    /// What was done before this page.
    pub(super) fn told(uri: &Uri) -> Self {
        Self { notice: visit::told(uri, WORDS), ..Self::default() }
    }

    /// What came of an import.
    pub(super) fn imported(&mut self, added: usize, there: usize, invalid: usize) {
        let count = |n| figure::count(i64::try_from(n).unwrap_or(i64::MAX));
        let (added, there) = (count(added), count(there));
        let text = format!("Added: {added}. On the list already: {there}.");
        self.notice = Some(Notice::good(text));
        if invalid > 0 {
            self.left_out = format!("Lines that were left out: {}.", count(invalid));
        }
    }
}

/// A list, as far as it is looked at.
pub(super) async fn show(
    app: &App,
    visit: &Visit,
    which: Which,
    looked: &Looked,
    extra: Extra,
) -> Result<Response, Refusal> {
    let (cx, caller) = (&app.context, visit.caller());
    let list = optouts::list(cx, &caller, which).await?;
    let first = OptoutListId(Uuid::nil());
    let lists = optouts::lists(cx, &caller, first, LISTS).await?;
    let (mut found, query_error) = find(app, &caller, &list, looked).await?;
    let more = found.len() > PAGE;
    found.truncate(PAGE);
    let next = found.last().filter(|_| more).map(|last| after(&list, last)).unwrap_or_default();
    let mut shell = visit.shell(app, "optouts", "Opt-outs").await?;
    shell.notice = extra.notice;
    let nonce = shell.nonce.clone();
    let wrong = !extra.faults.is_empty();
    let page = Page {
        shell,
        lists: lists.iter().map(List::new).collect(),
        query: looked.number.clone(),
        query_error,
        entries: found.iter().map(Entry::new).collect(),
        delete_action: format!("{}/delete", place(list.id)),
        remove_action: format!("{}/remove", place(list.id)),
        first: if looked.after > 0 { place(list.id) } else { String::new() },
        next,
        form: Typed {
            number: extra.form.raw("number").to_owned(),
            number_error: extra.faults.of("number").to_owned(),
            numbers: extra.typed,
            numbers_error: extra.faults.of("numbers").to_owned(),
            name: extra.form.raw("name").to_owned(),
            name_error: extra.faults.of("name").to_owned(),
            once: cx.next_id().0,
        },
        left_out: extra.left_out,
        lines: extra.lines,
        list: List::new(&list),
    };
    let status = if wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(page::html(status, &nonce, page.render()))
}

fn after(list: &OptoutList, last: &Optout) -> String {
    format!("{}?after={}", place(list.id), last.number.0)
}

/// The numbers to be shown, one more than fit if there are more, and what is wrong with the one that is looked for.
async fn find(
    app: &App,
    caller: &Caller,
    list: &OptoutList,
    looked: &Looked,
) -> Result<(Vec<Optout>, String), Refusal> {
    let (cx, which) = (&app.context, Which::Id(list.id));
    if looked.number.is_empty() {
        let limit = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
        let part = (Recipient(looked.after), limit);
        return Ok((optouts::numbers(cx, caller, which, part).await?, String::new()));
    }
    match looked.number.parse::<Recipient>() {
        Err(error) => Ok((Vec::new(), error.to_string())),
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
        let (iso, at) = figure::instant(optout.at);
        let number = optout.number.to_string();
        let note = optout.note.as_deref().unwrap_or_default();
        let (source, href) = match (optout.source, &optout.originator) {
            (Source::Reply, Some(to)) => {
                (format!("Replied STOP to {to}."), format!("/conversations/{number}"))
            }
            (Source::Reply, None) => ("Replied STOP.".to_owned(), String::new()),
            (Source::Import, _) if note.is_empty() => ("Imported".to_owned(), String::new()),
            (Source::Import, _) => (format!("Imported: {note}"), String::new()),
            (Source::Api, _) if note.is_empty() => ("Added by the API".to_owned(), String::new()),
            (Source::Api, _) => (note.to_owned(), String::new()),
        };
        Self { number, source, href, iso, at }
    }
}
