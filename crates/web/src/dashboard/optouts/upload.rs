//! A form with a file in it.

use crate::app::App;
use crate::dashboard::form::Form;
use crate::dashboard::peer;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::Visit;
use axum::body::{Bytes, to_bytes};
use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{StatusCode, header};
use std::sync::Arc;

/// The longest such form: as long a file as the API takes, and what stands around it.
pub(super) const LONGEST: usize = (16 << 20) + (64 << 10);

/// Numbers that somebody sends from a page of their own session.
pub(super) struct Uploaded {
    /// Who.
    pub(super) visit: Visit,
    /// What was typed or pasted.
    pub(super) typed: String,
    /// What the chosen file holds; empty when none was chosen.
    pub(super) file: Bytes,
}

/// The fields as they were sent.
#[derive(Default)]
struct Fields {
    csrf: String,
    typed: String,
    file: Bytes,
}

impl FromRequest<Arc<App>> for Uploaded {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, app).await?;
        if !peer::is_own_page(&parts.headers) {
            return Err(Refusal::foreign());
        }
        let kind = parts.headers.get(header::CONTENT_TYPE).map(|v| v.as_bytes());
        let fields = match kind.is_some_and(|kind| kind.starts_with(b"multipart/form-data")) {
            true => with_file(Request::from_parts(parts, body), app).await?,
            false => {
                let body = to_bytes(body, LONGEST).await.map_err(|_| too_long())?;
                let form = Form::read(&body)?;
                let (csrf, typed) = (form.raw("csrf").to_owned(), form.raw("numbers").to_owned());
                Fields { csrf, typed, ..Fields::default() }
            }
        };
        visit.admit(&fields.csrf, false)?;
        Ok(Self { visit, typed: fields.typed, file: fields.file })
    }
}

async fn with_file(request: Request, app: &Arc<App>) -> Result<Fields, Refusal> {
    let form = Multipart::from_request(request, app).await;
    let mut form = form.map_err(|_| Refusal::bad_form())?;
    let mut fields = Fields::default();
    while let Some(field) = form.next_field().await.map_err(refused)? {
        match field.name() {
            Some("csrf") => fields.csrf = field.text().await.map_err(refused)?,
            Some("numbers") => fields.typed = field.text().await.map_err(refused)?,
            Some("file") => fields.file = field.bytes().await.map_err(refused)?,
            _ => {}
        }
    }
    Ok(fields)
}

fn too_long() -> Refusal {
    let text =
        "A file can have 16 MB at most. Go back, split it, and import one part after the other.";
    Refusal::too_long_because(text)
}

fn refused(error: MultipartError) -> Refusal {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_long(),
        _ => Refusal::bad_form(),
    }
}
