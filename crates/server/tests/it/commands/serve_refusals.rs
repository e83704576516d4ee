//! Refusals of `heliograph serve`, which do not depend on the database engine.

use crate::support::http::{self, Request};
use crate::support::process::{Process, command};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::eventually;
use std::net::{Ipv4Addr, TcpListener};

#[test]
fn a_public_address_needs_tls_or_a_proxy() {
    let mut server = Server::new("");
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let stderr = server.fails_to_start(&["serve", "--listen", listen]);
        assert!(stderr.contains(listen) && stderr.contains("--behind-proxy"), "{stderr}");
        assert!(stderr.contains("server.tls_cert") && stderr.contains("--tls-key"), "{stderr}");
    }
    assert!(!server.home.path().join("data").exists());
    server.launch_with(&["serve", "--listen", "0.0.0.0:0", "--behind-proxy"]);
    let port = eventually("the server listens", || {
        let log = server.log();
        let line = log.lines().find(|l| l.contains("listening"))?;
        line.rsplit(':').next()?.trim().parse::<u16>().ok()
    });
    let response =
        http::ask((Ipv4Addr::LOCALHOST, port).into(), &Request::get("/healthz")).unwrap();
    assert_eq!(response.status, 200);
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut server = Server::new("");
    let stderr = server.fails_to_start(&["serve", "--listen", &address]);
    let hint =
        format!("failed to listen on {address}; choose another address or port with --listen");
    assert!(stderr.contains(&hint), "{stderr}");
    assert!(!stderr.contains(" ERROR ") && !stderr.contains(" WARN "), "{stderr}");
    let port = taken.local_addr().unwrap().port().to_string();
    let mut smsc = Process::start(command().args(["smsc", "--port", &port]));
    assert_eq!(smsc.wait().code(), Some(1));
    assert!(smsc.stderr.text().contains(&format!("failed to listen on {address}")));
    let other = Smsc::start(&[]);
    assert_ne!(other.port().to_string(), port);
}

#[test]
fn an_invalid_configuration_is_reported() {
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
            "reserved for the carrier of test messages",
        ),
        ("[[carriers]]\nname = 'a'\nkind = 'simulated'\nwindow = 0", "at least 1"),
        (
            "[[routes]]\nprefix = ''\ncarriers = ['a']",
            "names a carrier that is not configured in [[carriers]]",
        ),
        ("[rates]\nfile = 'gone.csv'", "rates.file: failed to read gone.csv"),
        ("[rates]\ndefault = '-1'", "must not be negative"),
        (
            "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'x'\n[rates]\ndefault = '0'",
            "any stranger could send at your expense",
        ),
        (
            "[server]\npublic_url = 'https://sms.example.com/path'",
            "must be an http(s) URL without a path",
        ),
        ("[telemetry]\nlog = '=='", "telemetry.log: invalid filter"),
        ("[telemetry]\nformat = 'xml'", "format"),
        (
            "[server]\nlisten = '127.0.0.1:0'\ndata_dir = '/proc/nothing'",
            "server.data_dir: failed to create /proc/nothing",
        ),
    ] {
        let mut server = Server::new(config);
        let stderr = server.fails_to_start(&[]);
        assert!(stderr.contains(hint), "{config}: {stderr}");
        assert!(!stderr.contains("hunter2"), "{stderr}");
    }
}

#[test]
fn an_invalid_node_identity_is_reported() {
    let mut server = Server::new("");
    std::fs::create_dir(server.home.path().join("data")).unwrap();
    std::fs::write(server.home.path().join("data/node"), "me").unwrap();
    let stderr = server.fails_to_start(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(stderr.contains("data/node does not contain the identity of a node"), "{stderr}");
}
