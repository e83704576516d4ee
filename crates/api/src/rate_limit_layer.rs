//! The middleware that applies the rate limit, and names the key of a request for the log.

use crate::auth;
use crate::error::Problem;
use crate::rate_limit::RateLimitDecision;
use crate::state::ApiState;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::id::ApiKeyId;
use heliograph_http::layers::access_log::LoggedKey;
use heliograph_http::layers::around::Around;
use std::sync::Arc;

/// The middleware that applies the rate limit to requests with an API key.
#[derive(Clone)]
pub struct RateLimitByKey(pub Arc<ApiState>);

/// The part of a request that the rate limit and the log need again with its response.
#[derive(Debug)]
pub enum CountedRequest {
    /// The request has a key that this node knows; the decision is absent without a limit.
    Known(ApiKeyId, Option<RateLimitDecision>),
    /// This node sees the key for the first time, or there is none. Authentication may make the
    /// key of this header known.
    Unknown(Option<HeaderValue>),
}

impl Around for RateLimitByKey {
    type State = CountedRequest;

    fn before(&self, request: &mut Request) -> Result<CountedRequest, Box<Response>> {
        let Self(app) = self;
        let authorization = request.headers().get(header::AUTHORIZATION);
        let Some((key, decision)) = authorization.and_then(|value| check(app, value)) else {
            return Ok(CountedRequest::Unknown(authorization.cloned()));
        };
        match decision {
            Some(decision) if decision.wait.is_some() => {
                let mut response = Problem::rate_limited().into_response();
                decision.write_headers(response.headers_mut());
                response.extensions_mut().insert(LoggedKey(key.0));
                Err(Box::new(response))
            }
            decision => Ok(CountedRequest::Known(key, decision)),
        }
    }

    fn after(&self, state: CountedRequest, response: &mut Response) {
        let Self(app) = self;
        let (key, decision) = match state {
            CountedRequest::Known(key, decision) => (key, decision),
            CountedRequest::Unknown(authorization) => {
                let counted = authorization.and_then(|value| check(app, &value));
                let Some((key, decision)) = counted else { return };
                (key, decision.map(RateLimitDecision::allowed))
            }
        };
        response.extensions_mut().insert(LoggedKey(key.0));
        if let Some(decision) = decision {
            decision.write_headers(response.headers_mut());
        }
    }
}

/// Counts a request with this header, and returns its key and the decision, which is absent without
/// a limit; `None` if this node does not know the key.
fn check(
    app: &ApiState,
    authorization: &HeaderValue,
) -> Option<(ApiKeyId, Option<RateLimitDecision>)> {
    let caller = auth::cached_caller(app, authorization)?;
    let key = caller.key?;
    let limit = app.context.limits.max(caller.account, AccountLimit::RequestsPerSecond);
    Some((key, limit.and_then(|limit| app.rate_limit.check(key, limit))))
}
