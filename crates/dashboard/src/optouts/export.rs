//! `GET /optouts/{list}/export`: an opt-out list as CSV, which can be imported again.

use crate::error_page::PageError;
use crate::optouts::parse_list;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use heliograph_domain::optout::Optout;
use heliograph_domain::phone::Recipient;
use heliograph_service::audience::optouts::{self, OptoutListRef};
use heliograph_service::kernel::caller::Caller;
use std::io;
use std::sync::Arc;

/// Numbers per database read; the export streams, so memory use does not depend on the size of the
/// list.
const PAGE: i64 = 1_000;

const HEADERS: [(header::HeaderName, &str); 3] = [
    (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
    (header::CONTENT_DISPOSITION, "attachment; filename=\"opt-outs.csv\""),
    (header::CACHE_CONTROL, "no-store"),
];

/// The position in the list.
struct Reader {
    app: Arc<DashboardState>,
    caller: Caller,
    which: OptoutListRef,
    /// The last number read; `None` before the first page.
    after: Option<Recipient>,
    ended: bool,
}

pub(super) async fn export(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    Path(list): Path<String>,
) -> Result<Response, PageError> {
    let (caller, which) = (request.caller(), parse_list(&list)?);
    // A missing list must be reported before the file begins.
    optouts::list(&app.context, &caller, which).await?;
    let reader = Reader { app, caller, which, after: None, ended: false };
    let pages = stream::unfold(reader, async |mut reader| {
        if reader.ended {
            return None;
        }
        let page = reader.next().await;
        // An error aborts the download, so that a partial file is not mistaken for a complete one.
        reader.ended |= page.is_err();
        Some((page, reader))
    });
    // The compression layer polls the stream again after its end.
    Ok((HEADERS, Body::from_stream(pages.fuse())).into_response())
}

impl Reader {
    async fn next(&mut self) -> io::Result<Bytes> {
        let after = self.after.unwrap_or(Recipient(0));
        let found =
            optouts::numbers(&self.app.context, &self.caller, self.which, after, PAGE).await;
        let found = found.map_err(io::Error::other)?;
        let mut out = csv::Writer::from_writer(Vec::new());
        if self.after.is_none() {
            out.write_record(["number", "note", "source", "at", "originator"])?;
        }
        for optout in &found {
            out.write_record(record(optout))?;
        }
        self.ended = i64::try_from(found.len()).is_ok_and(|n| n < PAGE);
        self.after = found.last().map(|last| last.number).or(self.after);
        out.into_inner().map(Bytes::from).map_err(|e| io::Error::other(e.to_string()))
    }
}

fn record(optout: &Optout) -> [String; 5] {
    [
        format!("+{}", optout.number),
        escape_formula(optout.note.as_deref().unwrap_or_default()),
        optout.source.name().to_owned(),
        optout.at.to_string(),
        escape_formula(optout.originator.as_deref().unwrap_or_default()),
    ]
}

/// Escapes text that a spreadsheet would execute as a formula (CSV injection).
fn escape_formula(text: &str) -> String {
    // Spreadsheets skip blanks and line breaks, and read full-width signs like the others.
    let is_sign = |c: char| "=+-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(c);
    let is_risky = |c: char| is_sign(c) || c.is_whitespace() || c.is_control();
    let mark = if text.starts_with(is_risky) { "'" } else { "" };
    format!("{mark}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_escaped() {
        for (note, written) in [
            ("=cmd|calc", "'=cmd|calc"),
            ("+1", "'+1"),
            ("@x", "'@x"),
            ("\r=1", "'\r=1"),
            ("\n=1", "'\n=1"),
            (" =1", "' =1"),
            ("\u{a0}=1", "'\u{a0}=1"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("a = b", "a = b"),
            ("", ""),
        ] {
            assert_eq!(escape_formula(note), written);
        }
    }
}
