//! `/v1/openapi.json` and the pages under `/docs`.

use crate::exchange::request;
use crate::support::TestApi;
use axum::http::header;
use insta::assert_snapshot;

#[tokio::test]
async fn openapi_document_is_served_with_its_tag() {
    let api = TestApi::start().await;
    let document = api.get("", "/v1/openapi.json").await;
    let headers = [header::CONTENT_TYPE, header::CACHE_CONTROL, header::X_CONTENT_TYPE_OPTIONS];
    let headers = headers.map(|name| document.headers[name].to_str().unwrap());
    assert_eq!(headers, ["application/json", "no-cache", "nosniff"]);
    let committed = include_str!("../../../../openapi.json");
    assert!(document.body == committed, "the served document is not openapi.json");
    let tag = &document.headers["etag"];
    let again = request("GET", "", "/v1/openapi.json").header("If-None-Match", tag);
    let again = api.ask(again, "").await;
    assert_eq!((again.status.as_u16(), again.body.as_str()), (304, ""));
    assert_eq!(again.headers["etag"], tag);
}

#[tokio::test]
async fn pages_and_their_assets_are_served() {
    let api = TestApi::start().await;
    let mut table = String::new();
    for path in ["/docs", "/docs/errors", "/docs/style.css", "/docs/icon.svg", "/docs/nowhere"] {
        let response = api.get("", path).await;
        let kind = response.headers["content-type"].to_str().unwrap();
        table += &format!("{path}: {} {kind}\n", response.status.as_u16());
    }
    assert_snapshot!(table, @r"
    /docs: 200 text/html; charset=utf-8
    /docs/errors: 200 text/html; charset=utf-8
    /docs/style.css: 200 text/css; charset=utf-8
    /docs/icon.svg: 200 image/svg+xml
    /docs/nowhere: 404 application/problem+json
    ");
    assert_eq!(api.get("", "/docs?theme=dark").await.status, 400);
}

#[tokio::test]
async fn problem_type_leads_to_its_page() {
    let api = TestApi::start().await;
    let problem = api.get("", "/v1/balance").await.json();
    let page = api.get("", problem["type"].as_str().unwrap()).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains(problem["title"].as_str().unwrap()));
}
