//! Query parameters and pagination. Unknown parameters are rejected: a mistyped filter must not
//! list everything.

use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode};
use crate::response::json;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::wording::sentence;
use serde::Serialize;
use std::borrow::Cow;
use std::str::FromStr;

const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;

/// Rejects any query, which would be ignored silently otherwise: `?dryRun=true` would send for
/// real.
pub(crate) fn require_empty(uri: &Uri) -> Result<(), Problem> {
    match uri.query() {
        None | Some("") => Ok(()),
        Some(_) => {
            let detail = "This endpoint takes no query parameters.";
            Err(Problem::invalid(detail, vec![fault("query", FaultCode::UnknownField, detail)]))
        }
    }
}

fn fault(pointer: &str, code: FaultCode, detail: &str) -> Fault {
    Fault { pointer: pointer.to_owned(), code, detail: detail.to_owned() }
}

/// The query parameters that were not read yet, and the faults found so far.
#[derive(Debug)]
pub(crate) struct QueryParams<'a> {
    left: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The names of the known parameters, for the error about an unknown one.
    known: Vec<&'static str>,
    faults: Vec<Fault>,
}

impl<'a> QueryParams<'a> {
    /// Parses the query of the URL.
    pub(crate) fn parse(uri: &'a Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let left = url::form_urlencoded::parse(query.as_bytes()).collect();
        Self { left, known: Vec::new(), faults: Vec::new() }
    }

    /// Records a fault of a parameter.
    fn fault(&mut self, name: &str, code: FaultCode, detail: &str) {
        self.faults.push(fault(&format!("query:{name}"), code, detail));
    }

    fn take(&mut self, name: &'static str) -> Option<Cow<'a, str>> {
        self.known.push(name);
        let at = self.left.iter().position(|(n, _)| n == name)?;
        let (_, value) = self.left.remove(at);
        if self.left.iter().any(|(n, _)| n == name) {
            self.left.retain(|(n, _)| n != name);
            self.fault(name, FaultCode::DuplicateField, "Duplicate parameter.");
            return None;
        }
        Some(value)
    }

    /// Reads an optional string.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<Cow<'a, str>> {
        let value = self.take(name)?;
        if value.contains('\0') {
            self.fault(
                name,
                FaultCode::InvalidCharacter,
                "The value must not contain the character NUL.",
            );
            return None;
        }
        Some(value)
    }

    /// Reads an optional parameter with `read`, which returns an error message for an invalid
    /// value.
    pub(crate) fn parsed<T>(
        &mut self,
        name: &'static str,
        code: FaultCode,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.take(name)?;
        read(&value).map_err(|detail| self.fault(name, code, &sentence(&detail))).ok()
    }

    /// Returns all faults as one problem, if there are any. Parameters that were not read are
    /// unknown and faults, too.
    pub(crate) fn finish(mut self) -> Result<(), Problem> {
        let known = self.known.join(", ");
        for (name, _) in std::mem::take(&mut self.left) {
            let detail = format!("Unknown parameter. Supported parameters: {known}.");
            self.fault(&name, FaultCode::UnknownField, &detail);
        }
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Problem::invalid("Invalid query parameters. See 'errors'.", self.faults)),
        }
    }
}

/// The pagination parameters `limit` and `cursor`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageParams<C> {
    /// The maximum number of items.
    limit: i64,
    /// The key of the last item of the previous page.
    pub(crate) after: Option<C>,
}

impl<C: FromStr + ToString> PageParams<C> {
    /// Parses a query that has no parameters but `limit` and `cursor`.
    pub(crate) fn parse(uri: &Uri) -> Result<Self, Problem> {
        let mut params = QueryParams::parse(uri);
        let page = Self::from_query(&mut params);
        params.finish()?;
        Ok(page)
    }

    /// Reads `limit` and `cursor`.
    pub(crate) fn from_query(params: &mut QueryParams<'_>) -> Self {
        let limit = params.parsed("limit", FaultCode::OutOfRange, |value| match value.parse() {
            // Rust accepts a leading plus; the integers of the OpenAPI document have none.
            Ok(limit) if (1..=MAX_LIMIT).contains(&limit) && !value.starts_with('+') => Ok(limit),
            _ => Err(format!("limit must be a number between 1 and {MAX_LIMIT}")),
        });
        let after = params.parsed("cursor", FaultCode::InvalidCursor, |value| {
            let why = "invalid cursor: pass nextCursor of the previous page unchanged";
            decode(value).ok_or_else(|| why.to_owned())
        });
        Self { limit: limit.unwrap_or(DEFAULT_LIMIT), after }
    }

    /// Returns the maximum number of items on the page.
    pub(crate) fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    /// Returns the number of rows to fetch: one more than the limit, to detect whether there is a
    /// next page.
    pub(crate) const fn fetch_limit(&self) -> i64 {
        self.limit + 1
    }

    /// Renders the page; `key` returns the key of an item for the cursor.
    pub(crate) fn respond<T, V: Serialize>(
        &self,
        found: &[T],
        key: impl Fn(&T) -> C,
        view: impl Fn(&T) -> V,
    ) -> Response {
        let limit = self.limit();
        let shown = found.get(..limit).unwrap_or(found);
        let last = shown.last().filter(|_| found.len() > limit);
        page_response(shown.iter().map(view).collect(), last.map(key).as_ref())
    }
}

/// Returns a page as a response; `next` is the key behind which the next page starts.
pub(crate) fn page_response<V: Serialize>(data: Vec<V>, next: Option<&impl ToString>) -> Response {
    json(StatusCode::OK, &PageBody { data, next_cursor: next.map(encode) })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageBody<V> {
    data: Vec<V>,
    next_cursor: Option<String>,
}

fn encode(key: &impl ToString) -> String {
    URL_SAFE_NO_PAD.encode(key.to_string())
}

fn decode<C: FromStr>(cursor: &str) -> Option<C> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    std::str::from_utf8(&bytes).ok()?.parse().ok()
}
