//! Request headers that must not be repeated, and the token of `Authorization`.

use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Returns the value of a header that a request may have at most once. `name` is the spelling of
/// the header in errors.
///
/// Of two values, a proxy may have checked one, and this service would use the other.
pub(crate) fn single<'a>(
    headers: &'a HeaderMap,
    header: &HeaderName,
    name: &str,
) -> Result<Option<&'a HeaderValue>, Problem> {
    let mut values = headers.get_all(header).iter();
    let value = values.next();
    if values.next().is_none() {
        return Ok(value);
    }
    let detail = format!("The header {name} must be sent only once.");
    let pointer = format!("header:{name}");
    let fault = Fault { pointer, code: FaultCode::DuplicateField, detail: detail.clone() };
    Err(Problem::invalid(detail, vec![fault]))
}

/// Returns the token of a header value `Bearer …`.
pub(crate) fn bearer_token(authorization: &HeaderValue) -> Option<&str> {
    let (scheme, key) = authorization.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}
