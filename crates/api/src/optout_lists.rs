//! `/v1/optout-lists`: opt-out lists and their numbers.

mod view;

use crate::auth;
use crate::body;
use crate::error::Problem;
use crate::error::code::ProblemCode;
use crate::idempotency::{self, StoredResponse};
use crate::openapi::document::OPTOUTS;
use crate::openapi::input_types::PhoneNumberInput;
use crate::openapi::operation::Operation;
use crate::openapi::routes::ApiRoutes;
pub use crate::optout_lists::view::OptoutView;
use crate::optout_lists::view::{OptoutImportView, OptoutListView, RowErrorView};
use crate::query::{self, PageParams};
use crate::request::{self, request};
use crate::response::json;
use crate::state::ApiState;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use heliograph_domain::account::Scope;
use heliograph_domain::fields::{ListName, Note};
use heliograph_domain::id::OptoutListId;
use heliograph_domain::optout::{DEFAULT_LIST, Optout, OptoutList};
use heliograph_domain::phone::Recipient;
use heliograph_service::audience::number_file::{self, ParsedNumbers};
use heliograph_service::audience::optouts::{self, NewOptout, OptoutImport, OptoutListRef};
use heliograph_service::kernel::idempotency::{
    IdempotentRequest, OPTOUT_IMPORT, OPTOUT_LISTS, OPTOUT_NUMBERS,
};
use serde_json::json;
use std::sync::Arc;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use uuid::Uuid;

const BODY_LIMIT: usize = 1 << 20;
const IMPORT_LIMIT: usize = 16 << 20;

type IdPath = Result<Path<String>, PathRejection>;
type NumberPath = Result<Path<(String, String)>, PathRejection>;

const LISTS: &str = "/v1/optout-lists";
const LIST: &str = "/v1/optout-lists/{id}";
const NUMBERS: &str = "/v1/optout-lists/{id}/numbers";
const NUMBER: &str = "/v1/optout-lists/{id}/numbers/{number}";
const IMPORT: &str = "/v1/optout-lists/{id}/numbers/import";

pub(crate) fn routes() -> ApiRoutes {
    let read = |operation: Operation| operation.tag(OPTOUTS).scope(Scope::Read);
    let manage = |operation: Operation| operation.tag(OPTOUTS).scope(Scope::Manage);
    ApiRoutes::default()
        .add(read(lists_operation()), lists)
        .add(manage(create_operation()), create)
        .add(read(show_operation()), show)
        .add(manage(rename_operation()), rename)
        .add(manage(delete_list_operation()), delete_list)
        .add(read(numbers_operation()), numbers)
        .add(manage(add_operation()), add)
        .add(manage(import_operation()), import)
        .add(read(number_operation()), number)
        .add(manage(remove_operation()), remove)
}

fn with_list(operation: Operation) -> Operation {
    operation.path_param(
        "id",
        "The id of the list, or `default` for the default list of the account.",
        text(),
    )
}

