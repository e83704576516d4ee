//! Mail at work: what the outbox holds goes to the operator's mail server.

use heliograph_service::context::Context;
use heliograph_service::error::Result;
use heliograph_service::mails::{self, Mail, Outcome};
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::Error as SmtpError;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::watch;

/// How often the outbox is looked into.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the mail server may take for one step.
const PATIENCE: Duration = Duration::from_secs(20);
/// Answers by which a server says that there is no such mailbox, and will not be: trying again is of no use.
const NOBODY: [u16; 3] = [550, 551, 553];

/// The way to a mail server.
#[derive(Debug)]
pub struct Mailer {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mailer {
    /// A way to the server that `url` names, with mail from this sender.
    ///
    /// # Errors
    /// What is wrong with either, without the secret in it.
    pub fn new(url: &str, from: &str) -> std::result::Result<Self, String> {
        let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|_| {
            "mail.smtp_url can't be read: write it like smtp://user:password@mail.example.com:587?tls=required"
        })?;
        let from = from.parse().map_err(|_| {
            format!("mail.from '{from}' is no address: write it like Heliograph <sms@example.com>")
        })?;
        Ok(Self { server: server.timeout(Some(PATIENCE)).build(), from })
    }

    async fn send(&self, mail: &Mail) -> (Outcome, Option<String>) {
        let message = match self.message(mail) {
            Ok(message) => message,
            Err(why) => return (Outcome::Refused, Some(why)),
        };
        match self.server.send(message).await {
            Ok(_) => (Outcome::Sent, None),
            Err(e) if is_final(&e) => (Outcome::Refused, Some(e.to_string())),
            Err(e) => (Outcome::Later, Some(e.to_string())),
        }
    }

    fn message(&self, mail: &Mail) -> std::result::Result<Message, String> {
        let to = mail.recipient.parse().map_err(|_| "the recipient is no address".to_owned())?;
        let (subject, body) = mails::parts(mail);
        let at = mails::written(mail).map_err(|e| e.to_string())?.millis().unsigned_abs();
        // The same in each try, so that a server can tell that it has the mail already.
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

fn is_final(e: &SmtpError) -> bool {
    e.status().is_some_and(|code| NOBODY.contains(&u16::from(code)))
}

/// Runs until `stop` turns true.
pub(crate) async fn run(context: Context, mailer: Mailer, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        if let Err(error) = turn(&context, &mailer).await {
            tracing::warn!(%error, "mail has to wait");
        }
    }
}

async fn turn(context: &Context, mailer: &Mailer) -> Result<()> {
    for mail in mails::due(context).await? {
        let (outcome, why) = mailer.send(&mail).await;
        let kept = mails::settle(context, &mail, outcome).await?;
        let (id, tries, why) = (mail.id, mail.tries, why.unwrap_or_default());
        match (outcome, kept) {
            (Outcome::Sent, _) => tracing::info!(mail = %id, "mail sent"),
            (_, true) => {
                tracing::warn!(mail = %id, tries, why, "the mail server did not take a mail: it is tried again")
            }
            (_, false) => tracing::error!(mail = %id, tries, why, "a mail is given up"),
        }
    }
    Ok(())
}
