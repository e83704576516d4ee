//! The import form: numbers as text or as an uploaded file.

use crate::client;
use crate::error_page::PageError;
use crate::form::Form;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use axum::body::Bytes;
use axum::extract::multipart::Multipart;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use heliograph_http::{BodyError, read_body};
use std::sync::Arc;

/// The largest body of the form: a file of the size that the API accepts, and the other fields.
pub(super) const MAX_UPLOAD_BYTES: usize = (16 << 20) + (64 << 10);

/// The submitted import form.
pub(super) struct UploadForm {
    /// The request.
    pub(super) request: SessionRequest,
    /// The numbers in the text field.
    pub(super) typed: String,
    /// The content of the uploaded file; empty without a file.
    pub(super) file: Bytes,
}

/// The fields of the form.
#[derive(Default)]
struct Fields {
    csrf: String,
    typed: String,
    file: Bytes,
}

impl FromRequest<Arc<DashboardState>> for UploadForm {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &Arc<DashboardState>) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let request = SessionRequest::from_request_parts(&mut parts, app).await?;
        if !client::is_same_origin(&parts.headers) {
            return Err(PageError::csrf_failed());
        }
        let body = read_body(body, MAX_UPLOAD_BYTES).await.map_err(|error| match error {
            BodyError::TooLarge(_) => too_long(),
            other => other.into(),
        })?;
        let kind = parts.headers.get(header::CONTENT_TYPE).map(|v| v.as_bytes());
        let fields = match kind.is_some_and(|kind| kind.starts_with(b"multipart/form-data")) {
            true => read_multipart(Request::from_parts(parts, body.into()), app).await?,
            false => {
                let form = Form::read(&body)?;
                let (csrf, typed) = (form.raw("csrf").to_owned(), form.raw("numbers").to_owned());
                Fields { csrf, typed, ..Fields::default() }
            }
        };
        request.verify_csrf(&fields.csrf, false)?;
        Ok(Self { request, typed: fields.typed, file: fields.file })
    }
}

async fn read_multipart(request: Request, app: &Arc<DashboardState>) -> Result<Fields, PageError> {
    let form = Multipart::from_request(request, app).await;
    let mut form = form.map_err(|_| PageError::invalid_form())?;
    let mut fields = Fields::default();
    let invalid = |_| PageError::invalid_form();
    while let Some(field) = form.next_field().await.map_err(invalid)? {
        match field.name() {
            Some("csrf") => fields.csrf = field.text().await.map_err(invalid)?,
            Some("numbers") => fields.typed = field.text().await.map_err(invalid)?,
            Some("file") => fields.file = field.bytes().await.map_err(invalid)?,
            _ => {}
        }
    }
    Ok(fields)
}

fn too_long() -> PageError {
    let text = "The file is larger than 16 MB. Go back, split it into smaller files and import them one by one.";
    PageError::too_large_because(text)
}
