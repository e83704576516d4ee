//! The middleware that applies the rate limit.

use crate::auth;
use crate::error::Problem;
use crate::rate_limit::RateLimitDecision;
use crate::state::ApiState;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_http::layers::around::Around;
use std::sync::Arc;

/// The middleware that applies the rate limit to requests with an API key.
#[derive(Clone)]
pub struct RateLimitByKey(pub Arc<ApiState>);

/// The part of a request that the rate limit needs again with its response.
#[derive(Debug)]
pub enum RateLimited {
    /// There is no limit.
    No,
    /// The request was counted.
    Counted(RateLimitDecision),
    /// This node sees the key for the first time, or there is none. Authentication may make the
    /// key of this header known.
    Unknown(Option<HeaderValue>),
}

impl Around for RateLimitByKey {
    type State = RateLimited;

    fn before(&self, request: &mut Request) -> Result<RateLimited, Box<Response>> {
        let Self(app) = self;
        if !app.context.limits.is_used(AccountLimit::RequestsPerSecond) {
            return Ok(RateLimited::No);
        }
        let authorization = request.headers().get(header::AUTHORIZATION);
        match authorization.and_then(|value| check(app, value)) {
            None => Ok(RateLimited::Unknown(authorization.cloned())),
            Some(decision) if decision.wait.is_some() => {
                let mut response = Problem::rate_limited().into_response();
                decision.write_headers(response.headers_mut());
                Err(Box::new(response))
            }
            Some(decision) => Ok(RateLimited::Counted(decision)),
        }
    }

    fn after(&self, state: RateLimited, response: &mut Response) {
        let Self(app) = self;
        let decision = match state {
            RateLimited::No => None,
            RateLimited::Counted(decision) => Some(decision),
            RateLimited::Unknown(authorization) => {
                authorization.and_then(|value| check(app, &value)).map(RateLimitDecision::allowed)
            }
        };
        if let Some(decision) = decision {
            decision.write_headers(response.headers_mut());
        }
    }
}

/// Counts a request with this header; `None` if the key is unknown or has no limit.
fn check(app: &ApiState, authorization: &HeaderValue) -> Option<RateLimitDecision> {
    let caller = auth::cached_caller(app, authorization)?;
    let limit = app.context.limits.max(caller.account, AccountLimit::RequestsPerSecond)?;
    app.rate_limit.check(caller.key?, limit)
}
