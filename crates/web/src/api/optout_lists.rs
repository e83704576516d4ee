//! `/v1/optout-lists` and the numbers on them.

mod view;

use crate::api::optout_lists::view::{Imported, ListView, NumberView};
use crate::app::App;
use crate::auth;
use crate::body::{self, Fields};
use crate::error::Problem;
use crate::error::code::Code;
use crate::error::fault::FaultCode;
use crate::import;
use crate::once::{self, Reply};
use crate::openapi::document::OPTOUTS;
use crate::openapi::operation::Operation;
use crate::openapi::routes::Routes;
use crate::openapi::written::WrittenNumber;
use crate::query::{self, Page};
use crate::view::json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use heliograph_domain::account::Scope;
use heliograph_domain::id::OptoutListId;
use heliograph_domain::optout::{Optout, OptoutList, STANDARD};
use heliograph_domain::phone::Recipient;
use heliograph_service::once::{Asked, OPTOUT_IMPORT, OPTOUT_LISTS, OPTOUT_NUMBERS};
use heliograph_service::optouts::{self, Which};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use uuid::Uuid;

const BODY_LIMIT: usize = 1 << 20;
const IMPORT_LIMIT: usize = 16 << 20;
const NAME_LIMIT: usize = 100;
const NOTE_LIMIT: usize = 255;

type One = Result<Path<String>, PathRejection>;
type Two = Result<Path<(String, String)>, PathRejection>;

const LISTS: &str = "/v1/optout-lists";
const LIST: &str = "/v1/optout-lists/{id}";
const NUMBERS: &str = "/v1/optout-lists/{id}/numbers";
const NUMBER: &str = "/v1/optout-lists/{id}/numbers/{number}";
const IMPORT: &str = "/v1/optout-lists/{id}/numbers/import";

pub(crate) fn routes() -> Routes {
    let read = |operation: Operation| operation.tag(OPTOUTS).scope(Scope::Read);
    let manage = |operation: Operation| operation.tag(OPTOUTS).scope(Scope::Manage);
    Routes::default()
        .add(read(about_lists()), lists)
        .add(manage(about_make()), make)
        .add(read(about_show()), show)
        .add(manage(about_remove_list()), remove_list)
        .add(read(about_numbers()), numbers_of)
        .add(manage(about_add()), add)
        .add(manage(about_import()), import)
        .add(read(about_number()), number)
        .add(manage(about_remove()), remove)
}

fn of_list(operation: Operation) -> Operation {
    operation.part("id", "The id of the list, or `default` for the account's default list.", text())
}

fn of_number(operation: Operation) -> Operation {
    let number = "The number, with its country code; a plus in front may be left out.";
    of_list(operation).part("number", number, text())
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn about_lists() -> Operation {
    Operation::get(LISTS, "listOptoutLists", "Lists the opt-out lists")
        .describe(
            "The oldest first; the first of them is the default list, which every account has.",
        )
        .answers_page(&ListView::sample())
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

// What `make` reads.
/// An opt-out list to be made.
#[derive(ToSchema)]
#[schema(as = NewOptoutList)]
#[expect(dead_code, reason = "it documents what is read field by field")]
struct NewList {
    /// What you call it. It must not be blank.
    #[schema(min_length = 1, max_length = 100)]
    #[schema(pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x1f\x7f-\x9f\s][^\x00-\x1f\x7f-\x9f]*$")]
    name: String,
}

fn about_make() -> Operation {
    Operation::post(LISTS, "createOptoutList", "Makes an opt-out list")
        .describe("An account can have 1,000 of them in each mode.")
        .takes::<NewList>(&[("a list", json!({ "name": "Newsletter" }))])
        .answers(StatusCode::CREATED, "The list.", &ListView::sample())
        .header("Location")
        .idempotent()
        .problems(&[Code::Conflict])
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

fn about_show() -> Operation {
    of_list(Operation::get(LIST, "getOptoutList", "Shows an opt-out list")).answers(
        StatusCode::OK,
        "The list.",
        &ListView::sample(),
    )
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

fn about_remove_list() -> Operation {
    of_list(Operation::delete(LIST, "deleteOptoutList", "Removes an opt-out list"))
        .describe("With everyone on it. The default list can't be removed.")
        .answers_nothing(StatusCode::NO_CONTENT, "It is gone.")
        .problems(&[Code::Conflict])
}

async fn remove_list(
    State(app): State<Arc<App>>,
    id: One,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    optouts::remove_list(&app.context, &caller, which(id)?, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn about_numbers() -> Operation {
    of_list(Operation::get(NUMBERS, "listOptouts", "Lists the numbers on an opt-out list"))
        .describe("In the order of the numbers, each with the evidence of how it came there.")
        .answers_page(&NumberView::sample())
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

fn about_number() -> Operation {
    of_number(Operation::get(NUMBER, "getOptout", "Shows a number on an opt-out list"))
        .describe("404 when it is not on the list.")
        .answers(StatusCode::OK, "The number, with the evidence.", &NumberView::sample())
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

fn about_remove() -> Operation {
    of_number(Operation::delete(NUMBER, "deleteOptout", "Takes a number off an opt-out list"))
        .describe("Its evidence is lost.")
        .answers_nothing(StatusCode::NO_CONTENT, "It is off the list.")
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
    optouts::remove(&app.context, &caller, which, number, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

// What `add` reads.
/// A number to be put on a list.
#[derive(ToSchema)]
#[schema(as = NewOptout)]
#[expect(dead_code, reason = "it documents what is read field by field")]
struct NewNumber {
    #[schema(value_type = WrittenNumber)]
    number: String,
    /// What you want to remember about it.
    #[schema(max_length = 255, pattern = r"^[^\x00]*$")]
    note: Option<String>,
}

fn about_add() -> Operation {
    let body = json!({ "number": "+447700900123", "note": "asked by telephone" });
    of_list(Operation::post(NUMBERS, "addOptout", "Puts a number on an opt-out list"))
        .describe("A number that is on it already keeps its first evidence.")
        .takes::<NewNumber>(&[("a number", body)])
        .answers(StatusCode::OK, "It was on the list already.", &NumberView::sample())
        .answers(StatusCode::CREATED, "It is on the list now.", &NumberView::sample())
        .header("Location")
        .idempotent()
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
        true => {
            let address = format!("{place}/{number}");
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

fn about_import() -> Operation {
    of_list(Operation::post(IMPORT, "importOptouts", "Puts the numbers of a file on an opt-out list"))
        .describe(
            "A CSV file in UTF-8, of at most 16 MiB. Its first line names the columns: `number`, and `note` if there is \
             one; others are passed over. A bad row does not spoil the others: all are counted, the first 1,000 \
             described. Importing the same file again does no harm.",
        )
        .takes_csv("number,note\n+447700900123,asked by telephone\n447700900124,\n12,\n")
        .answers(StatusCode::OK, "What became of the rows.", &Imported::sample())
        .idempotent()
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
        let errors = errors.clone();
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
