//! `/v1/optout-lists` and the numbers on them.

use crate::app::App;
use crate::auth;
use crate::body::{self, Fields};
use crate::error::Problem;
use crate::error::fault::FaultCode;
use crate::import;
use crate::once::{self, Reply};
use crate::query::{self, Page};
use crate::view::{json, shown, shown_if};
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use heliograph_domain::id::{InboundId, OptoutListId};
use heliograph_domain::optout::{Optout, OptoutList, STANDARD};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_service::once::{Asked, OPTOUT_IMPORT, OPTOUT_LISTS, OPTOUT_NUMBERS};
use heliograph_service::optouts::{self, Which};
use serde::Serialize;
use std::sync::Arc;
use uuid::Uuid;

const BODY_LIMIT: usize = 1 << 20;
const IMPORT_LIMIT: usize = 16 << 20;
const NAME_LIMIT: usize = 100;
const NOTE_LIMIT: usize = 255;

type One = Result<Path<String>, PathRejection>;
type Two = Result<Path<(String, String)>, PathRejection>;

pub(crate) fn routes() -> Router<Arc<App>> {
    let numbers = "/optout-lists/{id}/numbers";
    Router::new()
        .route("/optout-lists", get(lists).post(make))
        .route("/optout-lists/{id}", get(show).delete(remove_list))
        .route(numbers, get(numbers_of).post(add))
        .route("/optout-lists/{id}/numbers/import", post(import))
        .route("/optout-lists/{id}/numbers/{number}", get(number).delete(remove))
}

async fn lists(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    let page: Page<OptoutListId> = Page::read(&uri)?;
    let after = page.after.unwrap_or(OptoutListId(Uuid::nil()));
    let found = optouts::lists(&app.context, &caller, after, page.look()).await?;
    Ok(page.answer(&found, |l| l.id, ListView::of))
}

async fn make(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::reader(&app, &head.headers).await?;
    query::none(&head.uri)?;
    let bytes = body::read(&head.headers, body, BODY_LIMIT).await?;
    let mut fields = Fields::parse(&bytes)?;
    let name = fields.required_text("name").map(|n| n.trim().to_owned());
    if let Some(name) = &name {
        let good = (1..=NAME_LIMIT).contains(&name.chars().count());
        if !good || name.chars().any(char::is_control) {
            let detail = format!("This must be 1 to {NAME_LIMIT} printable characters.");
            fields.fault("name", FaultCode::InvalidName, detail);
        }
    }
    fields.end()?;
    let once = once::read(&head.headers, &bytes)?;
    let reply = |made: &OptoutList| {
        let address = format!("/v1/optout-lists/{}", made.id);
        Reply::new(StatusCode::CREATED, Some(address), &ListView::of(made))
    };
    let keep = |made: &OptoutList| reply(made).kept();
    let asked = Asked::new(&caller, (OPTOUT_LISTS, ""), once, &keep);
    let done = optouts::make(&app.context, &caller, name.unwrap_or_default(), asked).await?;
    Ok(once::answer(done, reply))
}

async fn show(
    State(app): State<Arc<App>>,
    id: One,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    let found = optouts::list(&app.context, &caller, which(id)?).await?;
    Ok(json(StatusCode::OK, &ListView::of(&found)))
}

