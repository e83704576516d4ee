//! `GET /optouts/{list}/export`: a list as a file that can be imported again.

use crate::app::App;
use crate::dashboard::optouts::which;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::Visit;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use heliograph_domain::optout::Optout;
use heliograph_domain::phone::Recipient;
use heliograph_service::caller::Caller;
use heliograph_service::optouts::{self, Which};
use std::io;
use std::sync::Arc;

/// Numbers that are read at once: however long a list is, no more of it is in memory.
const PAGE: i64 = 1_000;

const HEADERS: [(header::HeaderName, &str); 3] = [
    (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
    (header::CONTENT_DISPOSITION, "attachment; filename=\"opt-outs.csv\""),
    (header::CACHE_CONTROL, "no-store"),
];

/// How far a list has been read.
struct Reader {
    app: Arc<App>,
    caller: Caller,
    which: Which,
    /// Nothing before the first page; then the last number that was read.
    after: Option<Recipient>,
    ended: bool,
}

pub(super) async fn export(
    State(app): State<Arc<App>>,
    visit: Visit,
    Path(list): Path<String>,
) -> Result<Response, Refusal> {
    let (caller, which) = (visit.caller(), which(&list)?);
    // What is not there is said before the file begins.
    optouts::list(&app.context, &caller, which).await?;
    let reader = Reader { app, caller, which, after: None, ended: false };
    let pages = stream::unfold(reader, async |mut reader| {
        if reader.ended {
            return None;
        }
        let page = reader.next().await;
        // An error cuts the file off, so that nobody takes it for whole.
        reader.ended |= page.is_err();
        Some((page, reader))
    });
    // What compresses a page asks again after its end.
    Ok((HEADERS, Body::from_stream(pages.fuse())).into_response())
}

impl Reader {
    async fn next(&mut self) -> io::Result<Bytes> {
        let part = (self.after.unwrap_or(Recipient(0)), PAGE);
        let found = optouts::numbers(&self.app.context, &self.caller, self.which, part).await;
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
        plain(optout.note.as_deref().unwrap_or_default()),
        optout.source.name().to_owned(),
        optout.at.to_string(),
        plain(optout.originator.as_deref().unwrap_or_default()),
    ]
}

/// A text that no spreadsheet takes for a formula.
fn plain(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t']) { "'" } else { "" };
    format!("{mark}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_note_is_a_formula() {
        for (note, written) in [
            ("=cmd|calc", "'=cmd|calc"),
            ("+1", "'+1"),
            ("@x", "'@x"),
            ("a = b", "a = b"),
            ("", ""),
        ] {
            assert_eq!(plain(note), written);
        }
    }
}