fn with_number(operation: Operation) -> Operation {
    let number = "The phone number in international format; the plus is optional.";
    with_list(operation).path_param("number", number, text())
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn lists_operation() -> Operation {
    Operation::get(LISTS, "listOptoutLists", "List opt-out lists")
        .description(
            "Returns the opt-out lists of the account, oldest first. The first one is the default \
             list, which every account has.",
        )
        .page_response(&OptoutListView::sample())
}

async fn lists(
    State(app): State<Arc<ApiState>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    let page: PageParams<OptoutListId> = PageParams::parse(&uri)?;
    let after = page.after.unwrap_or(OptoutListId(Uuid::nil()));
    let found = optouts::lists(&app.context, &caller, after, page.fetch_limit()).await?;
    Ok(page.respond(&found, |l| l.id, OptoutListView::new))
}

request! {
    /// An opt-out list to create.
    #[schema(as = NewOptoutList)]
    struct NewListBody {
        #[schema(inline)]
        name: ListName,
    }
}

fn create_operation() -> Operation {
    Operation::post(LISTS, "createOptoutList", "Create an opt-out list")
        .description(
            "Creates an empty list. An account can have up to 1,000 opt-out lists in each mode, each \
             with a different name.",
        )
        .json_body::<NewListBody>(&[("minimal", json!({ "name": "Newsletter" }))])
        .response(StatusCode::CREATED, "The created list.", &OptoutListView::sample())
        .response_header("Location")
        .idempotent()
        .problems(&[ProblemCode::Conflict])
}

async fn create(State(app): State<Arc<ApiState>>, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::authenticate(&app, &head.headers).await?;
    query::require_empty(&head.uri)?;
    let bytes = body::read_json(&caller, &head.headers, body, BODY_LIMIT).await?;
    let NewListBody { name } = request::parse(&bytes)?;
    let key = idempotency::read_key(&head.headers, &bytes)?;
    let reply = |list: &OptoutList| {
        let address = format!("/v1/optout-lists/{}", list.id);
        StoredResponse::new(StatusCode::CREATED, Some(address), &OptoutListView::new(list))
    };
    let keep = |list: &OptoutList| reply(list).serialize();
    let idempotent = IdempotentRequest::new(&caller, OPTOUT_LISTS, "", key, &keep);
    let done = optouts::create_list(&app.context, &caller, name, idempotent).await?;
    Ok(idempotency::respond(done, reply))
}

fn show_operation() -> Operation {
    with_list(Operation::get(LIST, "getOptoutList", "Get an opt-out list")).response(
        StatusCode::OK,
        "The list.",
        &OptoutListView::sample(),
    )
}

async fn show(
    State(app): State<Arc<ApiState>>,
    id: IdPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    query::require_empty(&uri)?;
    let found = optouts::list(&app.context, &caller, which(id)?).await?;
    Ok(json(StatusCode::OK, &OptoutListView::new(&found)))
}

request! {
    /// The changes of an opt-out list.
    #[schema(as = OptoutListChanges)]
    struct ListChangesBody {
        #[schema(inline)]
        name: ListName,
    }
}

fn rename_operation() -> Operation {
    with_list(Operation::patch(LIST, "updateOptoutList", "Rename an opt-out list"))
        .description(
            "Changes the name of a list. No other list of the account can have this name in the \
             same mode, and the default list cannot be renamed.",
        )
        .json_body::<ListChangesBody>(&[("minimal", json!({ "name": "Weekly newsletter" }))])
        .response(StatusCode::OK, "The list with its new name.", &OptoutListView::sample())
        .problems(&[ProblemCode::Conflict])
}

async fn rename(
    State(app): State<Arc<ApiState>>,
    id: IdPath,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::authenticate(&app, &head.headers).await?;
    query::require_empty(&head.uri)?;
    let bytes = body::read_json(&caller, &head.headers, body, BODY_LIMIT).await?;
    let ListChangesBody { name } = request::parse(&bytes)?;
    let list = optouts::rename_list(&app.context, &caller, which(id)?, name).await?;
    Ok(json(StatusCode::OK, &OptoutListView::new(&list)))
}

fn delete_list_operation() -> Operation {
    with_list(Operation::delete(LIST, "deleteOptoutList", "Delete an opt-out list"))
        .description("Deletes a list with all its numbers. The default list cannot be deleted.")
        .empty_response(StatusCode::NO_CONTENT, "The list was deleted.")
        .problems(&[ProblemCode::Conflict])
}

async fn delete_list(
    State(app): State<Arc<ApiState>>,
    id: IdPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    query::require_empty(&uri)?;
    optouts::remove_list(&app.context, &caller, which(id)?, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn numbers_operation() -> Operation {
    with_list(Operation::get(NUMBERS, "listOptouts", "List numbers on an opt-out list"))
        .description("Returns the numbers in ascending order, each with the source of its opt-out.")
        .page_response(&OptoutView::sample())
}

async fn numbers(
    State(app): State<Arc<ApiState>>,
    id: IdPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    let page: PageParams<u64> = PageParams::parse(&uri)?;
    let after = Recipient(page.after.unwrap_or(0));
    let found =
        optouts::numbers(&app.context, &caller, which(id)?, after, page.fetch_limit()).await?;
    Ok(page.respond(&found, |o| o.number.0, OptoutView::new))
}

fn number_operation() -> Operation {
    with_number(Operation::get(NUMBER, "getOptout", "Get a number on a list"))
        .description(
            "Returns a number with the source of its opt-out, or 404 if the number is not \
                      on the list.",
        )
        .response(StatusCode::OK, "The number.", &OptoutView::sample())
}

async fn number(
    State(app): State<Arc<ApiState>>,
    path: NumberPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    query::require_empty(&uri)?;
    let (which, number) = which_number(path)?;
    let found = optouts::number(&app.context, &caller, which, number).await?;
    Ok(json(StatusCode::OK, &OptoutView::new(&found)))
}

fn remove_operation() -> Operation {
    with_number(Operation::delete(NUMBER, "deleteOptout", "Remove a number from a list"))
        .description("Removes a number, together with the record of its opt-out.")
        .empty_response(StatusCode::NO_CONTENT, "The number was removed.")
}

async fn remove(
    State(app): State<Arc<ApiState>>,
    path: NumberPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    query::require_empty(&uri)?;
    let (which, number) = which_number(path)?;
    optouts::remove(&app.context, &caller, which, number, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

request! {
    /// A number to add to an opt-out list.
    #[schema(as = NewOptout)]
    struct NewOptoutBody {
        #[schema(value_type = PhoneNumberInput)]
        number: Recipient,
        #[schema(inline)]
        note: Option<Note>,
    }
}

fn add_operation() -> Operation {
    let body = json!({ "number": "+447700900123", "note": "requested by phone" });
    with_list(Operation::post(NUMBERS, "addOptout", "Add a number to a list"))
        .description(
            "Adds a number. A number that is already on the list keeps its original record.",
        )
        .json_body::<NewOptoutBody>(&[("with a note", body)])
        .response(StatusCode::OK, "The number was already on the list.", &OptoutView::sample())
        .response(StatusCode::CREATED, "The number was added.", &OptoutView::sample())
        .response_header("Location")
        .idempotent()
        .problems(&[ProblemCode::Conflict])
}

async fn add(
    State(app): State<Arc<ApiState>>,
    id: IdPath,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::authenticate(&app, &head.headers).await?;
    query::require_empty(&head.uri)?;
    let bytes = body::read_json(&caller, &head.headers, body, BODY_LIMIT).await?;
    let NewOptoutBody { number, note } = request::parse(&bytes)?;
    let key = idempotency::read_key(&head.headers, &bytes)?;
    let path = head.uri.path();
    let reply = |(optout, is_new): &(Optout, bool)| match is_new {
        true => {
            let address = format!("{path}/{number}");
            StoredResponse::new(StatusCode::CREATED, Some(address), &OptoutView::new(optout))
        }
        false => StoredResponse::new(StatusCode::OK, None, &OptoutView::new(optout)),
    };
    let keep = |done: &(Optout, bool)| reply(done).serialize();
    let idempotent = IdempotentRequest::new(&caller, OPTOUT_NUMBERS, path, key, &keep);
    let new = NewOptout { number, note };
    let done = optouts::add(&app.context, &caller, which(id)?, new, idempotent).await?;
    Ok(idempotency::respond(done, reply))
}

fn import_operation() -> Operation {
    with_list(Operation::post(IMPORT, "importOptouts", "Import numbers into a list"))
        .description(
            "Adds the numbers of a CSV file (UTF-8, up to 16 MiB). The header row must contain the \
             column `number`; the column `note` is optional, and other columns are ignored. \
             Invalid rows are skipped: all are counted, and the first 1,000 are reported. \
             Importing the same file again is safe.",
        )
        .csv_body("number,note\n+447700900123,requested by phone\n447700900124,\n12,\n")
        .response(StatusCode::OK, "The result of the import.", &OptoutImportView::sample())
        .idempotent()
        .problems(&[ProblemCode::Conflict])
}

async fn import(
    State(app): State<Arc<ApiState>>,
    id: IdPath,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::authenticate(&app, &head.headers).await?;
    query::require_empty(&head.uri)?;
    let bytes = body::read_as("text/csv", &caller, &head.headers, body, IMPORT_LIMIT).await?;
    let key = idempotency::read_key(&head.headers, &bytes)?;
    let ParsedNumbers { numbers, invalid, errors } = number_file::parse_strict(&bytes)
        .map_err(|error| Problem::invalid(error.to_string(), Vec::new()))?;
    let errors: Vec<_> = errors.into_iter().map(RowErrorView::from).collect();
    let valid = numbers.len();
    let reply = |added: &usize| {
        let (added, already_listed) = (*added, valid - added);
        let errors = errors.clone();
        StoredResponse::new(
            StatusCode::OK,
            None,
            &OptoutImportView { added, already_listed, invalid, errors },
        )
    };
    let keep = |added: &usize| reply(added).serialize();
    let idempotent = IdempotentRequest::new(&caller, OPTOUT_IMPORT, head.uri.path(), key, &keep);
    let import = OptoutImport { numbers, by: None };
    let done = optouts::import(&app.context, &caller, which(id)?, import, idempotent).await?;
    Ok(idempotency::respond(done, reply))
}

/// Parses the id of a list, or the word `default`.
fn which(id: IdPath) -> Result<OptoutListRef, Problem> {
    let Path(id) = id.map_err(|_| Problem::not_found())?;
    which_of(&id)
}

fn which_of(id: &str) -> Result<OptoutListRef, Problem> {
    match id {
        DEFAULT_LIST => Ok(OptoutListRef::Default),
        id => id.parse().map(OptoutListRef::Id).map_err(|_| Problem::not_found()),
    }
}

fn which_number(path: NumberPath) -> Result<(OptoutListRef, Recipient), Problem> {
    let Path((id, number)) = path.map_err(|_| Problem::not_found())?;
    let number = number.parse().map_err(|_| Problem::not_found())?;
    Ok((which_of(&id)?, number))
}
