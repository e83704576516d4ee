//! The router: all routes of the API and its documentation.

use crate::openapi::document::document;
use crate::openapi::routes::ApiRoutes;
use crate::state::ApiState;
use crate::{balance, docs, health, inbound_messages, messages, optout_lists};
use axum::Router;
use std::sync::Arc;

/// Builds the router of the API and its documentation.
pub fn router(app: Arc<ApiState>) -> Router {
    let ApiRoutes { router, operations } = routes();
    router.merge(docs::routes::routes(&document(&operations))).with_state(app)
}

/// Returns all routes that the OpenAPI document describes.
fn routes() -> ApiRoutes {
    messages::routes()
        .merge(balance::routes())
        .merge(inbound_messages::routes())
        .merge(optout_lists::routes())
        .merge(health::routes())
        .document(docs::routes::document_operation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::{env, fs};

    const RENEW: &str = "RENEW_OPENAPI=1 cargo test -p heliograph-api openapi_json";

    #[test]
    fn openapi_json_is_current() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi.json");
        let now = docs::routes::text(&document(&routes().operations));
        if env::var_os("RENEW_OPENAPI").is_some() {
            fs::write(&file, &now).unwrap();
        }
        let committed = fs::read_to_string(&file).unwrap_or_default();
        assert!(committed == now, "openapi.json is out of date; renew it: {RENEW}");
    }

    /// Generated clients fail on an unknown value of a closed enumeration.
    #[test]
    fn enumerations_in_responses_are_open() {
        let document = serde_json::to_value(document(&routes().operations)).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let closed = schemas.iter().filter(|(_, schema)| schema.get("enum").is_some());
        let closed: Vec<_> = closed.map(|(name, _)| name.as_str()).collect();
        assert_eq!(closed, ["Mode"], "live and test are the only modes there will ever be");
        let open =
            |name: &str| schemas[name]["anyOf"][1] == serde_json::json!({ "type": "string" });
        assert!(open("MessageStatus") && open("ProblemCode") && open("FailureCode"));
    }

    #[test]
    fn wrong_addresses_of_all_operations_are_recognized() {
        for operation in routes().operations {
            let Some(path) = operation.path.strip_prefix("/v1") else { continue };
            let explained = crate::unknown_path::explain(path);
            assert!(explained.contains(&format!("'/v1{path}'")), "{path}: {explained}");
        }
    }

    #[test]
    fn operations_have_a_unique_id_a_tag_and_a_summary() {
        let (operations, mut names) = (routes().operations, BTreeSet::new());
        for operation in &operations {
            let documented = operation.to_openapi();
            let id = documented.operation_id.clone().unwrap();
            assert!(names.insert(id.clone()), "{id} is not unique");
            assert_eq!(documented.tags.map(|t| t.len()), Some(1), "{id} has no tag");
            assert!(documented.security.is_some(), "{id} calls neither scope() nor public()");
            assert!(documented.summary.is_some_and(|s| s.len() > 10), "{id} has no summary");
        }
        assert!(names.len() > 10);
    }
}
