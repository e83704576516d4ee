//! A browser without scripts, which calls the router.

use crate::support::page::Page;
use crate::support::site::{PASSWORD, Site};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::response::Response;
use heliograph_domain::account::Mode;
use heliograph_domain::fields::CreditNote;
use heliograph_domain::money::Amount;
use heliograph_domain::secret::Token;
use heliograph_domain::totp::TotpSecret;
use heliograph_http::ClientAddress;
use heliograph_service::identity::accounts;
use heliograph_service::identity::sessions::{self, AuthenticatedUser};
use heliograph_service::kernel::audit::Actor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tower::ServiceExt;
use url::form_urlencoded::Serializer;

/// The network address of clients.
pub(crate) const ADDRESS: [u8; 4] = [192, 0, 2, 1];
/// The session cookie.
const SESSION: &str = "heliograph";
const FORM: &str = "application/x-www-form-urlencoded";

/// A browser with its cookies.
pub(crate) struct Client<'a> {
    site: &'a Site,
    address: [u8; 4],
    cookies: RefCell<BTreeMap<String, String>>,
}

impl<'a> Client<'a> {
    /// Returns a browser without cookies.
    pub(crate) fn new(site: &'a Site) -> Self {
        Self { site, address: ADDRESS, cookies: RefCell::default() }
    }

    /// Returns the browser at another network address.
    pub(crate) fn at(self, address: [u8; 4]) -> Self {
        Self { address, ..self }
    }

    /// Returns the browser with a session.
    pub(crate) fn with_session(self, session: &Token) -> Self {
        self.cookies.borrow_mut().insert(SESSION.to_owned(), session.reveal().to_owned());
        self
    }

    /// Opens a page.
    pub(crate) async fn get(&self, path: &str) -> Page {
        self.request(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Opens the page that a response redirects to.
    pub(crate) async fn follow(&self, response: &Page) -> Page {
        assert_eq!(response.status, 303, "{}", response.body);
        self.get(response.header("location")).await
    }

    /// Sends a form with these fields only.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = Request::post(path).header(header::CONTENT_TYPE, FORM);
        self.request(request.body(Body::from(body)).unwrap()).await
    }

    /// Switches the mode by the form of a page, which the browser names in `Referer`.
    pub(crate) async fn switch_mode(&self, page: &Page, here: &str, mode: &str) -> Page {
        let csrf = page.form("/mode").remove(0).1;
        let body = Serializer::new(String::new());
        let body = { body }.extend_pairs([("csrf", csrf.as_str()), ("mode", mode)]).finish();
        let request = Request::post("/mode").header(header::CONTENT_TYPE, FORM);
        let request = request.header(header::REFERER, format!("http://localhost{here}"));
        self.request(request.body(Body::from(body)).unwrap()).await
    }

    /// Sends the form of a page with this action, with `typed` instead of its values.
    pub(crate) async fn send(&self, page: &Page, action: &str, typed: &[(&str, &str)]) -> Page {
        self.press(page, (action, action), typed).await
    }

    /// Opens a page and sends its form with this action.
    pub(crate) async fn fill(&self, path: &str, action: &str, typed: &[(&str, &str)]) -> Page {
        self.send(&self.get(path).await, action, typed).await
    }

    /// Sends the form `action` of a page by a button that leads to `target`.
    pub(crate) async fn press(
        &self,
        page: &Page,
        (action, target): (&str, &str),
        typed: &[(&str, &str)],
    ) -> Page {
        let form = page.form(action);
        let kept = form.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let kept = kept.filter(|(name, _)| typed.iter().all(|(other, _)| name != other));
        let all: Vec<_> = kept.chain(typed.iter().copied()).collect();
        self.post(target, &all).await
    }

    /// Sends a form that is on no page of this user, with a CSRF token of the user.
    pub(crate) async fn submit(&self, path: &str, typed: &[(&str, &str)]) -> Page {
        let csrf = self.csrf().await;
        self.post(path, &[&[("csrf", csrf.as_str())], typed].concat()).await
    }

    /// Returns a CSRF token of the user.
    pub(crate) async fn csrf(&self) -> String {
        self.get("/settings/security").await.form("/mode").remove(0).1
    }

    /// Sends a request with the cookies, and stores those of the response.
    pub(crate) async fn request(&self, request: Request) -> Page {
        let response = self.respond(request).await;
        for cookie in response.headers().get_all(header::SET_COOKIE) {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
        }
        Page::read(response).await
    }

    /// Sends a request with the cookies. The body of the response may be endless.
    pub(crate) async fn respond(&self, mut request: Request) -> Response {
        let pair = |(name, value): (&String, &String)| format!("{name}={value}");
        let cookies = self.cookies.borrow().iter().map(pair).collect::<Vec<_>>().join("; ");
        let headers = request.headers_mut();
        headers.insert(header::COOKIE, cookies.parse().unwrap());
        headers.insert(header::HOST, "localhost".parse().unwrap());
        request.extensions_mut().insert(ClientAddress { ip: self.address.into(), https: false });
        self.site.router.clone().oneshot(request).await.unwrap()
    }

    /// Returns the signed-in user.
    pub(crate) async fn user(&self) -> AuthenticatedUser {
        let token = Token::parse(&self.cookies.borrow()[SESSION]).unwrap();
        sessions::authenticate(self.site.cx(), &token).await.unwrap()
    }

    /// Switches to live mode, with this credit on the account.
    pub(crate) async fn go_live(&self, credit: Amount) {
        let (cx, user) = (self.site.cx(), self.user().await);
        let account = user.details.session.account;
        sessions::switch_to(cx, &user, account, Mode::Live).await.unwrap();
        if credit != Amount::ZERO {
            accounts::credit(cx, &Actor::operator(account), credit, &CreditNote::default())
                .await
                .unwrap();
        }
    }

    /// Sends a message from Shop; returns the path of the page that shows it.
    pub(crate) async fn send_text(&self, recipient: &str, text: &str) -> String {
        let typed = [("recipient", recipient), ("originator", "Shop"), ("text", text)];
        let mut sent = self.fill("/send", "/send", &typed).await;
        if sent.status == 200 {
            // The price of a live message is confirmed.
            sent = self.send(&sent, "/send", &[]).await;
        }
        sent.header("location").to_owned()
    }

    /// Sets a password, and sets up two-factor authentication with it; returns the page with the
    /// recovery codes, and the code that was used up.
    pub(crate) async fn set_up_two_factor(&self) -> (Page, String) {
        let here = "/settings/security";
        self.fill(here, "/settings/security/password", &[("password", PASSWORD)]).await;
        let begin = "/settings/security/two-factor";
        self.fill(here, begin, &[("begin_password", PASSWORD)]).await;
        let setup = self.get(here).await;
        let app = TotpSecret::parse(&setup.content("totp")).unwrap();
        let code = app.code(self.site.cx().db.now());
        let confirm = "/settings/security/two-factor/confirm";
        (self.send(&setup, confirm, &[("code", &code)]).await, code)
    }

    /// Adds a number to the default opt-out list.
    pub(crate) async fn opt_out(&self, number: &str) {
        let page = self.get("/optouts").await;
        let added = self.send(&page, &page.action("/add"), &[("number", number)]).await;
        assert_eq!(added.status, 303);
    }
}
