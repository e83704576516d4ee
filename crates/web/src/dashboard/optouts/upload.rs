//! A form with a file in it.

use crate::app::App;
use crate::dashboard::csrf;
use crate::dashboard::peer;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::Visit;
use axum::body::Bytes;
use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
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

impl FromRequest<Arc<App>> for Uploaded {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, app).await?;
        if !peer::is_own_page(&parts.headers) {
            return Err(Refusal::foreign());
        }
        let request = Request::from_parts(parts, body);
        let form = Multipart::from_request(request, app).await;
        let mut form = form.map_err(|_| Refusal::bad_form())?;
        let (mut proof, mut typed, mut file) = (String::new(), String::new(), Bytes::new());
        while let Some(field) = form.next_field().await.map_err(refused)? {
            match field.name() {
                Some("csrf") => proof = field.text().await.map_err(refused)?,
                Some("numbers") => typed = field.text().await.map_err(refused)?,
                Some("file") => file = field.bytes().await.map_err(refused)?,
                _ => {}
            }
        }
        match csrf::is_good(visit.token(), &proof) {
            true => Ok(Self { visit, typed, file }),
            false => Err(Refusal::foreign()),
        }
    }
}

fn refused(error: MultipartError) -> Refusal {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::too_long(),
        _ => Refusal::bad_form(),
    }
}
