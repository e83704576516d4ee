//! API key authentication (`Authorization: Bearer`).

use crate::account_shares::AccountShare;
use crate::error::Problem;
use crate::header::{bearer_token, single};
use crate::state::ApiState;
use axum::http::{HeaderMap, HeaderValue, header};
use heliograph_service::kernel::caller::Caller;
use std::ops::Deref;
use std::sync::Arc;

/// The caller of a request, which counts as an open request of its account.
#[derive(Debug)]
pub(crate) struct Authenticated {
    caller: Arc<Caller>,
    /// The request's share in the node's capacity.
    pub(crate) share: AccountShare,
}

impl Deref for Authenticated {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

/// Authenticates the caller against the database, so that a revoked key fails at once on every
/// node.
pub(crate) async fn authenticate(
    app: &ApiState,
    headers: &HeaderMap,
) -> Result<Authenticated, Problem> {
    open(app, authenticate_again(app, headers).await?)
}

/// Authenticates the caller against the database, after [`authenticate_cached`].
pub(crate) async fn authenticate_again(
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
) -> Result<Authenticated, Problem> {
    open(app, app.keyring.authenticate_cached(&app.context, bearer(headers)?).await?)
}

fn open(app: &ApiState, caller: Arc<Caller>) -> Result<Authenticated, Problem> {
    let share = app.shares.open(caller.account, app.gate.max_open_share())?;
    Ok(Authenticated { caller, share })
}

/// Returns the caller if this node has verified the key before. The key may have been revoked
/// since.
pub(crate) fn cached_caller(app: &ApiState, authorization: &HeaderValue) -> Option<Arc<Caller>> {
    app.keyring.cached_caller(bearer_token(authorization)?)
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let value = single(headers, &header::AUTHORIZATION, "Authorization")?;
    value.and_then(bearer_token).ok_or_else(Problem::unauthenticated)
}
