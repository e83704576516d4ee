//! API key authentication (`Authorization: Bearer`).

use crate::error::Problem;
use crate::header::single;
use crate::state::ApiState;
use axum::http::{HeaderMap, HeaderValue, header};
use heliograph_domain::id::ApiKeyId;
use heliograph_service::kernel::caller::Caller;
use std::sync::Arc;

/// Authenticates the caller against the database, so that a revoked key fails at once on every
/// node.
pub(crate) async fn authenticate(
    app: &ApiState,
    headers: &HeaderMap,
) -> Result<Arc<Caller>, Problem> {
    Ok(app.keyring.authenticate(&app.context, bearer(headers)?).await?)
}

/// Authenticates the caller from the cache of verified keys, without the database if possible.
///
/// Only for requests whose transaction checks the key again.
pub(crate) async fn authenticate_cached(
    app: &ApiState,
    headers: &HeaderMap,
) -> Result<Arc<Caller>, Problem> {
    Ok(app.keyring.authenticate_cached(&app.context, bearer(headers)?).await?)
}

/// Returns the id of the key if this node has verified it before. The key may have been revoked
/// since.
pub(crate) fn cached_key(app: &ApiState, authorization: &HeaderValue) -> Option<ApiKeyId> {
    app.keyring.cached_key_id(token(authorization)?)
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let value = single(headers, &header::AUTHORIZATION, "Authorization")?;
    value.and_then(token).ok_or_else(Problem::unauthenticated)
}

/// Returns the token of a header value `Bearer …`.
fn token(authorization: &HeaderValue) -> Option<&str> {
    let (scheme, key) = authorization.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}
