//! Sends the mail in the outbox through the operator's SMTP server.

use crate::worker::{PeriodicTask, Worker};
use heliograph_service::identity::mails::{self, MailOutcome, OutgoingMail};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Result;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::Error as SmtpError;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::watch;

/// The polling interval of the outbox.
const PERIOD: Duration = Duration::from_secs(1);
/// The time limit of each SMTP command.
const TIMEOUT: Duration = Duration::from_secs(20);
/// SMTP replies for a mailbox that does not exist (RFC 5321 §4.2.3); retrying is useless.
const NO_MAILBOX: [u16; 3] = [550, 551, 553];

/// An SMTP client with a fixed sender.
#[derive(Debug)]
pub struct Mailer {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mailer {
    /// Creates a mailer for the server `url` and the sender `from`.
    ///
    /// # Errors
    /// A text that names the invalid setting, without the password in it.
    pub fn new(url: &str, from: &str) -> std::result::Result<Self, String> {
        let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|_| {
            "mail.smtp_url is invalid (example: smtp://user:password@mail.example.com:587?tls=required)"
        })?;
        let from = from.parse().map_err(|_| {
            format!("mail.from '{from}' is invalid (example: Heliograph <sms@example.com>)")
        })?;
        Ok(Self { server: server.timeout(Some(TIMEOUT)).build(), from })
    }

    async fn send(&self, mail: &OutgoingMail) -> (MailOutcome, Option<String>) {
        let message = match self.message(mail) {
            Ok(message) => message,
            Err(why) => return (MailOutcome::Rejected, Some(why)),
        };
        match self.server.send(message).await {
            Ok(_) => (MailOutcome::Sent, None),
            Err(e) if is_permanent(&e) => (MailOutcome::Rejected, Some(e.to_string())),
            Err(e) => (MailOutcome::Retry, Some(e.to_string())),
        }
    }

    fn message(&self, mail: &OutgoingMail) -> std::result::Result<Message, String> {
        let to =
            mail.recipient.parse().map_err(|_| "the recipient address is invalid".to_owned())?;
        let (subject, body) = mails::subject_and_body(mail);
        let at = mails::created_at(mail).map_err(|e| e.to_string())?.millis().unsigned_abs();
        // The same in each attempt, so that a server can detect duplicates.
        let id = format!("<{}@{}>", mail.id, self.from.email.domain());
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(subject)
            .date(UNIX_EPOCH + Duration::from_millis(at))
            .message_id(Some(id))
            .header(ContentType::TEXT_PLAIN)
            .body(body.to_owned())
            .map_err(|e| e.to_string())
    }
}

fn is_permanent(e: &SmtpError) -> bool {
    e.status().is_some_and(|code| NO_MAILBOX.contains(&u16::from(code)))
}

/// The mail in the outbox, and the server that it is sent through.
struct Outbox {
    context: Context,
    mailer: Mailer,
}

/// Runs until `stop` turns true.
pub(crate) async fn run(context: Context, mailer: Mailer, stop: watch::Receiver<bool>) {
    Worker { interval: PERIOD, stop }.run(&mut Outbox { context, mailer }).await;
}

impl PeriodicTask for Outbox {
    const FAILURE: &'static str = "failed to process the mail queue";

    async fn turn(&mut self) -> Result<()> {
        for mail in mails::due(&self.context).await? {
            let (outcome, why) = self.mailer.send(&mail).await;
            let kept = mails::settle(&self.context, &mail, outcome).await?;
            let (id, tries, why) = (mail.id, mail.tries, why.unwrap_or_default());
            match (outcome, kept) {
                (MailOutcome::Sent, _) => tracing::info!(mail = %id, "mail sent"),
                (_, true) => {
                    tracing::warn!(mail = %id, tries, why, "mail delivery failed, will retry")
                }
                (_, false) => {
                    tracing::error!(mail = %id, tries, why, "mail delivery failed permanently")
                }
            }
        }
        Ok(())
    }
}
