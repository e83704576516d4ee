//! Starting: what is refused is refused with a sentence that helps.

use crate::database::{Engine, each_engine};
use crate::http::{self, Request};
use crate::patience::eventually;
use crate::process::{Process, command};
use crate::send_sms::hello;
use crate::server::Server;
use crate::smsc::Smsc;
use std::net::{Ipv4Addr, TcpListener};

each_engine!(start: one_server_per_folder roles_can_be_split);

/// What the program says when it can't start.
pub(crate) fn refusal(server: &mut Server, arguments: &[&str]) -> String {
    server.launch_with(arguments);
    let status = server.process().wait();
    let (told, talk) = (server.process().stdout.text(), server.process().stderr.text());
    assert_eq!((status.code(), told.as_str()), (Some(1), ""), "{talk}");
    assert!(talk.lines().any(|l| l.starts_with("heliograph: ")), "{talk}");
    talk
}

fn one_server_per_folder(engine: Engine) {
    let server = Server::start(engine);
    let mut second = server.command();
    let mut second = Process::start(second.args(["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(second.wait().code(), Some(1));
    let talk = second.stderr.text();
    assert!(talk.contains("another heliograph is running on data"), "{talk}");
    // The first one has not noticed.
    let key = server.key();
    server.ended(&key, &server.accepted(&key, &hello("+447700900123")));
}

/// One node answers requests, another talks to carriers; on SQLite there is one node, which has one
/// role after the other.
fn roles_can_be_split(engine: Engine) {
    let mut web = Server::new(engine, "");
    web.launch_with(&["serve", "--listen", "127.0.0.1:0", "--role", "web"]);
    web.await_ready();
    let key = web.key();
    let id = web.accepted(&key, &hello("+447700900123"));
    assert_eq!(web.message(&key, &id).json()["status"], "QUEUED");
    #[cfg(feature = "test-postgres")]
    if engine == Engine::Postgres {
        let mut engine = web.beside();
        engine.launch_with(&["serve", "--role", "engine"]);
        assert_eq!(web.ended(&key, &id)["status"], "DELIVERED");
        web.ended(&key, &web.accepted(&key, &hello("+447700900124")));
        assert!(engine.listens().is_none() && engine.stop().success());
        return;
    }
    assert!(web.stop().success());
    web.launch_with(&["serve", "--role", "engine"]);
    let done = "SELECT count(*) FROM messages WHERE status = 2";
    eventually("it is delivered", || (web.database.number(done) == 1).then_some(()));
    assert!(web.stop().success());
}

#[test]
fn an_open_door_is_refused() {
    let mut server = Server::new(Engine::Sqlite, "");
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let talk = refusal(&mut server, &["serve", "--listen", listen]);
        assert!(talk.contains(listen) && talk.contains("--behind-proxy"), "{talk}");
        assert!(talk.contains("server.tls_cert") && talk.contains("--tls-key"), "{talk}");
    }
    assert!(!server.home.path().join("data").exists());
    server.launch_with(&["serve", "--listen", "0.0.0.0:0", "--behind-proxy"]);
    let port = eventually("it listens", || {
        let log = server.log();
        let line = log.lines().find(|l| l.contains("listening"))?;
        line.rsplit(':').next()?.trim().parse::<u16>().ok()
    });
    let answer = http::ask((Ipv4Addr::LOCALHOST, port).into(), &Request::get("/healthz")).unwrap();
    assert_eq!(answer.status, 200);
}

#[test]
fn a_taken_port_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut server = Server::new(Engine::Sqlite, "");
    let talk = refusal(&mut server, &["serve", "--listen", &address]);
    assert!(talk.contains(&format!("server.listen {address} can't be listened on")), "{talk}");
    let port = taken.local_addr().unwrap().port().to_string();
    let mut smsc = Process::start(command().args(["smsc", "--port", &port]));
    assert_eq!(smsc.wait().code(), Some(1));
    assert!(smsc.stderr.text().contains(&format!("{address} can't be listened on")));
    let other = Smsc::start(&[]);
    assert_ne!(other.port().to_string(), port);
}

#[test]
fn a_configuration_that_is_wrong_is_told() {
    for (config, hint) in [
        ("[server]\nlisten_address = 'x'", "did you mean 'listen'?"),
        ("[sever]", "did you mean 'server'?"),
        ("[[carriers]]\nname = 'a'\nkind = 'smpp'\nhots = 'x'", "did you mean 'host'?"),
        ("[server", "heliograph.toml"),
        ("[server]\nlisten = 8080", "listen"),
        ("[server]\nlisten = 'localhost'", "listen"),
        ("[database]\nurl = 'mysql://localhost/x'", "database.url"),
        ("[database]\nurl = 'postgres://ann:hunter2@127.0.0.1:1/x'", "database.url"),
        ("[database]\nurl = 'postgres://ann:hunter2@[x/'", "database.url"),
        ("[database]\nurl = { env = 'NOT_SET_ANYWHERE' }", "$NOT_SET_ANYWHERE"),
        ("[[carriers]]\nname = 'a'\nkind = 'smpp'", "'a' needs a host"),
        (
            "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'x'\npassword = { file = 'gone' }",
            "gone",
        ),
        (
            "[[carriers]]\nname = 'simulated'\nkind = 'simulated'",
            "taken by the carrier of test messages",
        ),
        ("[[carriers]]\nname = 'a'\nkind = 'simulated'\nwindow = 0", "at least 1"),
        (
            "[[routes]]\nprefix = ''\ncarriers = ['a']",
            "names a carrier that [[carriers]] does not have",
        ),
        ("[rates]\nfile = 'gone.csv'", "rates.file gone.csv can't be read"),
        ("[rates]\ndefault = '-1'", "can't be negative"),
        ("[telemetry]\nlog = '=='", "telemetry.log can't be read"),
        ("[telemetry]\nformat = 'xml'", "format"),
        ("[server]\ndata_dir = '/proc/nothing'", "server.data_dir /proc/nothing"),
    ] {
        let mut server = Server::new(Engine::Sqlite, config);
        let talk = refusal(&mut server, &[]);
        assert!(talk.contains(hint), "{config}: {talk}");
        assert!(!talk.contains("hunter2"), "{talk}");
    }
}

#[test]
fn an_identity_that_is_none_is_told() {
    let mut server = Server::new(Engine::Sqlite, "");
    std::fs::create_dir(server.home.path().join("data")).unwrap();
    std::fs::write(server.home.path().join("data/node"), "me").unwrap();
    let talk = refusal(&mut server, &[]);
    assert!(talk.contains("data/node is no node's identity"), "{talk}");
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let mut server = Server::new(Engine::Sqlite, "");
    let file = server.home.path().join("data/heliograph.db");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let text = "My memoirs. ".repeat(1_000);
    std::fs::write(&file, &text).unwrap();
    let talk = refusal(&mut server, &[]);
    assert!(talk.contains("not a database"), "{talk}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}
