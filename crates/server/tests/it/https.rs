//! HTTPS: both protocols say the same, certificates are renewed under way, and what is wrong is told at start.

use crate::database::{Engine, each_engine};
use crate::http::{self, Request};
use crate::https_client::{CONFIG, Client, H2, HTTP_1_1, Pair, get, json, send_sms};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::start::refusal;
use std::collections::HashSet;

each_engine!(https: both_protocols_say_the_same one_connection_carries_many);

const HSTS: Option<&str> = Some("max-age=31536000");

fn start(engine: Engine, pair: &Pair) -> Server {
    let mut server = Server::new(engine, CONFIG);
    pair.put(&server);
    server.launch();
    server.await_ready();
    server
}

fn header<'a>(response: &'a hyper::Response<hyper::body::Bytes>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|v| v.to_str().unwrap())
}

fn both_protocols_say_the_same(engine: Engine) {
    let pair = Pair::new();
    let server = start(engine, &pair);
    assert!(server.greeting().contains("curl -i https://127.0.0.1:"));
    let key = server.key();
    for (protocol, version) in [(H2, hyper::Version::HTTP_2), (HTTP_1_1, hyper::Version::HTTP_11)] {
        let mut client = Client::open(server.address(), &pair, protocol).unwrap();
        let answer = client.ask(send_sms(&key, &hello("+447700900123"))).unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (201, version));
        assert_eq!(header(&answer, "strict-transport-security"), HSTS);
        let id = header(&answer, "x-request-id").unwrap();
        eventually("it is logged", || server.log().contains(id).then_some(()));
        let message = json(&answer)["id"].as_str().unwrap().to_owned();
        eventually("it is delivered", || {
            let mut look = get(&format!("/v1/messages/{message}"));
            let bearer = format!("Bearer {key}").parse().unwrap();
            look.headers_mut().insert("authorization", bearer);
            (json(&client.ask(look).unwrap())["status"] == "DELIVERED").then_some(())
        });
        let mut wrong = send_sms(&key, &serde_json::json!({}));
        wrong.headers_mut().insert("x-request-id", "find-me".parse().unwrap());
        let answer = client.ask(wrong).unwrap();
        assert_eq!(answer.status(), 400);
        assert_eq!(header(&answer, "content-type"), Some("application/problem+json"));
        assert_eq!(header(&answer, "strict-transport-security"), HSTS);
        let problem = json(&answer);
        assert_eq!(
            (&problem["requestId"], &problem["code"]),
            (&"find-me".into(), &"invalid_request".into())
        );
        assert_eq!(client.ask(get("/gone")).unwrap().status(), 404);
        assert_eq!(client.ask(get("/readyz")).unwrap().body(), "ready\n");
    }
    eventually("both are logged", || (server.log().matches("find-me").count() == 2).then_some(()));
}

