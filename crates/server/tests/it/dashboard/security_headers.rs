//! Security headers of every dashboard page, and its resources.

use crate::support::browser::{Browser, Page, attribute, tags};
use crate::support::crawler::{Crawl, routes};
use crate::support::fixtures::{DEMO, Fixtures};
use crate::support::http::Request;
use std::collections::BTreeSet;

#[test]
fn every_page_has_a_strict_policy() {
    let fixtures = Fixtures::new();
    fixtures.fill(DEMO, "of-demo");
    let (server, routes) = (&fixtures.server, routes(&fixtures.server));
    let browser = Browser::of(server, DEMO);
    let mut pages: Vec<_> = Crawl::both_modes(&browser, &routes).pages.into_values().collect();
    pages.extend(Crawl::both_modes(&Browser::new(server), &routes).pages.into_values());
    pages.push(Page { path: "/nowhere".to_owned(), response: browser.get("/nowhere") });
    let link = browser.get("/sign-in/used");
    pages.push(Page { path: "/sign-in/used".to_owned(), response: link });
    let (mut nonces, mut assets) = (BTreeSet::new(), BTreeSet::new());
    pages.retain(Page::is_html);
    assert!(pages.len() > 5);
    for page in &pages {
        has_strict_headers(page);
        let nonce = nonce(page);
        assert!(nonces.insert(nonce.clone()), "{}: the nonce was used before", page.path);
        has_nothing_inline(page, &nonce);
        assets.extend(loaded(page));
    }
    assert!(assets.len() >= 3, "{assets:?}");
    for asset in assets {
        let response = server.ask(&Request::get(&asset));
        assert_eq!(response.status, 200, "{asset}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{asset}");
        if asset.starts_with("/assets/") {
            let kept = response.header("cache-control");
            assert_eq!(kept, Some("public, max-age=31536000, immutable"), "{asset}");
        }
    }
}

fn has_strict_headers(page: &Page) {
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(page.response.header(name), Some(value), "{}: {name}", page.path);
    }
    let policy = page.response.header("content-security-policy").unwrap();
    let rules: BTreeSet<_> = policy.split(';').map(str::trim).collect();
    for rule in [
        "default-src 'none'",
        "style-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(rules.contains(rule), "{}: {policy}", page.path);
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{}: {policy}", page.path);
    for cookie in page.response.all("set-cookie") {
        assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{}: {cookie}", page.path);
    }
}

fn nonce(page: &Page) -> String {
    let policy = page.response.header("content-security-policy").unwrap();
    let (_, rest) = policy.split_once("script-src 'nonce-").unwrap();
    let nonce = rest.split('\'').next().unwrap();
    assert!(nonce.len() >= 22, "{}: {policy}", page.path);
    nonce.to_owned()
}

fn has_nothing_inline(page: &Page, nonce: &str) {
    let html = page.text();
    for tag in html.split('<').skip(1).filter_map(|rest| rest.split_once('>')) {
        let (tag, inside) = tag;
        let names = tag.split('"').step_by(2).flat_map(str::split_whitespace);
        let names: Vec<_> = names.filter_map(|word| word.strip_suffix('=')).collect();
        let odd = names.iter().find(|name| **name == "style" || name.starts_with("on"));
        assert_eq!(odd, None, "{}: <{tag}>", page.path);
        if tag.starts_with("script") {
            assert_eq!(attribute(tag, "nonce").as_deref(), Some(nonce), "{}: <{tag}>", page.path);
            assert!(inside.trim().is_empty(), "{}: inline script: {inside}", page.path);
        }
        assert!(!tag.starts_with("style"), "{}: inline style", page.path);
    }
}

/// Returns the resources of a page, all of them from the same host.
fn loaded(page: &Page) -> Vec<String> {
    let html = page.text();
    let from = |kind, name| tags(&html, kind).into_iter().filter_map(move |t| attribute(&t, name));
    let all = from("script", "src").chain(from("link", "href")).chain(from("img", "src"));
    let all = all.chain(from("use", "href")).filter(|address| !address.starts_with("data:"));
    let all: Vec<_> = all.map(|a| a.split('#').next().unwrap().to_owned()).collect();
    assert!(
        all.iter().all(|a| a.starts_with('/') && !a.starts_with("//")),
        "{}: {all:?}",
        page.path
    );
    all
}
