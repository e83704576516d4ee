//! Opt-out lists: adding, removing, importing and exporting numbers.

mod export;
mod upload;
mod view;

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::reasons;
use crate::session::{self, SessionForm, SessionRequest};
use crate::state::DashboardState;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::fields::Note;
use heliograph_domain::id::OptoutListId;
use heliograph_domain::phone::Recipient;
use heliograph_domain::wording::sentence;
use heliograph_service::audience::number_file::{self, RowError};
use heliograph_service::audience::optouts::{self, NewOptout, OptoutImport, OptoutListRef};
use heliograph_service::kernel::error::Error;
use heliograph_service::kernel::idempotency::{
    IdempotentOutcome, IdempotentRequest, OPTOUT_IMPORT, OPTOUT_LISTS, OPTOUT_NUMBERS,
};
use std::sync::Arc;
use upload::{MAX_UPLOAD_BYTES, UploadForm};
use view::{OptoutFormState, OptoutQuery};

/// The largest number of invalid lines shown after an import.
const MAX_SHOWN_ERRORS: usize = 20;

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route("/optouts", get(default_list).post(create))
        .route("/optouts/{list}", get(show))
        .route("/optouts/{list}/export", get(export::export))
        .route("/optouts/{list}/add", post(add))
        .route("/optouts/{list}/remove", post(remove))
        .route("/optouts/{list}/delete", post(delete))
        .route(
            "/optouts/{list}/import",
            post(import).layer(DefaultBodyLimit::max(MAX_UPLOAD_BYTES)),
        )
}

/// Reads the list ID of a path.
fn parse_list(list: &str) -> Result<OptoutListRef, PageError> {
    list.parse().map(|id: OptoutListId| OptoutListRef::Id(id)).map_err(|_| PageError::not_found())
}

fn list_path(list: OptoutListId) -> String {
    format!("/optouts/{list}")
}

async fn default_list(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    view::show(
        &app,
        &request,
        OptoutListRef::Default,
        &OptoutQuery::read(&uri),
        OptoutFormState::from_uri(&uri),
    )
    .await
}

async fn show(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    Path(list): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    view::show(
        &app,
        &request,
        parse_list(&list)?,
        &OptoutQuery::read(&uri),
        OptoutFormState::from_uri(&uri),
    )
    .await
}

/// Creates a list.
async fn create(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    let mut errors = FieldErrors::default();
    let Some(name) = form.parse("name", &mut errors) else {
        return show_errors(&app, &request, OptoutListRef::Default, form, errors).await;
    };
    let once = form.request_key()?;
    let keep = |list: &heliograph_domain::optout::OptoutList| list.id.to_string();
    let caller = request.caller();
    let asked = IdempotentRequest::new(&caller, OPTOUT_LISTS, "", Some(once), &keep);
    let list = match optouts::create_list(&app.context, &caller, name, asked).await {
        Ok(IdempotentOutcome::Fresh(list)) => list.id.to_string(),
        Ok(IdempotentOutcome::Replayed(list)) => list,
        Err(Error::Conflict(reason)) => {
            errors.add("name", reasons::conflict(&reason));
            return show_errors(&app, &request, OptoutListRef::Default, form, errors).await;
        }
        Err(other) => return Err(other.into()),
    };
    Ok(session::redirect_with_notice(&format!("/optouts/{list}"), "created"))
}

/// Shows a rejected form again, with its errors.
async fn show_errors(
    app: &DashboardState,
    request: &SessionRequest,
    which: OptoutListRef,
    form: Form,
    errors: FieldErrors,
) -> Result<Response, PageError> {
    let state = OptoutFormState { form, errors, ..OptoutFormState::default() };
    view::show(app, request, which, &OptoutQuery::default(), state).await
}

/// Adds a number to a list.
async fn add(
    State(app): State<Arc<DashboardState>>,
    Path(list): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    let which = parse_list(&list)?;
    let number = match form.text("number").parse::<Recipient>() {
        Ok(number) => number,
        Err(error) => {
            let mut errors = FieldErrors::default();
            errors.add("number", sentence(&error.to_string()));
            return show_errors(&app, &request, which, form, errors).await;
        }
    };
    let caller = request.caller();
    let note = Note::truncated(&format!("Added by {}", request.visitor.details.email));
    let keep = |_: &_| String::new();
    let asked = IdempotentRequest::new(&caller, OPTOUT_NUMBERS, "", None, &keep);
    let wish = NewOptout { number, note: Some(note) };
    let new = match optouts::add(&app.context, &caller, which, wish, asked).await? {
        IdempotentOutcome::Fresh((_, new)) => new,
        IdempotentOutcome::Replayed(_) => false,
    };
    Ok(session::redirect_with_notice(
        &format!("/optouts/{list}"),
        if new { "added" } else { "exists" },
    ))
}

/// Removes a number from a list.
async fn remove(
    State(app): State<Arc<DashboardState>>,
    Path(list): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    let number = form.text("number").parse::<Recipient>().map_err(|_| PageError::invalid_form())?;
    let (which, actor) = (parse_list(&list)?, request.actor());
    optouts::remove(&app.context, &request.caller(), which, number, Some(&actor)).await?;
    Ok(session::redirect_with_notice(&format!("/optouts/{list}"), "removed"))
}

/// Deletes a list with all its numbers.
async fn delete(
    State(app): State<Arc<DashboardState>>,
    Path(list): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let request = posted.request;
    let (which, actor) = (parse_list(&list)?, request.actor());
    optouts::remove_list(&app.context, &request.caller(), which, Some(&actor)).await?;
    Ok(session::redirect_with_notice("/optouts", "deleted"))
}

/// Imports numbers from an uploaded file or from the text field.
async fn import(
    State(app): State<Arc<DashboardState>>,
    Path(list): Path<String>,
    uploaded: UploadForm,
) -> Result<Response, PageError> {
    let UploadForm { request, typed, file } = uploaded;
    let (which, caller) = (parse_list(&list)?, request.caller());
    let text = if file.is_empty() { typed.trim().as_bytes() } else { &file };
    let mut state = OptoutFormState { typed: typed.clone(), ..OptoutFormState::default() };
    match number_file::parse_lenient(text) {
        Err(error) => state.errors.add("numbers", error.to_string()),
        Ok(read) if read.numbers.is_empty() && read.invalid == 0 => {
            state.errors.add("numbers", "Enter at least one number, or select a file.");
        }
        Ok(read) => {
            let good = read.numbers.len();
            let keep = |_: &_| String::new();
            let asked = IdempotentRequest::new(&caller, OPTOUT_IMPORT, "", None, &keep);
            let actor = request.actor();
            let import = OptoutImport { numbers: read.numbers, by: Some(&actor) };
            let added = match optouts::import(&app.context, &caller, which, import, asked).await? {
                IdempotentOutcome::Fresh(added) => added,
                IdempotentOutcome::Replayed(_) => 0,
            };
            state.imported(added, good - added, read.invalid);
            state.skipped_lines =
                read.errors.iter().take(MAX_SHOWN_ERRORS).map(RowError::describe).collect();
            // The valid numbers were imported; the errors list the other lines.
            state.typed = String::new();
        }
    }
    view::show(&app, &request, which, &OptoutQuery::default(), state).await
}
