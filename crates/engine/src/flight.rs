//! News on its way to the database: sent until it is durable, with what has to follow then.

use heliograph_carrier::carrier::{Ack, Handle};
use heliograph_service::replies::Confirmation;
use heliograph_service::writer::{Command, Handed, Progress, Writer};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long to wait before news that the database could not take is sent again.
const AGAIN: Duration = Duration::from_secs(1);

/// One batch of news, and what waits for it.
pub(crate) struct Flight {
    pub(crate) news: Progress,
    /// The settled messages: their places are free when the news is durable.
    pub(crate) held: Vec<Handed>,
    /// The receipts and messages among the news, to be acknowledged.
    pub(crate) handles: Vec<Handle>,
}

/// Where a flight ended.
pub(crate) enum Landing {
    /// Durable: acknowledge these, and answer those people.
    Done(Vec<Ack>, Vec<Confirmation>),
    /// Receipts and messages could not be stored: the carrier has to send them again; the outcomes are
    /// ours alone and fly once more.
    Again(Vec<Ack>, Flight),
    /// The writer has ended; the leases run out by themselves.
    Closed,
}

impl Flight {
    pub(crate) fn is_empty(&self) -> bool {
        let news = &self.news;
        news.settlements.is_empty() && news.receipts.is_empty() && news.heard.is_empty()
    }

    /// Waits for the writer's answer. To keep the wire's order, the command has been sent before.
    pub(crate) async fn land(
        mut self,
        reply: oneshot::Receiver<Result<Vec<Confirmation>, (impl std::fmt::Display, Progress)>>,
    ) -> Landing {
        let acks = |committed| {
            let ack = |h: &Handle| Ack { handle: *h, committed };
            self.handles.iter().map(ack).collect::<Vec<_>>()
        };
        match reply.await {
            Err(_) => Landing::Closed,
            Ok(Ok(confirmations)) => Landing::Done(acks(true), confirmations),
            Ok(Err((error, mut news))) => {
                tracing::warn!(%error, outcomes = news.settlements.len(), "news has to wait");
                let refused = acks(false);
                news.receipts.clear();
                news.heard.clear();
                self.handles.clear();
                self.news = news;
                Landing::Again(refused, self)
            }
        }
    }

    /// A pause before the next try.
    pub(crate) async fn pause(self) -> Self {
        tokio::time::sleep(AGAIN).await;
        self
    }

    /// Sends the news to the writer; the receiver is for [`Flight::land`].
    pub(crate) async fn send(
        &mut self,
        writer: &Writer,
    ) -> oneshot::Receiver<Result<Vec<Confirmation>, (impl std::fmt::Display + use<>, Progress)>>
    {
        let (reply, answer) = oneshot::channel();
        let news = std::mem::take(&mut self.news);
        // A writer that has ended drops the command, which the answer tells.
        drop(writer.send(Command::Progress(news, reply)).await);
        answer
    }
}
