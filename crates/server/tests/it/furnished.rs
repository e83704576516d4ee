//! A server whose accounts have one of everything that a page can show.

use crate::browser::Browser;
use crate::database::Engine;
use crate::optouts;
use crate::patience::eventually;
use crate::ports::Port;
use crate::server::Server;
use crate::sink::{Mood, Sink};
use serde_json::json;

/// Who operates the server.
pub(crate) const DEMO: &str = "demo@localhost";
/// Some of the live messages wait for a carrier that is not there, and mail for a server that is not there.
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
/// Its messages fail.
const OFF: &str = "447700900001";

/// A server, and who hears what happens on it.
pub(crate) struct Furnished {
    pub(crate) server: Server,
    well: Sink,
    gone: Sink,
    _away: Port,
}

impl Furnished {
    pub(crate) fn new(engine: Engine) -> Self {
        let away = Port::reserve();
        let server = Server::with(engine, &CONFIG.replace("PORT", &away.number.to_string()));
        server.greeting();
        let (well, gone) = (Sink::start(), Sink::start());
        gone.behave(Mood::status(410));
        Self { server, well, gone, _away: away }
    }

    /// Opens an account that belongs to a person.
    pub(crate) fn open(&self, email: &str) {
        self.server.told(&["account", "create", "--email", email]);
    }

    /// Fills a person's account; `mark` stands in everything that is made.
    pub(crate) fn fill(&self, email: &str, mark: &str) {
        let server = &self.server;
        for sink in [&self.well, &self.gone] {
            let url = sink.url(&format!("/{mark}"));
            server.told(&["webhook", "add", "--account", email, "--url", &url, "--test"]);
        }
        let name = format!("key {mark}");
        let key = server.told(&["key", "create", "--account", email, "--test", "--name", &name]);
        for (recipient, text) in [(HANDSET, "Your order is on its way"), (OFF, "Is anybody there?")]
        {
            let body = json!({ "originator": "447700900555", "recipient": recipient,
                               "text": format!("{text} {mark}"), "reference": mark });
            let id = server.accepted(&key, &body);
            server.ended(&key, &id);
        }
        let list = optouts::make(server, &key, &format!("list {mark}"));
        let added = optouts::add(server, &key, &list, &json!({ "number": "+447700900777" }));
        assert_eq!(added.status, 201, "{}", added.text());
        let browser = Browser::of(server, email);
        let phone = browser.open(&format!("/phone/{HANDSET}"));
        let words = format!("Thank you {mark}");
        browser.send(&phone, &format!("/phone/{HANDSET}/reply"), &[("text", &words)]);
        let people = browser.open("/settings/people");
        let guest = format!("guest-{mark}@example.com");
        let invited = browser.send(&people, "/settings/people", &[("email", &guest)]);
        assert_eq!(invited.answer.status, 200, "{}", invited.text());
        self.settle();
        self.fill_live(email, mark);
    }

    /// What has to do with money: a message on its way, which stays there.
    fn fill_live(&self, email: &str, mark: &str) {
        let server = &self.server;
        server.told(&["credit", "--account", email, "--amount", "10.00"]);
        let key = server.told(&["key", "create", "--account", email, "--live"]);
        let body = json!({ "originator": "Shop", "recipient": "+6598234567", "text": mark });
        server.accepted(&key, &body);
    }

    /// Waits until nothing moves any more.
    fn settle(&self) {
        let left = |table| self.server.database.number(&format!("SELECT count(*) FROM {table}"));
        eventually("all is done", || {
            let busy = ["queue", "handset_replies", "deliveries"].map(left);
            (busy.iter().sum::<i64>() == 0).then_some(())
        });
    }

    /// Lets somebody into another person's account, in a role by its code.
    pub(crate) fn let_in(&self, email: &str, account: &str, role: u8) {
        let account = self.account(account);
        self.server.database.change(&format!(
            "INSERT INTO memberships (account, member, role) \
             SELECT {account}, id, {role} FROM users WHERE email = '{email}'"
        ));
    }

    /// The number of the account with this name.
    pub(crate) fn account(&self, name: &str) -> i64 {
        let sql = format!("SELECT id FROM accounts WHERE name = '{name}'");
        self.server.database.number(&sql)
    }

    /// All that an account has, but for who is signed in to it at the moment, and what is looked at again and again.
    pub(crate) fn kept(&self, name: &str) -> Vec<String> {
        let (database, account) = (&self.server.database, self.account(name));
        let mut all = Vec::new();
        for table in self.tables() {
            // When a key was used last is written down some seconds later.
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

    /// The tables of what belongs to accounts.
    fn tables(&self) -> Vec<String> {
        let sql = match *self.server.database {
            crate::database::Database::Sqlite(_) => {
                "SELECT m.name FROM sqlite_schema m, pragma_table_info(m.name) c \
                 WHERE m.type = 'table' AND c.name = 'account' AND m.name NOT IN ('sessions', 'queue')"
            }
            #[cfg(feature = "test-postgres")]
            crate::database::Database::Postgres(_) => {
                "SELECT table_name FROM information_schema.columns WHERE column_name = 'account' \
                 AND table_schema = 'public' AND table_name NOT IN ('sessions', 'queue')"
            }
        };
        let name = |row: &String| row.split('"').nth(1).unwrap().to_owned();
        self.server.database.rows(sql).iter().map(name).collect()
    }
}
