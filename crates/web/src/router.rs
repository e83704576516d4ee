//! Which address leads where.

use crate::app::App;
use crate::dashboard::refusal::{self, Refusal};
use crate::error::Problem;
use crate::openapi::document::document;
use crate::openapi::routes::Routes;
use crate::{api, dashboard, docs, health};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// All doors.
pub(crate) fn router(app: Arc<App>) -> Router {
    let Routes { router, operations } = routes();
    router
        .merge(docs::routes::routes(&document(&operations)))
        .merge(dashboard::routes::routes(&app))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

/// A program is told in JSON, a person on a page.
async fn nowhere(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    match wants_page(&headers) {
        true => refusal::rendered(&app, Refusal::not_found()),
        false => Problem::not_found().into_response(),
    }
}

/// Who opens the address of a form finds the way to a page.
async fn wrong_method(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    match wants_page(&headers) {
        true => refusal::rendered(&app, Refusal::only_a_form()),
        false => Problem::method_not_allowed().into_response(),
    }
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    accepted.contains("text/html")
}

/// Everything that the document tells of.
pub(crate) fn routes() -> Routes {
    api::messages::routes()
        .merge(api::balance::routes())
        .merge(api::inbound_messages::routes())
        .merge(api::optout_lists::routes())
        .merge(health::routes())
        .tell(docs::routes::about_document())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::{env, fs};

    const RENEW: &str = "RENEW_OPENAPI=1 cargo test -p heliograph-web openapi_json";

    #[test]
    fn openapi_json_is_current() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi.json");
        let now = docs::routes::text(&document(&routes().operations));
        if env::var_os("RENEW_OPENAPI").is_some() {
            fs::write(&file, &now).unwrap();
        }
        let committed = fs::read_to_string(&file).unwrap_or_default();
        assert!(committed == now, "openapi.json is not what the code says; renew it: {RENEW}");
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_a_group_and_words() {
        let (operations, mut names) = (routes().operations, BTreeSet::new());
        for operation in &operations {
            let told = operation.documented();
            let id = told.operation_id.clone().unwrap();
            assert!(names.insert(id.clone()), "{id} is there twice");
            assert_eq!(told.tags.map(|t| t.len()), Some(1), "{id} is in no group");
            assert!(told.security.is_some(), "{id} says neither scope() nor open()");
            assert!(told.summary.is_some_and(|s| s.len() > 10), "{id} has no summary");
        }
        assert!(names.len() > 10);
    }
}
