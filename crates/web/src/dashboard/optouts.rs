//! Opt-outs: the lists of those who are not written to, and what a person does with them.

mod export;
mod upload;
mod view;

use crate::app::App;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::{self, Posted, Visit};
use crate::import;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::id::OptoutListId;
use heliograph_domain::phone::Recipient;
use heliograph_service::once::{Answer, Asked, OPTOUT_IMPORT, OPTOUT_LISTS, OPTOUT_NUMBERS, Once};
use heliograph_service::optouts::{self, Which};
use std::sync::Arc;
use upload::{LONGEST, Uploaded};
use uuid::Uuid;
use view::{Extra, Looked};

const NAME_LIMIT: usize = 100;
/// Lines of a file of which it is shown what is wrong.
const LINES: usize = 20;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/optouts", get(standard).post(make))
        .route("/optouts/{list}", get(show))
        .route("/optouts/{list}/export", get(export::export))
        .route("/optouts/{list}/add", post(add))
        .route("/optouts/{list}/remove", post(remove))
        .route("/optouts/{list}/delete", post(delete))
        .route("/optouts/{list}/import", post(import).layer(DefaultBodyLimit::max(LONGEST)))
}

/// The list that an address names.
fn which(list: &str) -> Result<Which, Refusal> {
    list.parse().map(|id: OptoutListId| Which::Id(id)).map_err(|_| Refusal::not_found())
}

fn place(list: OptoutListId) -> String {
    format!("/optouts/{list}")
}

async fn standard(
    State(app): State<Arc<App>>,
    visit: Visit,
    uri: Uri,
) -> Result<Response, Refusal> {
    view::show(&app, &visit, Which::Standard, &Looked::read(&uri), Extra::told(&uri)).await
}

async fn show(
    State(app): State<Arc<App>>,
    visit: Visit,
    Path(list): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    view::show(&app, &visit, which(&list)?, &Looked::read(&uri), Extra::told(&uri)).await
}

/// Makes a list.
async fn make(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    let mut faults = Faults::default();
    let name = form.text("name").to_owned();
    if !(1..=NAME_LIMIT).contains(&name.chars().count()) || name.chars().any(char::is_control) {
        faults.add("name", format!("A name has 1 to {NAME_LIMIT} printable characters."));
        return again(&app, &visit, Which::Standard, form, faults).await;
    }
    let once = form.text("once").parse::<Uuid>().map_err(|_| Refusal::bad_form())?;
    let once = Once { key: format!("page {once}"), fingerprint: [0; 32] };
    let keep = |made: &heliograph_domain::optout::OptoutList| made.id.to_string();
    let caller = visit.caller();
    let asked = Asked::new(&caller, (OPTOUT_LISTS, ""), Some(once), &keep);
    let made = match optouts::make(&app.context, &caller, name, asked).await? {
        Answer::Now(made) => made.id.to_string(),
        Answer::Before(made) => made,
    };
    Ok(visit::done(&format!("/optouts/{made}"), "made"))
}

async fn again(
    app: &App,
    visit: &Visit,
    which: Which,
    form: Form,
    faults: Faults,
) -> Result<Response, Refusal> {
    let extra = Extra { form, faults, ..Extra::default() };
    view::show(app, visit, which, &Looked::default(), extra).await
}

/// Puts a number on a list.
async fn add(
    State(app): State<Arc<App>>,
    Path(list): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    let which = which(&list)?;
    let number = match form.text("number").parse::<Recipient>() {
        Ok(number) => number,
        Err(error) => {
            let mut faults = Faults::default();
            faults.add("number", error.to_string());
            return again(&app, &visit, which, form, faults).await;
        }
    };
    let caller = visit.caller();
    let note = format!("Added by {}", visit.visitor.signed.email);
    let keep = |_: &_| String::new();
    let asked = Asked::new(&caller, (OPTOUT_NUMBERS, ""), None, &keep);
    let wish = (number, Some(note));
    let new = match optouts::add_one(&app.context, &caller, which, wish, asked).await? {
        Answer::Now((_, new)) => new,
        Answer::Before(_) => false,
    };
    Ok(visit::done(&format!("/optouts/{list}"), if new { "added" } else { "there" }))
}

/// Takes a number off a list.
async fn remove(
    State(app): State<Arc<App>>,
    Path(list): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    let number = form.text("number").parse::<Recipient>().map_err(|_| Refusal::bad_form())?;
    let (which, actor) = (which(&list)?, visit.actor());
    optouts::remove(&app.context, &visit.caller(), which, number, Some(&actor)).await?;
    Ok(visit::done(&format!("/optouts/{list}"), "removed"))
}

/// Removes a list with everyone on it.
async fn delete(
    State(app): State<Arc<App>>,
    Path(list): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let visit = posted.visit;
    let (which, actor) = (which(&list)?, visit.actor());
    optouts::remove_list(&app.context, &visit.caller(), which, Some(&actor)).await?;
    Ok(visit::done("/optouts", "deleted"))
}

/// Puts all numbers of a file, or of a field, on a list.
async fn import(
    State(app): State<Arc<App>>,
    Path(list): Path<String>,
    uploaded: Uploaded,
) -> Result<Response, Refusal> {
    let Uploaded { visit, typed, file } = uploaded;
    let (which, caller) = (which(&list)?, visit.caller());
    let text = if file.is_empty() { typed.trim().as_bytes() } else { &file };
    let mut extra = Extra { typed: typed.clone(), ..Extra::default() };
    match import::loose(text) {
        Err(problem) => extra.faults.add("numbers", problem.detail().to_owned()),
        Ok(read) if read.numbers.is_empty() && read.invalid == 0 => {
            extra.faults.add("numbers", "There is no number in it.");
        }
        Ok(read) => {
            let good = read.numbers.len();
            let keep = |_: &_| String::new();
            let asked = Asked::new(&caller, (OPTOUT_IMPORT, ""), None, &keep);
            let numbers = read.numbers;
            let added = match optouts::import(&app.context, &caller, which, numbers, asked).await? {
                Answer::Now(added) => added,
                Answer::Before(_) => 0,
            };
            extra.imported(added, good - added, read.invalid);
            extra.lines = read.errors.iter().take(LINES).map(import::RowError::line).collect();
            // What could be used is done; what could not is there to be mended.
            extra.typed = String::new();
        }
    }
    view::show(&app, &visit, which, &Looked::default(), extra).await
}