fn one_connection_carries_many(engine: Engine) {
    let pair = Pair::new();
    let server = start(engine, &pair);
    let key = server.key();
    let mut client = Client::open(server.address(), &pair, H2).unwrap();
    let numbers = (0..500).map(|n| hello(&format!("+4477009{n:05}")));
    let answers = client.ask_all(numbers.map(|body| send_sms(&key, &body)));
    let ids: HashSet<String> = answers
        .into_iter()
        .map(|a| json(&a.unwrap())["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(ids.len(), 500);
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 500);
}

fn mismatches(server: &Server) -> usize {
    server.log().matches("does not belong to the first certificate").count()
}

#[test]
fn a_renewed_certificate_is_taken_up() {
    let (old, new, third) = (Pair::new(), Pair::new(), Pair::new());
    let mut server = start(Engine::Sqlite, &old);
    let address = server.address();
    let mut kept = Client::open(address, &old, H2).unwrap();
    let healthy = |client: &mut Client| client.ask(get("/healthz")).unwrap().status() == 200;
    assert!(healthy(&mut kept) && Client::open(address, &new, H2).is_err());
    // By itself.
    new.put(&server);
    eventually("the new certificate is shown", || Client::open(address, &new, HTTP_1_1).ok());
    assert!(Client::open(address, &old, H2).is_err());
    // A key that belongs to another certificate changes nothing, and is told once.
    let broken = Pair { cert: third.cert.clone(), key: old.key.clone() };
    broken.put(&server);
    server.process().hang_up();
    eventually("it is told", || (mismatches(&server) == 1).then_some(()));
    server.process().hang_up();
    eventually("it was looked at", || (server.log().matches("SIGHUP").count() == 2).then_some(()));
    assert!(healthy(&mut Client::open(address, &new, H2).unwrap()));
    // At once, when asked to.
    third.put(&server);
    server.process().hang_up();
    eventually("the third certificate is shown", || Client::open(address, &third, H2).ok());
    assert!(healthy(&mut kept));
    assert_eq!(mismatches(&server), 1);
    for pair in [old, new, third] {
        let secret = pair.key.lines().nth(1).unwrap().to_owned();
        assert!(!server.log().contains(&secret), "a private key");
    }
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_hangup_ends_nothing() {
    let mut server = Server::start(Engine::Sqlite);
    server.process().hang_up();
    eventually("it is noticed", || server.log().contains("SIGHUP").then_some(()));
    assert_eq!(server.ask(&Request::get("/healthz")).status, 200);
}

#[test]
fn what_is_wrong_with_a_certificate_is_told() {
    let (pair, other) = (Pair::new(), Pair::new());
    let mut server = Server::new(Engine::Sqlite, "");
    pair.put(&server);
    std::fs::write(server.home.path().join("other.pem"), other.key).unwrap();
    for (arguments, hint) in [
        (
            &["serve", "--tls-cert", "cert.pem"][..],
            "server.tls_cert needs server.tls_key (--tls-key)",
        ),
        (&["serve", "--tls-key", "key.pem"], "server.tls_key needs server.tls_cert (--tls-cert)"),
        (&["serve", "--tls-cert", "gone", "--tls-key", "key.pem"], "gone can't be read"),
        (
            &["serve", "--tls-cert", "key.pem", "--tls-key", "key.pem"],
            "key.pem holds no certificate",
        ),
        (
            &["serve", "--tls-cert", "cert.pem", "--tls-key", "cert.pem"],
            "cert.pem holds no private key",
        ),
        (
            &["serve", "--tls-cert", "cert.pem", "--tls-key", "other.pem"],
            "the key in other.pem does not belong to the first certificate in cert.pem",
        ),
    ] {
        let talk = refusal(&mut server, arguments);
        assert!(talk.contains(hint) && talk.contains("server.tls_"), "{talk}");
        assert!(!talk.contains("MI"), "{talk}");
    }
    assert!(!server.home.path().join("data").exists());
    // With both, others may come.
    server.launch_with(&[
        "--listen",
        "0.0.0.0:0",
        "--tls-cert",
        "cert.pem",
        "--tls-key",
        "key.pem",
    ]);
    eventually("it listens", || server.log().contains("listening").then_some(()));
}

#[test]
fn plain_http_promises_nothing_unless_a_proxy_says_so() {
    let hsts = |server: &Server, proto: &str| {
        let answer = server.ask(&Request::get("/healthz").header("X-Forwarded-Proto", proto));
        answer.header("strict-transport-security").map(str::to_owned)
    };
    let plain = Server::start(Engine::Sqlite);
    let answer = plain.ask(&Request::get("/healthz"));
    assert_eq!((answer.status, answer.header("strict-transport-security")), (200, None));
    assert_eq!(hsts(&plain, "https"), None);
    let proxied = Server::with(Engine::Sqlite, "[server]\nbehind_proxy = true\n");
    assert_eq!(hsts(&proxied, "https").as_deref(), HSTS);
    assert_eq!(hsts(&proxied, "http"), None);
    assert_eq!(proxied.ask(&Request::get("/healthz")).header("strict-transport-security"), None);
}

#[test]
fn plain_http_is_told_to_speak_https() {
    let server = start(Engine::Sqlite, &Pair::new());
    let answer = http::ask(server.address(), &Request::get("/healthz")).unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("speaks HTTPS"), "{}", answer.text());
}

/// curl loses an answer over HTTP/2 when the rest of its body is cut off: who is refused early is told all the same.
#[cfg(feature = "test-peers")]
#[test]
fn curl_is_told_what_is_wrong() {
    let pair = Pair::new();
    let server = start(Engine::Sqlite, &pair);
    let ca = server.home.path().join("cert.pem");
    let ask = |key: &str, path: &str, bytes: usize| {
        let body = server.home.path().join("body.json");
        std::fs::write(&body, "x".repeat(bytes)).unwrap();
        let mut curl = std::process::Command::new("curl");
        curl.args(["-s", "--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}"]);
        curl.arg("--cacert").arg(&ca).arg("-H").arg(format!("Authorization: Bearer {key}"));
        curl.arg("-H").arg("Content-Type: application/json").arg("--data-binary");
        curl.arg(format!("@{}", body.display())).arg(format!("https://{}{path}", server.address()));
        let output = curl.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let key = server.key();
    let told = |status: u16| (Some(0), format!("2 {status}"));
    for _ in 0..10 {
        assert_eq!(ask("hg_live_wrong", "/v1/send/sms", 60), told(401));
        assert_eq!(ask(&key, "/v1/nothing", 60), told(404));
        assert_eq!(ask("hg_live_wrong", "/v1/send/sms", 500_000), told(401));
        assert_eq!(ask(&key, "/v1/send/sms", 2_000_000), told(413));
    }
}
