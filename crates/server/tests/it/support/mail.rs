//! An SMTP server that stores the emails it receives.

use crate::support::browser::Browser;
use crate::support::wait::eventually;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The received emails. The server thread ends with the test.
pub(crate) struct Inbox {
    address: SocketAddr,
    mails: Arc<Mutex<Vec<String>>>,
}

impl Inbox {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, mails) = (listener.local_addr().unwrap(), Arc::default());
        let inbox = Self { address, mails: Arc::clone(&mails) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mails = mails.clone();
                std::thread::spawn(move || serve(&stream.unwrap(), &mails));
            }
        });
        inbox
    }

    /// A configuration that sends emails here.
    pub(crate) fn config(&self) -> String {
        format!(
            "[mail]\nsmtp_url = 'smtp://{}'\nfrom = 'Heliograph <sms@example.com>'\n",
            self.address
        )
    }

    /// Waits for an email to this address with a link that begins so.
    pub(crate) fn to(&self, recipient: &str, path: &str) -> String {
        let begin = format!("RCPT TO:<{recipient}>");
        eventually(&format!("an email to {recipient} with {path}"), || {
            let mails = self.mails.lock().unwrap();
            mails.iter().find(|mail| mail.contains(&begin) && mail.contains(path)).cloned()
        })
    }

    /// Confirms the address of a user with the link in the email to it.
    pub(crate) fn confirm(&self, browser: &Browser<'_>, email: &str) {
        let path = link(&self.to(email, "/confirm/"), "/confirm/");
        let page = browser.send(&browser.open(&path), &path, &[]);
        assert!(page.contains("Email address confirmed"), "{}", page.text());
    }

    pub(crate) fn count(&self) -> usize {
        self.mails.lock().unwrap().len()
    }
}

/// Serves one SMTP connection (RFC 5321).
fn serve(stream: &TcpStream, mails: &Mutex<Vec<String>>) {
    let (mut lines, mut out) = (BufReader::new(stream).lines(), stream);
    let mut say = |text: &str| out.write_all(format!("{text}\r\n").as_bytes()).is_ok();
    let mut mail = String::new();
    say("220 test ESMTP");
    while let Some(Ok(line)) = lines.next() {
        match line.split([' ', ':']).next().unwrap().to_uppercase().as_str() {
            "DATA" => {
                say("354 go on");
                for line in lines.by_ref().map_while(Result::ok).take_while(|l| l != ".") {
                    mail.push_str(&format!("{line}\n"));
                }
                mails.lock().unwrap().push(std::mem::take(&mut mail));
                say("250 taken");
            }
            "QUIT" => {
                say("221 bye");
                return;
            }
            _ => {
                mail.push_str(&format!("{line}\n"));
                say("250 yes");
            }
        }
    }
}

/// Returns the path that begins with `begin` in an email.
pub(crate) fn link(mail: &str, begin: &str) -> String {
    let at = mail.find(begin).unwrap_or_else(|| panic!("no {begin} in {mail}"));
    mail[at..].split_whitespace().next().unwrap().to_owned()
}
