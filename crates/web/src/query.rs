//! What stands behind the question mark: read strictly, since a mistyped filter must not show everything.

use crate::body::sentence;
use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode};
use crate::view::json;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use std::borrow::Cow;
use std::str::FromStr;

const DEFAULT_LIMIT: i64 = 50;
const MOST: i64 = 100;

/// Refuses any query: it would be passed over in silence, and `?dryRun=true` would send for real.
pub(crate) fn none(uri: &Uri) -> Result<(), Problem> {
    match uri.query() {
        None | Some("") => Ok(()),
        Some(_) => {
            let detail = "Nothing is read from the query here: leave out what stands behind the question mark.";
            Err(Problem::invalid(detail, vec![fault("query", FaultCode::UnknownField, detail)]))
        }
    }
}

fn fault(pointer: &str, code: FaultCode, detail: &str) -> Fault {
    Fault { pointer: pointer.to_owned(), code, detail: detail.to_owned() }
}

/// The parameters that nobody has taken yet, and the faults found so far.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    left: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// What was asked for, for who mistyped a name.
    known: Vec<&'static str>,
    faults: Vec<Fault>,
}

impl<'a> Params<'a> {
    /// Reads what stands behind the question mark.
    pub(crate) fn read(uri: &'a Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let left = url::form_urlencoded::parse(query.as_bytes()).collect();
        Self { left, known: Vec::new(), faults: Vec::new() }
    }

    /// Notes that a parameter is wrong.
    fn fault(&mut self, name: &str, code: FaultCode, detail: &str) {
        self.faults.push(fault(&format!("query:{name}"), code, detail));
    }

    fn take(&mut self, name: &'static str) -> Option<Cow<'a, str>> {
        self.known.push(name);
        let at = self.left.iter().position(|(n, _)| n == name)?;
        let (_, value) = self.left.remove(at);
        if self.left.iter().any(|(n, _)| n == name) {
            self.left.retain(|(n, _)| n != name);
            self.fault(name, FaultCode::DuplicateField, "This stands there twice.");
            return None;
        }
        Some(value)
    }

    /// A text that may be left out.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<Cow<'a, str>> {
        let value = self.take(name)?;
        if value.contains('\0') {
            self.fault(name, FaultCode::InvalidCharacter, "This must not hold the character NUL.");
            return None;
        }
        Some(value)
    }

    /// What may be left out and is otherwise read by `read`, which says what is wrong.
    pub(crate) fn parsed<T>(
        &mut self,
        name: &'static str,
        code: FaultCode,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.take(name)?;
        read(&value).map_err(|detail| self.fault(name, code, &sentence(&detail))).ok()
    }

    /// Everything that was wrong, if anything was: also the parameters that nobody knows.
    pub(crate) fn end(mut self) -> Result<(), Problem> {
        let known = self.known.join(", ");
        for (name, _) in std::mem::take(&mut self.left) {
            let detail = format!("There is no such parameter here; there are: {known}.");
            self.fault(&name, FaultCode::UnknownField, &detail);
        }
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Problem::invalid("The query can't be used: see 'errors'.", self.faults)),
        }
    }
}

/// Which part of a list is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Page<C> {
    /// At most so many.
    limit: i64,
    /// What follows this.
    pub(crate) after: Option<C>,
}

impl<C: FromStr + ToString> Page<C> {
    /// Reads `limit` and `cursor`, where there is nothing else.
    pub(crate) fn read(uri: &Uri) -> Result<Self, Problem> {
        let mut params = Params::read(uri);
        let page = Self::take(&mut params);
        params.end()?;
        Ok(page)
    }

    /// Takes `limit` and `cursor`.
    pub(crate) fn take(params: &mut Params<'_>) -> Self {
        let limit = params.parsed("limit", FaultCode::OutOfRange, |value| match value.parse() {
            // What Rust reads begins with a plus, too; the document's integers do not.
            Ok(limit) if (1..=MOST).contains(&limit) && !value.starts_with('+') => Ok(limit),
            _ => Err(format!("this must be a number from 1 to {MOST}")),
        });
        let after = params.parsed("cursor", FaultCode::InvalidCursor, |value| {
            let why = "this is no cursor: take nextCursor of the page before";
            decode(value).ok_or_else(|| why.to_owned())
        });
        Self { limit: limit.unwrap_or(DEFAULT_LIMIT), after }
    }

    /// At most so many are shown.
    pub(crate) fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    /// How many to look for: one more than are shown tells whether there is a next page.
    pub(crate) const fn look(&self) -> i64 {
        self.limit + 1
    }

    /// The page as an answer; `key` is what the next page follows.
    pub(crate) fn answer<T, V: Serialize>(
        &self,
        found: &[T],
        key: impl Fn(&T) -> C,
        view: impl Fn(&T) -> V,
    ) -> Response {
        let limit = self.limit();
        let shown = found.get(..limit).unwrap_or(found);
        let last = shown.last().filter(|_| found.len() > limit);
        listed(shown.iter().map(view).collect(), last.map(key).as_ref())
    }
}

/// A page as an answer, and what the next one follows.
pub(crate) fn listed<V: Serialize>(data: Vec<V>, next: Option<&impl ToString>) -> Response {
    json(StatusCode::OK, &Listed { data, next_cursor: next.map(encode) })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<V> {
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
