//! `GET /v1/openapi.json`, and the pages under `/docs`.

use crate::docs::asset::Asset;
use crate::error::Problem;
use crate::openapi::document::WATCHING;
use crate::openapi::operation::Operation;
use crate::query;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::get;
use serde_json::json;
use utoipa::openapi::OpenApi;

const DOCUMENT: &str = "/v1/openapi.json";

/// What the document says of itself.
pub(crate) fn about_document() -> Operation {
    Operation::get(DOCUMENT, "getOpenApi", "Shows this document")
        .tag(WATCHING)
        .open()
        .describe("The same as `openapi.json` in the source, for the version that runs.")
        .answers_any("The document.", json!({ "openapi": "3.1.0" }))
        .answers_nothing(StatusCode::NOT_MODIFIED, "It is what `If-None-Match` names.")
        .header("ETag")
        .invalid()
}

/// Serves the document and its pages.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(document: &OpenApi) -> Router<S> {
    Router::new().route(DOCUMENT, page(Asset::new("application/json", text(document))))
}

/// The document as it is committed and served.
pub(crate) fn text(document: &OpenApi) -> String {
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

fn page<S: Clone + Send + Sync + 'static>(asset: Asset) -> axum::routing::MethodRouter<S> {
    get(async move |uri: Uri, headers: HeaderMap| {
        query::none(&uri)?;
        Ok::<_, Problem>(asset.answer(&headers))
    })
}
