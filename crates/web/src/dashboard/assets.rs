//! What pages are made with: style sheet, scripts and icons, inside the program.

use crate::docs::asset::Asset;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rust_embed::RustEmbed;
use std::collections::HashMap;
use std::sync::Arc;

/// It stands in every address of an asset, and changes with any of them.
pub(crate) const VERSION: &str = include_str!("../../assets/ui/version").trim_ascii();
/// What has its version in its address never changes: a year.
const FOR_GOOD: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

#[derive(RustEmbed)]
#[folder = "assets/ui/"]
struct Files;

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        _ => "text/plain; charset=utf-8",
    }
}

/// `GET /assets/{version}/{name}`.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let read = |name: String| {
        let file = Files::get(&name)?;
        Some((name.clone(), Asset::new(kind(&name), file.data.into_owned())))
    };
    let all: HashMap<_, _> = Files::iter().filter_map(|name| read(name.into_owned())).collect();
    let all = Arc::new(all);
    let serve = async move |Path((_, name)): Path<(String, String)>, headers: HeaderMap| match all
        .get(&name)
    {
        Some(asset) => for_good(asset.answer(&headers)),
        None => StatusCode::NOT_FOUND.into_response(),
    };
    Router::new().route("/assets/{version}/{name}", get(serve))
}

fn for_good(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, FOR_GOOD);
    response
}
