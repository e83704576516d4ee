//! `heliograph serve`: the lock of the data folder, and roles.

use crate::support::api::hello;
use crate::support::engine::Engine;
use crate::support::process::Process;
use crate::support::server::Server;
use crate::support::wait::eventually;

#[test]
fn one_server_per_data_folder() {
    let server = Server::start();
    let mut second = server.command();
    let mut second = Process::start(second.args(["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(second.wait().code(), Some(1));
    let stderr = second.stderr.text();
    assert!(stderr.contains("another heliograph is running on data"), "{stderr}");
    // The first server is not affected.
    let key = server.key();
    server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900123")));
}

/// One node serves requests, and another one connects to carriers. On SQLite there is one node,
/// which has one
/// role after the other.
#[test]
fn roles_can_be_split() {
    let mut web = Server::new("");
    web.launch_with(&["serve", "--listen", "127.0.0.1:0", "--role", "web"]);
    web.wait_until_ready();
    let key = web.key();
    let id = web.accepted(&key, &hello("+447700900123"));
    assert_eq!(web.message(&key, &id).json()["status"], "QUEUED");
    if Engine::current() == Engine::Postgres {
        let mut worker = web.add_node();
        worker.launch_with(&["serve", "--role", "engine"]);
        assert_eq!(web.wait_until_ended(&key, &id)["status"], "DELIVERED");
        web.wait_until_ended(&key, &web.accepted(&key, &hello("+447700900124")));
        assert!(worker.listen_address().is_none() && worker.stop().success());
        return;
    }
    assert!(web.stop().success());
    web.launch_with(&["serve", "--role", "engine"]);
    let done = "SELECT count(*) FROM messages WHERE status = 2";
    eventually("the message is delivered", || (web.database.number(done) == 1).then_some(()));
    assert!(web.stop().success());
}
