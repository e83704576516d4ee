//! Query parameters and pagination. Unknown parameters are rejected: a mistyped filter must not
//! list everything.

use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode, shorten};
use crate::response::json;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::wording::sentence;
use serde::Serialize;
use std::borrow::Cow;
use std::str::FromStr;

/// The maximum number of faults in a response: a URL has room for thousands of parameters.
const MAX_FAULTS: usize = 100;

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
    /// The number of all faults, including those that are not listed.
    count: usize,
    /// The list and the filters that the cursors of the response are for.
    scope: CursorScope,
}

impl<'a> QueryParams<'a> {
    /// Parses the query of the URL.
    pub(crate) fn parse(uri: &'a Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let left: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
        let scope = CursorScope::new(uri.path(), &left);
        Self { left, known: Vec::new(), faults: Vec::new(), count: 0, scope }
    }

    /// Records a fault of a parameter.
    fn fault(&mut self, name: &str, code: FaultCode, detail: &str) {
        self.count += 1;
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault(&format!("query:{}", shorten(name)), code, detail));
        }
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

    /// Reads a parameter that can be repeated, each value with `read`. Without it, the list is empty.
    pub(crate) fn parsed_list<T>(
        &mut self,
        name: &'static str,
        code: FaultCode,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        self.known.push(name);
        let (values, left) =
            std::mem::take(&mut self.left).into_iter().partition(|(n, _)| n == name);
        self.left = left;
        let values: Vec<(Cow<'_, str>, Cow<'_, str>)> = values;
        let mut all = Vec::with_capacity(values.len());
        for (_, value) in values {
            match read(&value) {
                Ok(value) => all.push(value),
                Err(detail) => self.fault(name, code, &sentence(&detail)),
            }
        }
        all
    }

    /// Returns all faults as one problem, if there are any. Parameters that were not read are
    /// unknown and faults, too.
    pub(crate) fn finish(mut self) -> Result<(), Problem> {
        let known = self.known.join(", ");
        for (name, _) in std::mem::take(&mut self.left) {
            let detail = format!("Unknown parameter. Supported parameters: {known}.");
            self.fault(&name, FaultCode::UnknownField, &detail);
        }
        let detail = match self.count {
            0 => return Ok(()),
            n if n > MAX_FAULTS => {
                format!(
                    "{n} invalid query parameters. The first {MAX_FAULTS} are listed in 'errors'."
                )
            }
            _ => "Invalid query parameters. See 'errors'.".to_owned(),
        };
        Err(Problem::invalid(detail, self.faults))
    }
}

/// The pagination parameters `limit` and `cursor`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageParams<C> {
    /// The maximum number of items.
    limit: i64,
    /// The key of the last item of the previous page.
    pub(crate) after: Option<C>,
    scope: CursorScope,
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
        let scope = params.scope;
        let after = params.parsed("cursor", FaultCode::InvalidCursor, |value| {
            let why = "invalid cursor: pass nextCursor of the previous page unchanged";
            let (of, key) = decode(value).ok_or(why)?;
            match of == scope {
                true => Ok(key),
                false => {
                    Err("this cursor is of another list or of other filters: use it with the \
                              path and the filters of the page that returned it"
                        .to_owned())
                }
            }
        });
        Self { limit: limit.unwrap_or(DEFAULT_LIMIT), after, scope }
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
        self.page_response(shown.iter().map(view).collect(), last.map(key).as_ref())
    }

    /// Returns a page as a response; `next` is the key behind which the next page starts.
    pub(crate) fn page_response<V: Serialize>(&self, data: Vec<V>, next: Option<&C>) -> Response {
        let next_cursor = next.map(|key| encode(self.scope, key));
        json(StatusCode::OK, &PageBody { data, next_cursor })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageBody<V> {
    data: Vec<V>,
    next_cursor: Option<String>,
}

/// The list that a cursor belongs to, with its filters: a hash of the path and of the parameters
/// other than `limit` and `cursor`. With others, the cursor would silently select a wrong page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CursorScope(u64);

impl CursorScope {
    /// The order of the parameters does not matter.
    fn new(path: &str, params: &[(Cow<'_, str>, Cow<'_, str>)]) -> Self {
        let is_filter = |name: &str| !["limit", "cursor"].contains(&name);
        let mut filters: Vec<_> = params.iter().filter(|(name, _)| is_filter(name)).collect();
        filters.sort_unstable();
        let texts = filters.into_iter().flat_map(|(name, value)| [&**name, &**value]);
        // FNV-1a: the same on all nodes and in all versions.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for text in std::iter::once(path).chain(texts) {
            // UTF-8 does not contain the byte 0xff, which ends each text.
            for byte in text.bytes().chain([0xff]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        Self(hash)
    }
}

/// The number of hexadecimal digits of the scope, which a cursor begins with.
const SCOPE_DIGITS: usize = 16;

fn encode(scope: CursorScope, key: &impl ToString) -> String {
    let key = key.to_string();
    URL_SAFE_NO_PAD.encode(format!("{:0SCOPE_DIGITS$x}{key}", scope.0))
}

fn decode<C: FromStr>(cursor: &str) -> Option<(CursorScope, C)> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (scope, key) = std::str::from_utf8(&bytes).ok()?.split_at_checked(SCOPE_DIGITS)?;
    let scope = CursorScope(u64::from_str_radix(scope, 16).ok()?);
    Some((scope, key.parse().ok()?))
}
