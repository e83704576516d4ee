//! `GET /v1/openapi.json`, and the pages under `/docs`.

use crate::docs::{errors, guides, reference};
use crate::error::Problem;
use crate::error::code::ProblemCode;
use crate::openapi::document::HEALTH;
use crate::openapi::operation::Operation;
use crate::query;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{MethodRouter, get};
use heliograph_http::StaticAsset;
use serde_json::json;
use utoipa::openapi::OpenApi;

const DOCUMENT: &str = "/v1/openapi.json";
const STYLE: &str = include_str!("../../assets/docs.css");
const ICON: &str = include_str!("../../assets/icon.svg");

/// Describes the operation that returns the OpenAPI document.
pub(crate) fn document_operation() -> Operation {
    Operation::get(DOCUMENT, "getOpenApi", "Get the OpenAPI document")
        .tag(HEALTH)
        .public()
        .description("Returns this document, for the running version.")
        .untyped_response("The OpenAPI document.", json!({ "openapi": "3.1.0" }))
        .empty_response(
            StatusCode::NOT_MODIFIED,
            "The document has not changed since the version in `If-None-Match`.",
        )
        .response_header("ETag")
        .rejects_query()
}

/// Returns the text of the document as it is committed and served.
pub(crate) fn text(document: &OpenApi) -> String {
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the routes of the document and of the pages that are generated from it.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(document: &OpenApi) -> Router<S> {
    let json = serde_json::to_value(document).unwrap_or_default();
    let mut router = Router::new()
        .route(DOCUMENT, served(StaticAsset::new("application/json", text(document))))
        .route("/docs", html(reference::page(&json)))
        .route("/docs/errors", html(errors::list()))
        .route("/docs/style.css", served(StaticAsset::new("text/css; charset=utf-8", STYLE)))
        .route("/docs/icon.svg", served(StaticAsset::new("image/svg+xml", ICON)));
    router = router.route(guides::PATH, html(guides::list()));
    for guide in guides::ALL {
        router = router.route(&guide.path(), html(guides::page(guide)));
    }
    for code in ProblemCode::ALL {
        router = router.route(&code.docs_path(), html(errors::page(&json, *code)));
    }
    router
}

fn html<S: Clone + Send + Sync + 'static>(page: askama::Result<String>) -> MethodRouter<S> {
    // Rendering cannot fail at runtime: the input is static, and a test renders every page.
    served(StaticAsset::new("text/html; charset=utf-8", page.unwrap_or_default()))
}

fn served<S: Clone + Send + Sync + 'static>(asset: StaticAsset) -> MethodRouter<S> {
    get(async move |uri: Uri, headers: HeaderMap| {
        query::require_empty(&uri)?;
        Ok::<_, Problem>(asset.respond(&headers))
    })
}