async fn remove_list(
    State(app): State<Arc<App>>,
    id: One,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    optouts::remove_list(&app.context, &caller, which(id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn numbers_of(
    State(app): State<Arc<App>>,
    id: One,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    let page: Page<u64> = Page::read(&uri)?;
    let part = (Recipient(page.after.unwrap_or(0)), page.look());
    let found = optouts::numbers(&app.context, &caller, which(id)?, part).await?;
    Ok(page.answer(&found, |o| o.number.0, NumberView::of))
}

async fn number(
    State(app): State<Arc<App>>,
    path: Two,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    let (which, number) = which_number(path)?;
    let found = optouts::number(&app.context, &caller, which, number).await?;
    Ok(json(StatusCode::OK, &NumberView::of(&found)))
}

async fn remove(
    State(app): State<Arc<App>>,
    path: Two,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    let (which, number) = which_number(path)?;
    optouts::remove(&app.context, &caller, which, number).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn add(State(app): State<Arc<App>>, id: One, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::reader(&app, &head.headers).await?;
    query::none(&head.uri)?;
    let bytes = body::read(&head.headers, body, BODY_LIMIT).await?;
    let mut fields = Fields::parse(&bytes)?;
    let number: Option<Recipient> = fields.required("number", FaultCode::InvalidNumber);
    let note = fields.text("note").map(std::borrow::Cow::into_owned);
    if note.as_ref().is_some_and(|n| n.chars().count() > NOTE_LIMIT) {
        fields.fault(
            "note",
            FaultCode::TooLong,
            format!("This must be at most {NOTE_LIMIT} characters."),
        );
    }
    fields.end()?;
    // Without a fault, it is there.
    let number = number.ok_or_else(|| Problem::invalid("The number is missing.", Vec::new()))?;
    let once = once::read(&head.headers, &bytes)?;
    let place = head.uri.path();
    let reply = |(there, new): &(Optout, bool)| match new {
        // What stands before the router's own part of the path is not in it.
        true => {
            let address = format!("/v1{place}/{number}");
            Reply::new(StatusCode::CREATED, Some(address), &NumberView::of(there))
        }
        false => Reply::new(StatusCode::OK, None, &NumberView::of(there)),
    };
    let keep = |done: &(Optout, bool)| reply(done).kept();
    let asked = Asked::new(&caller, (OPTOUT_NUMBERS, place), once, &keep);
    let (which, wish) = (which(id)?, (number, note));
    let done = optouts::add_one(&app.context, &caller, which, wish, asked).await?;
    Ok(once::answer(done, reply))
}

async fn import(
    State(app): State<Arc<App>>,
    id: One,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::reader(&app, &head.headers).await?;
    query::none(&head.uri)?;
    let bytes = body::read_as("text/csv", &head.headers, body, IMPORT_LIMIT).await?;
    let once = once::read(&head.headers, &bytes)?;
    let import::Numbers { numbers, invalid, errors } = import::numbers(&bytes)?;
    let good = numbers.len();
    let reply = |added: &usize| {
        let (added, already_listed) = (*added, good - added);
        let errors = &*errors;
        Reply::new(StatusCode::OK, None, &Imported { added, already_listed, invalid, errors })
    };
    let keep = |added: &usize| reply(added).kept();
    let asked = Asked::new(&caller, (OPTOUT_IMPORT, head.uri.path()), once, &keep);
    let done = optouts::import(&app.context, &caller, which(id)?, numbers, asked).await?;
    Ok(once::answer(done, reply))
}

/// A list by its id, or by the word `default`.
fn which(id: One) -> Result<Which, Problem> {
    let Path(id) = id.map_err(|_| Problem::not_found())?;
    which_of(&id)
}

fn which_of(id: &str) -> Result<Which, Problem> {
    match id {
        STANDARD => Ok(Which::Standard),
        id => id.parse().map(Which::Id).map_err(|_| Problem::not_found()),
    }
}

fn which_number(path: Two) -> Result<(Which, Recipient), Problem> {
    let Path((id, number)) = path.map_err(|_| Problem::not_found())?;
    let number = number.parse().map_err(|_| Problem::not_found())?;
    Ok((which_of(&id)?, number))
}

/// A list as the API shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListView {
    #[serde(serialize_with = "shown")]
    id: OptoutListId,
    name: String,
    default: bool,
    mode: &'static str,
    #[serde(serialize_with = "shown")]
    created_at: Timestamp,
}

impl ListView {
    fn of(l: &OptoutList) -> Self {
        Self {
            id: l.id,
            name: l.name.clone(),
            default: l.standard,
            mode: l.mode.name(),
            created_at: l.created_at,
        }
    }
}

/// A number on a list, with the evidence.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NumberView {
    #[serde(serialize_with = "shown")]
    number: Recipient,
    source: &'static str,
    #[serde(serialize_with = "shown_if")]
    inbound_message_id: Option<InboundId>,
    originator: Option<String>,
    note: Option<String>,
    #[serde(serialize_with = "shown")]
    created_at: Timestamp,
}

impl NumberView {
    fn of(o: &Optout) -> Self {
        Self {
            number: o.number,
            source: o.source.name(),
            inbound_message_id: o.message,
            originator: o.originator.clone(),
            note: o.note.clone(),
            created_at: o.at,
        }
    }
}

/// What became of a file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Imported<'a> {
    added: usize,
    already_listed: usize,
    invalid: usize,
    errors: &'a [import::RowError],
}
