//! Who calls: the Bearer key of a request.

use crate::app::App;
use crate::error::Problem;
use axum::http::{HeaderMap, header};
use heliograph_domain::id::ApiKeyId;
use heliograph_service::caller::Caller;
use std::sync::Arc;

/// The caller of a request that reads: the database is asked each time, so that a revoked key fails
/// at once on every node.
pub(crate) async fn reader(app: &App, headers: &HeaderMap) -> Result<Arc<Caller>, Problem> {
    Ok(app.keyring.verify(&app.context, bearer(headers)?).await?)
}

/// The caller of a request that is checked again inside the transaction which it causes.
pub(crate) async fn writer(app: &App, headers: &HeaderMap) -> Result<Arc<Caller>, Problem> {
    Ok(app.keyring.recall(&app.context, bearer(headers)?).await?)
}

/// The key of a request that this node has met before; whether it still holds is looked at later.
pub(crate) fn known(app: &App, headers: &HeaderMap) -> Option<ApiKeyId> {
    app.keyring.known(bearer(headers).ok()?)
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let value = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    let (scheme, key) =
        value.and_then(|v| v.split_once(' ')).ok_or_else(Problem::unauthenticated)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(key.trim())
    } else {
        Err(Problem::unauthenticated())
    }
}
