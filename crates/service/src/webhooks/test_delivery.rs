//! Test deliveries to a webhook endpoint and their results.

use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::delivery_error::AttemptOutcome;
use heliograph_domain::event::{EventContent, StoredEvent, WebhookEvent};
use heliograph_domain::id::EventId;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_domain::webhook_url::WebhookUrl;
use heliograph_store::webhooks::attempts;
use heliograph_store::webhooks::events;

/// A finished test delivery.
#[derive(Clone, Debug)]
pub struct TestDelivery {
    /// The event.
    pub event: EventId,
    /// The status of the response, or the kind of the error.
    pub outcome: AttemptOutcome,
    /// The duration in milliseconds.
    pub took: i32,
    /// The technical detail of the error, if there was no response.
    pub detail: Option<String>,
    /// The beginning of the response body.
    pub body: Option<String>,
    /// The time when the request was signed and sent.
    pub sent_at: Timestamp,
}

impl TestDelivery {
    /// Returns the result of a test; `None` while it is in progress.
    #[boxed]
    pub async fn load(
        cx: &Context,
        endpoint: &WebhookEndpoint,
        event: EventId,
    ) -> Result<Option<Self>> {
        let mut conn = cx.db.read().await?;
        let found = events::get(&mut conn, endpoint.account, event).await?;
        let (_, first) = found.ok_or(Error::NotFound)?;
        let Some(first) = first else { return Ok(None) };
        let attempts = attempts::list_for_event(&mut conn, endpoint.account, event).await?;
        let attempt = attempts.into_iter().find(|a| a.endpoint == endpoint.id);
        let (detail, body) = attempt.map_or((None, None), |a| (a.detail, a.body));
        Ok(Some(Self {
            event,
            outcome: first.outcome,
            took: first.duration,
            detail,
            body,
            sent_at: Timestamp(first.at.millis() - i64::from(first.duration)),
        }))
    }

    /// Returns the request as it was sent: its head with the signature, and its body byte for byte.
    #[boxed]
    pub async fn request(
        &self,
        cx: &Context,
        endpoint: &WebhookEndpoint,
    ) -> Result<(String, String)> {
        let mut conn = cx.db.read().await?;
        let found = events::get(&mut conn, endpoint.account, self.event).await?;
        let (row, _) = found.ok_or(Error::NotFound)?;
        let body = sample(&row).render();
        let (path, host) = WebhookUrl::parse(&endpoint.url)
            .map_or_else(|_| (String::new(), String::new()), |t| (t.path(), t.authority()));
        let mut head = format!("POST {path}\nhost: {host}\ncontent-length: {}\n", body.len());
        for (name, value) in endpoint.headers(self.sent_at, row.id, &body) {
            head.push_str(&format!("{name}: {value}\n"));
        }
        Ok((head, String::from_utf8_lossy(&body).into_owned()))
    }
}

fn sample(row: &StoredEvent) -> WebhookEvent {
    let content = EventContent::Test(row.kind);
    WebhookEvent { id: row.id, account: row.account, mode: row.mode, at: row.at, content }
}
