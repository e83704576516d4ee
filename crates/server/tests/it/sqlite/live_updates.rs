//! The event stream of dashboard pages.

use crate::support::api::hello;
use crate::support::browser::Browser;
use crate::support::engine::Engine;
use crate::support::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// On PostgreSQL a stream also has events without changes on this node.
#[test]
fn sign_out_ends_the_event_stream() {
    let server = Server::start_on(Engine::Sqlite, "");
    let browser = Browser::of_operator(&server);
    let cookies: Vec<_> =
        browser.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head =
        format!("GET /live HTTP/1.1\r\nHost: localhost\r\nCookie: {}\r\n", cookies.join("; "));
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("event: changed") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream has ended");
    }
    browser.send(&browser.open("/phone"), "/sign-out", &[]);
    server.accepted(&server.key(), &hello("+447700900123"));
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("changed"), "{rest}");
}
