//! The API over HTTPS, with HTTP/1.1 and HTTP/2.

use crate::support::api::hello;
use crate::support::https_client::{
    H2, HSTS, HTTP_1_1, HttpsClient, Pair, get, json, send_sms, start,
};
use crate::support::wait::eventually;
use std::collections::HashSet;

fn header<'a>(response: &'a hyper::Response<hyper::body::Bytes>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|v| v.to_str().unwrap())
}

#[test]
fn both_protocols_give_the_same_responses() {
    let pair = Pair::new();
    let server = start(&pair);
    assert!(server.welcome().contains("curl -i https://127.0.0.1:"));
    let key = server.key();
    for (protocol, version) in [(H2, hyper::Version::HTTP_2), (HTTP_1_1, hyper::Version::HTTP_11)] {
        let mut client = HttpsClient::open(server.address(), &pair, protocol).unwrap();
        let response = client.ask(send_sms(&key, &hello("+447700900123"))).unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (201, version));
        assert_eq!(header(&response, "strict-transport-security"), HSTS);
        let id = header(&response, "x-request-id").unwrap();
        eventually("the request is logged", || server.log().contains(id).then_some(()));
        let message = json(&response)["id"].as_str().unwrap().to_owned();
        eventually("the message is delivered", || {
            let mut look = get(&format!("/v1/messages/{message}"));
            let bearer = format!("Bearer {key}").parse().unwrap();
            look.headers_mut().insert("authorization", bearer);
            (json(&client.ask(look).unwrap())["status"] == "DELIVERED").then_some(())
        });
        let mut wrong = send_sms(&key, &serde_json::json!({}));
        wrong.headers_mut().insert("x-request-id", "find-me".parse().unwrap());
        let response = client.ask(wrong).unwrap();
        assert_eq!(response.status(), 400);
        assert_eq!(header(&response, "content-type"), Some("application/problem+json"));
        assert_eq!(header(&response, "strict-transport-security"), HSTS);
        let problem = json(&response);
        assert_eq!(
            (&problem["requestId"], &problem["code"]),
            (&"find-me".into(), &"invalid_request".into())
        );
        assert_eq!(client.ask(get("/gone")).unwrap().status(), 404);
        assert_eq!(client.ask(get("/readyz")).unwrap().body(), "ready\n");
    }
    eventually("both requests are logged", || {
        (server.log().matches("find-me").count() == 2).then_some(())
    });
}

#[test]
fn one_http2_connection_carries_500_requests() {
    let pair = Pair::new();
    let server = start(&pair);
    let key = server.key();
    let mut client = HttpsClient::open(server.address(), &pair, H2).unwrap();
    let numbers = (0..500).map(|n| hello(&format!("+4477009{n:05}")));
    let responses = client.ask_all(numbers.map(|body| send_sms(&key, &body)));
    let ids: HashSet<String> = responses
        .into_iter()
        .map(|a| json(&a.unwrap())["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(ids.len(), 500);
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 500);
}
