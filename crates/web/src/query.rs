//! What stands behind the question mark: read strictly, since a mistyped filter must not show everything.

use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode};
use crate::view::json;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use std::str::FromStr;

const DEFAULT_LIMIT: i64 = 50;
const MOST: i64 = 100;

/// Refuses any query: it would be passed over in silence, and `?dryRun=true` would send for real.
pub(crate) fn none(uri: &Uri) -> Result<(), Problem> {
    match uri.query() {
        None | Some("") => Ok(()),
        Some(_) => {
            let detail = "Nothing is read from the query here: put every field into the body.";
            Err(Problem::invalid(detail, vec![fault("query", FaultCode::UnknownField, detail)]))
        }
    }
}

fn fault(pointer: &str, code: FaultCode, detail: &str) -> Fault {
    Fault { pointer: pointer.to_owned(), code, detail: detail.to_owned() }
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
    /// Reads `limit` and `cursor`.
    pub(crate) fn read(uri: &Uri) -> Result<Self, Problem> {
        let mut page = Self { limit: DEFAULT_LIMIT, after: None };
        let mut faults = Vec::new();
        let query = uri.query().unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "limit" => match value.parse() {
                    Ok(limit) if (1..=MOST).contains(&limit) => page.limit = limit,
                    _ => {
                        let detail = format!("This must be a number from 1 to {MOST}.");
                        faults.push(fault("query:limit", FaultCode::OutOfRange, &detail));
                    }
                },
                "cursor" => match decode(&value) {
                    Some(after) => page.after = Some(after),
                    None => {
                        let detail = "This is no cursor: take nextCursor of the page before.";
                        faults.push(fault("query:cursor", FaultCode::InvalidCursor, detail));
                    }
                },
                other => {
                    let detail = "There is no such parameter here; there are limit and cursor.";
                    faults.push(fault(&format!("query:{other}"), FaultCode::UnknownField, detail));
                }
            }
        }
        match faults.is_empty() {
            true => Ok(page),
            false => Err(Problem::invalid("The query can't be used: see 'errors'.", faults)),
        }
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
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let shown = found.get(..limit).unwrap_or(found);
        let last = shown.last().filter(|_| found.len() > limit);
        let data = shown.iter().map(view).collect();
        json(StatusCode::OK, &Listed { data, next_cursor: last.map(|l| encode(&key(l))) })
    }
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
