//! The data that the layouts of all pages need.

use crate::assets;
use askama::Template;

/// A message about the last action, shown at the top of a page.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// Whether the action succeeded.
    pub(crate) success: bool,
    /// The message.
    pub(crate) text: String,
}

impl Notice {
    /// Creates a success message.
    pub(crate) fn success(text: impl Into<String>) -> Self {
        Self { success: true, text: text.into() }
    }

    /// Creates an error message.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { success: false, text: text.into() }
    }
}

/// The entries of the navigation whose pages show one mode: live or test.
const PAGES_WITH_MODE: [&str; 7] =
    ["overview", "phone", "messages", "conversations", "send", "optouts", "webhooks"];

/// The layout data of pages for signed-in users.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The title of the page.
    pub(crate) title: String,
    /// The entry of the navigation that is highlighted.
    pub(crate) active_nav: &'static str,
    /// The version of the assets, part of their URLs.
    pub(crate) version: &'static str,
    /// The nonce of the Content Security Policy.
    pub(crate) nonce: String,
    /// The CSRF token for forms.
    pub(crate) csrf: String,
    /// The email address of the user.
    pub(crate) email: String,
    /// The name of the selected account.
    pub(crate) account: String,
    /// The ID of the selected account.
    pub(crate) account_id: i64,
    /// All accounts of the user, with their names.
    pub(crate) accounts: Vec<(i64, String)>,
    /// Whether test mode is selected.
    pub(crate) test_mode: bool,
    /// Whether the user is an operator of this installation.
    pub(crate) is_operator: bool,
    /// Whether the operator should remove the demo operator.
    pub(crate) demo_operator: bool,
    /// Whether the user has to confirm the email address.
    pub(crate) unconfirmed: bool,
    /// Whether the session began with a sign-in link that an operator created for the user.
    pub(crate) is_by_operator: bool,
    /// Whether the user may manage API keys, webhooks and members.
    pub(crate) can_manage: bool,
    /// Whether the user may send messages and edit opt-out lists.
    pub(crate) can_send: bool,
    /// The balance of the account, with its currency.
    pub(crate) balance: String,
    /// The message about the last action.
    pub(crate) notice: Option<Notice>,
}

impl Layout {
    /// Returns whether the contents of the page depend on the mode.
    pub(crate) fn has_mode(&self) -> bool {
        PAGES_WITH_MODE.contains(&self.active_nav)
    }

    /// Returns the header of the page.
    pub(crate) const fn header(&self) -> Header<'_> {
        Header { layout: self }
    }
}

/// The header of a page: the navigation and the switches of mode, account and theme. It is a
/// template of its own, because an included one is compiled once more for each page.
#[derive(Template)]
#[template(path = "header.html")]
pub(crate) struct Header<'a> {
    layout: &'a Layout,
}

/// The layout data of pages without a session.
#[derive(Clone, Debug)]
pub(crate) struct AnonymousLayout {
    /// The title of the page.
    pub(crate) title: String,
    /// The version of the assets, part of their URLs.
    pub(crate) version: &'static str,
    /// The nonce of the Content Security Policy.
    pub(crate) nonce: String,
    /// The CSRF token for forms; empty on pages without forms.
    pub(crate) csrf: String,
    /// The message about the last action.
    pub(crate) notice: Option<Notice>,
}

impl AnonymousLayout {
    /// Creates a layout without forms.
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
