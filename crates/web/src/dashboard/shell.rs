//! The shell: what stands around every page.

use crate::dashboard::assets;

/// What was done, or was not.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// Whether it worked.
    pub(crate) good: bool,
    /// In words.
    pub(crate) text: String,
}

impl Notice {
    /// It worked.
    pub(crate) fn good(text: impl Into<String>) -> Self {
        Self { good: true, text: text.into() }
    }

    /// It did not.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self { good: false, text: text.into() }
    }
}

/// What stands around a page of somebody who is signed in.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    /// What the page is called.
    pub(crate) title: String,
    /// The entry of the navigation that leads here.
    pub(crate) here: &'static str,
    /// The version of the assets.
    pub(crate) version: &'static str,
    /// What lets scripts run.
    pub(crate) nonce: String,
    /// What lets forms come back.
    pub(crate) csrf: String,
    /// Who is signed in.
    pub(crate) email: String,
    /// The account that is looked at.
    pub(crate) account: String,
    /// All accounts of the person.
    pub(crate) accounts: Vec<(i64, String)>,
    /// Whether test messages are looked at, not live ones.
    pub(crate) test: bool,
    /// The person operates the installation.
    pub(crate) operator: bool,
    /// The person may change keys, webhooks and people.
    pub(crate) manages: bool,
    /// The person may send, and look after lists.
    pub(crate) sends: bool,
    /// What the account has, with its currency.
    pub(crate) balance: String,
    /// What was just done.
    pub(crate) notice: Option<Notice>,
}

/// What stands around a page of somebody who is not signed in.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    /// What the page is called.
    pub(crate) title: String,
    /// The version of the assets.
    pub(crate) version: &'static str,
    /// What lets scripts run.
    pub(crate) nonce: String,
    /// What lets forms come back; empty on pages without one.
    pub(crate) csrf: String,
    /// What was just done.
    pub(crate) notice: Option<Notice>,
}

impl Plain {
    /// Around a page with this title.
    pub(crate) fn new(title: &str, nonce: String) -> Self {
        Self {
            title: title.to_owned(),
            version: assets::VERSION,
            nonce,
            csrf: String::new(),
            notice: None,
        }
    }
}
