//! A server whose accounts have objects of all kinds that pages show.

use crate::support::browser::Browser;
use crate::support::engine::Engine;
use crate::support::optouts;
use crate::support::ports::Port;
use crate::support::server::Server;
use crate::support::wait::eventually;
use crate::support::webhook_sink::{Behavior, WebhookSink};
use serde_json::json;

/// The operator's account.
pub(crate) const DEMO: &str = "demo@localhost";
/// One carrier and the mail server are down, so that messages and emails stay queued.
const CONFIG: &str = "
[[carriers]]
name = 'pretend'
kind = 'simulated'
[[carriers]]
name = 'away'
kind = 'smpp'
host = '127.0.0.1'
port = PORT
[[routes]]
prefix = '44'
carriers = ['pretend']
[[routes]]
prefix = '65'
carriers = ['away']
[rates]
default = '0.0100'
[webhooks]
allow_private = ['127.0.0.1/32']
[mail]
smtp_url = 'smtp://127.0.0.1:PORT'
from = 'sms@example.com'
";
const HANDSET: &str = "447700900123";
/// A number to which messages fail.
const OFF: &str = "447700900001";

/// A server with fixtures, and its webhook endpoints.
pub(crate) struct Fixtures {
    pub(crate) server: Server,
    well: WebhookSink,
    gone: WebhookSink,
    _away: Port,
}

impl Fixtures {
    pub(crate) fn new() -> Self {
        Self::on(Engine::current())
    }

    /// Creates fixtures on an engine that may differ from that of this run.
    pub(crate) fn on(engine: Engine) -> Self {
        let away = Port::reserve();
        let config = CONFIG.replace("PORT", &away.number.to_string());
        let server = Server::start_on(engine, &config);
        server.welcome();
        let (well, gone) = (WebhookSink::start(), WebhookSink::start());
        gone.set_behavior(Behavior::status(410));
        Self { server, well, gone, _away: away }
    }

    /// Creates an account.
    pub(crate) fn open(&self, email: &str) {
        self.server.stdout(&["account", "create", "--email", email]);
    }

    /// Fills an account with objects of all kinds; each contains `mark`.
    pub(crate) fn fill(&self, email: &str, mark: &str) {
        let server = &self.server;
        for sink in [&self.well, &self.gone] {
            let url = sink.url(&format!("/{mark}"));
            server.stdout(&["webhook", "add", "--account", email, "--url", &url, "--test"]);
        }
        let name = format!("key {mark}");
        let key = server.stdout(&["key", "create", "--account", email, "--test", "--name", &name]);
        for (recipient, text) in [(HANDSET, "Your order is on its way"), (OFF, "Is anybody there?")]
        {
            let body = json!({ "originator": "447700900555", "recipient": recipient,
                               "text": format!("{text} {mark}"), "reference": mark });
            let id = server.accepted(&key, &body);
            server.wait_until_ended(&key, &id);
        }
        let list = optouts::make(server, &key, &format!("list {mark}"));
        let added = optouts::add(server, &key, &list, &json!({ "number": "+447700900777" }));
        assert_eq!(added.status, 201, "{}", added.text());
        let browser = Browser::of(server, email);
        let phone = browser.open(&format!("/phone/{HANDSET}"));
        let words = format!("Thank you {mark}");
        browser.send(&phone, &format!("/phone/{HANDSET}/reply"), &[("reply", &words)]);
        let people = browser.open("/settings/members");
        let guest = format!("guest-{mark}@example.com");
        let invited = browser.send(&people, "/settings/members", &[("email", &guest)]);
        assert_eq!(invited.response.status, 200, "{}", invited.text());
        self.settle();
        self.fill_live(email, mark);
    }

    /// Fills the live mode with credit and a queued message.
    fn fill_live(&self, email: &str, mark: &str) {
        let server = &self.server;
        server.stdout(&["credit", "--account", email, "--amount", "10.00"]);
        let key = server.stdout(&["key", "create", "--account", email, "--live"]);
        let body = json!({ "originator": "Shop", "recipient": "+6598234567", "text": mark });
        server.accepted(&key, &body);
    }

    /// Waits until no work is left.
    fn settle(&self) {
        let left = |table| self.server.database.number(&format!("SELECT count(*) FROM {table}"));
        eventually("no work is left", || {
            let busy = ["queue", "handset_replies", "deliveries"].map(left);
            (busy.iter().sum::<i64>() == 0).then_some(())
        });
    }

    /// Adds a user to an account, with a role (as stored).
    pub(crate) fn add_member(&self, email: &str, account: &str, role: u8) {
        let account = self.account(account);
        self.server.database.change(&format!(
            "INSERT INTO memberships (account, user_id, role) \
             SELECT {account}, id, {role} FROM users WHERE email = '{email}'"
        ));
    }

    /// Returns the id of the account with this name.
    pub(crate) fn account(&self, name: &str) -> i64 {
        let sql = format!("SELECT id FROM accounts WHERE name = '{name}'");
        self.server.database.number(&sql)
    }

    /// Returns all rows of an account, without sessions and the queue.
    pub(crate) fn rows_of(&self, name: &str) -> Vec<String> {
        let (database, account) = (&self.server.database, self.account(name));
        let mut all = Vec::new();
        for table in self.tables() {
            // The last use of a key is stored with a delay.
            let columns =
                if table == "api_keys" { "id, mode, scopes, name, revoked_at" } else { "*" };
            let rows = format!("SELECT {columns} FROM {table} WHERE account = {account}");
            all.extend(database.rows(&rows).into_iter().map(|row| format!("{table}: {row}")));
        }
        all.extend(database.rows(&format!("SELECT * FROM accounts WHERE id = {account}")));
        all.extend(database.rows(&format!("SELECT * FROM users WHERE email = '{name}'")));
        all.sort();
        all
    }

    /// Returns the tables with an account column.
    fn tables(&self) -> Vec<String> {
        let sql = match *self.server.database {
            crate::support::database::Database::Sqlite(_) => {
                "SELECT m.name FROM sqlite_schema m, pragma_table_info(m.name) c \
                 WHERE m.type = 'table' AND c.name = 'account' AND m.name NOT IN ('sessions', 'queue')"
            }
            crate::support::database::Database::Postgres(_) => {
                "SELECT table_name FROM information_schema.columns WHERE column_name = 'account' \
                 AND table_schema = 'public' AND table_name NOT IN ('sessions', 'queue')"
            }
        };
        let name = |row: &String| row.split('"').nth(1).unwrap().to_owned();
        self.server.database.rows(sql).iter().map(name).collect()
    }
}
