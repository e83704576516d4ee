//! Style sheet, scripts and icons of the pages, embedded in the program.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use heliograph_http::StaticAsset;
use rust_embed::RustEmbed;
use std::collections::HashMap;
use std::sync::Arc;

/// A hash of all assets, part of their URLs: it changes when any asset changes.
pub(crate) const VERSION: &str = include_str!("../assets/ui/version").trim_ascii();
/// The cache policy for versioned URLs, which never change: one year.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

#[derive(RustEmbed)]
#[folder = "assets/ui/"]
struct Files;

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        _ => "text/plain; charset=utf-8",
    }
}

/// Returns the route `GET /assets/{version}/{name}`.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let read = |name: String| {
        let file = Files::get(&name)?;
        Some((name.clone(), StaticAsset::new(content_type(&name), file.data.into_owned())))
    };
    let all: HashMap<_, _> = Files::iter().filter_map(|name| read(name.into_owned())).collect();
    let all = Arc::new(all);
    let serve = async move |Path((_, name)): Path<(String, String)>, headers: HeaderMap| match all
        .get(&name)
    {
        Some(asset) => immutable(asset.respond(&headers)),
        None => StatusCode::NOT_FOUND.into_response(),
    };
    Router::new().route("/assets/{version}/{name}", get(serve))
}

fn immutable(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, IMMUTABLE);
    response
}
