//! Webhooks to hosts whose name server is slow.

use crate::support::api::hello;
use crate::support::name_server::NameServer;
use crate::support::server::Server;
use crate::support::wait::eventually;
use crate::support::webhook_sink::WebhookSink;
use std::sync::atomic::Ordering;

/// Creates an account with a webhook endpoint at this host; returns its key.
fn account(server: &Server, email: &str, host: &str, sink: &WebhookSink) -> String {
    server.stdout(&["account", "create", "--email", email]);
    let url = format!("http://{host}:{}/hook", sink.address.port());
    server.json(&["webhook", "add", "--account", email, "--url", &url]);
    server.stdout(&["key", "create", "--account", email])
}

#[test]
fn a_slow_name_server_of_one_account_does_not_delay_others() {
    let names = NameServer::start();
    let server = Server::with(&format!(
        "[webhooks]\nallow_private = ['127.0.0.1/32']\ndns_servers = ['{}']",
        names.address
    ));
    let (slow_sink, sink) = (WebhookSink::start(), WebhookSink::start());
    let slow = account(&server, "slow@example.com", "slow.example.com", &slow_sink);
    let key = account(&server, "ann@example.com", "hooks.example.com", &sink);
    names.stalled.store(true, Ordering::SeqCst);
    for n in 0..40 {
        server.accepted(&slow, &hello(&format!("4477009001{n:02}")));
    }
    eventually("a lookup gets no answer", || {
        (names.unanswered.load(Ordering::SeqCst) > 0).then_some(())
    });
    server.accepted(&key, &hello("447700900123"));
    assert_eq!(sink.wait_for(1).len(), 1);
    assert!(slow_sink.received().is_empty());
    names.stalled.store(false, Ordering::SeqCst);
    slow_sink.wait_for(1);
}

#[test]
fn resolved_addresses_are_checked() {
    let names = NameServer::start();
    let server = Server::with(&format!("[webhooks]\ndns_servers = ['{}']", names.address));
    for (host, address) in [("inside.example.com", "10.0.0.1"), ("other.example.com", "127.0.0.1")]
    {
        let url = format!("https://{host}/hook");
        let stderr =
            server.fails(&["webhook", "add", "--account", "demo@localhost", "--url", &url]);
        assert!(stderr.contains(&format!("{address} is not a public address")), "{stderr}");
    }
}
