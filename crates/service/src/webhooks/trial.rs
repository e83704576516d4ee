//! Trials: what was sent to an endpoint to try it out, and what came back.

use crate::context::Context;
use crate::error::{Error, Result};
use heliograph_domain::event::{Content, Event, Occurrence};
use heliograph_domain::id::EventId;
use heliograph_domain::target::Target;
use heliograph_domain::time::Timestamp;
use heliograph_domain::trouble::Advice;
use heliograph_domain::webhook::Endpoint;
use heliograph_store::{attempts, events};

/// A test that has come to its end.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The event that was sent.
    pub event: EventId,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub took: i32,
    /// What went wrong, in words.
    pub detail: Option<String>,
    /// How the answer's body began.
    pub body: Option<String>,
    /// What to do about it; nothing after a success.
    pub advice: Option<Advice>,
    /// When it was sent, and signed.
    pub sent_at: Timestamp,
}

impl Trial {
    /// How a test of this endpoint went; nothing while it is under way.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such event.
    pub async fn of(cx: &Context, endpoint: &Endpoint, event: EventId) -> Result<Option<Self>> {
        let mut conn = cx.db.read().await?;
        let found = events::get(&mut conn, endpoint.account, event).await?;
        let (_, first) = found.ok_or(Error::NotFound)?;
        let Some(first) = first else { return Ok(None) };
        let attempts = attempts::of(&mut conn, endpoint.account, event).await?;
        let attempt = attempts.into_iter().find(|a| a.endpoint == endpoint.id);
        let (detail, body) = attempt.map_or((None, None), |a| (a.detail, a.body));
        let status = u16::try_from(first.outcome).ok().filter(|status| *status > 0);
        Ok(Some(Self {
            event,
            status,
            took: first.duration,
            advice: Advice::about(status, detail.as_deref().unwrap_or_default()),
            detail,
            body,
            sent_at: Timestamp(first.at.millis() - i64::from(first.duration)),
        }))
    }

    /// Whether the endpoint took it.
    pub fn taken(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The request as it was sent: its head, with the signature of that instant, and its body byte for byte.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such event.
    pub async fn request(&self, cx: &Context, endpoint: &Endpoint) -> Result<(String, String)> {
        let mut conn = cx.db.read().await?;
        let found = events::get(&mut conn, endpoint.account, self.event).await?;
        let (row, _) = found.ok_or(Error::NotFound)?;
        let body = sample(&row).render();
        let (path, host) = Target::parse(&endpoint.url)
            .map_or_else(|_| (String::new(), String::new()), |t| (t.path(), t.authority()));
        let mut head = format!("POST {path}\nhost: {host}\ncontent-length: {}\n", body.len());
        for (name, value) in endpoint.headers(self.sent_at, row.id, &body) {
            head.push_str(&format!("{name}: {value}\n"));
        }
        Ok((head, String::from_utf8_lossy(&body).into_owned()))
    }
}

fn sample(row: &Occurrence) -> Event {
    let content = Content::Test(row.kind);
    Event { id: row.id, account: row.account, mode: row.mode, at: row.at, content }
}
