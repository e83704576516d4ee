//! `GET /v1/openapi.json`, and the pages under `/docs`.

use crate::docs::asset::Asset;
use crate::docs::{errors, reference};
use crate::error::Problem;
use crate::error::code::Code;
use crate::openapi::document::WATCHING;
use crate::openapi::operation::Operation;
use crate::query;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{MethodRouter, get};
use serde_json::json;
use utoipa::openapi::OpenApi;

const DOCUMENT: &str = "/v1/openapi.json";
const STYLE: &str = include_str!("../../assets/docs.css");
const ICON: &str = include_str!("../../assets/icon.svg");

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

/// The document as it is committed and served.
pub(crate) fn text(document: &OpenApi) -> String {
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// Serves the document and the pages that are made from it.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(document: &OpenApi) -> Router<S> {
    let json = serde_json::to_value(document).unwrap_or_default();
    let mut router = Router::new()
        .route(DOCUMENT, served(Asset::new("application/json", text(document))))
        .route("/docs", html(reference::page(&json)))
        .route("/docs/errors", html(errors::list()))
        .route("/docs/style.css", served(Asset::new("text/css; charset=utf-8", STYLE)))
        .route("/docs/icon.svg", served(Asset::new("image/svg+xml", ICON)));
    for code in Code::ALL {
        router = router.route(&code.page(), html(errors::page(&json, *code)));
    }
    router
}

fn html<S: Clone + Send + Sync + 'static>(page: askama::Result<String>) -> MethodRouter<S> {
    // What is rendered here is known when the service is built; a test renders all of it.
    served(Asset::new("text/html; charset=utf-8", page.unwrap_or_default()))
}

fn served<S: Clone + Send + Sync + 'static>(asset: Asset) -> MethodRouter<S> {
    get(async move |uri: Uri, headers: HeaderMap| {
        query::none(&uri)?;
        Ok::<_, Problem>(asset.answer(&headers))
    })
}
