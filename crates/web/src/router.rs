//! Which address leads where.

use crate::app::App;
use crate::error::Problem;
use crate::openapi::document::document;
use crate::openapi::routes::Routes;
use crate::{api, docs, health};
use axum::Router;
use std::sync::Arc;

/// All doors.
pub(crate) fn router(app: Arc<App>) -> Router {
    let Routes { router, operations } = routes();
    router
        .merge(docs::routes::routes(&document(&operations)))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(app)
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
