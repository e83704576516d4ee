//! A database server that accepts no connections for a while.

use crate::support::api::hello;
use crate::support::database::Database;
use crate::support::engine::Engine;
use crate::support::http::Request;
use crate::support::outages::{delivered_once, send_all, turned_away};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::{eventually, pause};
use std::time::Duration;

#[test]
fn a_lost_database_rejects_requests() {
    let smsc = Smsc::start(&["--receipt-delay", "300", "--resp-delay", "100"]);
    let mut server = Server::start_on(Engine::Postgres, &smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    let database = server.database.clone();
    let Database::Postgres(postgres) = &*database else { panic!("no PostgreSQL") };
    let mut ids = send_all(&server, &key, 100..130);
    postgres.disconnect();
    let ready = Request::get("/readyz");
    for n in 200..205 {
        turned_away(&server.post(&key, &hello(&format!("447700900{n}"))));
        turned_away(&server.message(&key, &ids[0]));
        assert_eq!(server.ask(&ready).status, 503);
    }
    assert_eq!(server.ask(&Request::get("/healthz")).status, 200);
    // Receipts that arrive in the meantime are rejected, and sent again.
    pause(Duration::from_millis(1_500));
    assert!(server.process().ended().is_none());
    postgres.reconnect();
    ids.push(eventually("the database is back", || {
        let response = server.post(&key, &hello("447700900400"));
        (response.status == 201).then(|| response.json()["id"].as_str().unwrap().to_owned())
    }));
    assert_eq!(server.ask(&ready).status, 200);
    delivered_once(&server, &smsc, &key, &ids);
    assert!(server.stop().success());
}
