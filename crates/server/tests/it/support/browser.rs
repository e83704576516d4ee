//! A browser without JavaScript: it keeps cookies, fills in forms and follows redirects.

use crate::support::http::{HttpResponse, Request};
use crate::support::server::Server;
use std::cell::RefCell;
use std::collections::BTreeMap;
use url::form_urlencoded::Serializer;

/// The maximum number of redirects.
const REDIRECTS: usize = 5;

/// A browser, with or without a session.
pub(crate) struct Browser<'a> {
    server: &'a Server,
    cookies: RefCell<BTreeMap<String, String>>,
}

/// A page in a browser.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The path after all redirects.
    pub(crate) path: String,
    pub(crate) response: HttpResponse,
}

impl<'a> Browser<'a> {
    /// Opens a browser without a session.
    pub(crate) fn new(server: &'a Server) -> Self {
        Self { server, cookies: RefCell::default() }
    }

    /// Signs in as the demo operator, with the command of the welcome message.
    pub(crate) fn of_operator(server: &'a Server) -> Self {
        server.welcome();
        Self::of(server, "demo@localhost")
    }

    /// Signs in as the owner of this account, with a link from the command line.
    pub(crate) fn of(server: &'a Server, email: &str) -> Self {
        Self::by_link(server, &server.stdout(&["account", "link", "--email", email]))
    }

    fn by_link(server: &'a Server, link: &str) -> Self {
        let browser = Self::new(server);
        let path = path_of(link);
        let page = browser.open(&path);
        let page = browser.send(&page, &path, &[]);
        assert_eq!(page.path, "/phone", "{link}: {}", page.text());
        browser
    }

    /// Returns the cookies.
    pub(crate) fn cookies(&self) -> BTreeMap<String, String> {
        self.cookies.borrow().clone()
    }

    /// Sets a cookie, such as the session of another browser.
    #[cfg(feature = "test-browser")]
    pub(crate) fn set_cookie(&self, name: &str, value: &str) {
        self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
    }

    /// Sends one request with the cookies, and keeps the cookies of the response.
    pub(crate) fn ask(&self, request: Request) -> HttpResponse {
        let cookies = self.cookies();
        let sent: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = request.header("Accept", "text/html").header("User-Agent", "Browser");
        let response = self.server.ask(&request.header("Cookie", sent.join("; ")));
        for cookie in response.all("set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
        }
        response
    }

    /// Requests a page, without following redirects.
    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        self.ask(Request::get(path))
    }

    /// Sends a form with the origin of our own pages, without following redirects.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> HttpResponse {
        self.ask(form(path, fields).header("Origin", "http://test"))
    }

    /// Opens a page, and follows redirects.
    pub(crate) fn open(&self, path: &str) -> Page {
        self.follow(path, self.get(path))
    }

    /// Fills `fields` into the form with this action, and sends it with its other values.
    pub(crate) fn send(&self, page: &Page, action: &str, fields: &[(&str, &str)]) -> Page {
        let form = page.form(action);
        let typed = |name: &String| fields.iter().any(|(typed, _)| typed == name);
        let kept: Vec<_> = form.into_iter().filter(|(name, _)| !typed(name)).collect();
        let mut all: Vec<_> = kept.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        all.extend(fields);
        self.follow(action, self.post(action, &all))
    }

    fn follow(&self, path: &str, mut response: HttpResponse) -> Page {
        let mut path = path.to_owned();
        for _ in 0..REDIRECTS {
            if response.status != 303 {
                return Page { path, response };
            }
            response.header("location").unwrap().clone_into(&mut path);
            response = self.get(&path);
        }
        panic!("too many redirects: {path}")
    }
}

/// Returns the path of a sign-in link; commands do not know the port of the server.
pub(crate) fn path_of(link: &str) -> String {
    let (_, token) = link.trim().rsplit_once("/sign-in/").unwrap();
    format!("/sign-in/{token}")
}

/// A form as browsers send it, without headers about its origin.
pub(crate) fn form(path: &str, fields: &[(&str, &str)]) -> Request {
    let body = Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = Request::new("POST", path).body(body);
    request.header("Content-Type", "application/x-www-form-urlencoded")
}

/// The same form as `multipart/form-data`.
pub(crate) fn form_with_files(path: &str, fields: &[(&str, &str)]) -> Request {
    let part = |(name, value): &(&str, &str)| {
        format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let body: String = fields.iter().map(part).chain(["--edge--\r\n".to_owned()]).collect();
    let request = Request::new("POST", path).body(body);
    request.header("Content-Type", "multipart/form-data; boundary=edge")
}

impl Page {
    pub(crate) fn text(&self) -> String {
        self.response.text()
    }

    /// Returns whether the page contains this text.
    pub(crate) fn contains(&self, words: &str) -> bool {
        unescaped(&self.text()).contains(words)
    }

    /// Returns the value of the tile with this name.
    pub(crate) fn tile(&self, name: &str) -> String {
        let html = self.text();
        let (_, rest) =
            html.split_once(&format!(">{name}</dt>")).unwrap_or_else(|| panic!("{html}"));
        let value = rest.split_once("\"tile-value").unwrap().1.split_once('>').unwrap().1;
        value.split('<').next().unwrap().to_owned()
    }

    /// Returns the CSRF token of the page.
    pub(crate) fn csrf(&self) -> String {
        let all = tags(&self.text(), "input");
        let field = all.iter().find(|tag| attribute(tag, "name").as_deref() == Some("csrf"));
        field.and_then(|tag| attribute(tag, "value")).unwrap_or_else(|| panic!("{}", self.path))
    }

    /// Returns the idempotency key of the first form that has one.
    pub(crate) fn once(&self) -> String {
        let all = tags(&self.text(), "input");
        let field =
            all.iter().find(|tag| attribute(tag, "name").as_deref() == Some("idempotency_key"));
        field.and_then(|tag| attribute(tag, "value")).unwrap_or_else(|| panic!("{}", self.path))
    }

    /// Returns the values of the form with this action.
    fn form(&self, action: &str) -> Vec<(String, String)> {
        let html = self.text();
        let forms = html.split("<form ").skip(1).filter_map(|form| form.split("</form>").next());
        // A fragment is not sent to the server.
        let leads = |form: &str| attribute(form, "action")?.split('#').next().map(str::to_owned);
        let is_it = |form: &&str| leads(form).as_deref() == Some(action);
        let mut forms = forms.filter(is_it);
        fields(forms.next().unwrap_or_else(|| panic!("{}: no form {action}", self.path)))
    }
}

/// Returns the values of a form.
pub(crate) fn fields(form: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for input in tags(form, "input") {
        let kind = attribute(&input, "type").unwrap_or_default();
        let unticked = ["checkbox", "radio"].contains(&&*kind) && !input.contains(" checked");
        if let Some(name) = attribute(&input, "name").filter(|_| !unticked) {
            fields.push((name, attribute(&input, "value").unwrap_or_default()));
        }
    }
    for area in form.split("<textarea ").skip(1) {
        let (tag, rest) = area.split_once('>').unwrap();
        let text = rest.split("</textarea>").next().unwrap();
        fields.extend(attribute(tag, "name").map(|name| (name, unescaped(text))));
    }
    for select in form.split("<select ").skip(1) {
        let select = select.split("</select>").next().unwrap();
        let options = tags(select, "option");
        let chosen = options.iter().find(|o| o.contains(" selected")).or(options.first());
        let value = chosen.and_then(|option| attribute(option, "value"));
        fields.extend(attribute(select, "name").zip(value));
    }
    fields
}

/// Returns the tags with this name, without their brackets.
pub(crate) fn tags(html: &str, kind: &str) -> Vec<String> {
    let begin = format!("<{kind}");
    let opened = html.split(&begin).skip(1).filter(|rest| rest.starts_with([' ', '>', '\n']));
    opened.map(|rest| rest.split('>').next().unwrap_or_default().to_owned()).collect()
}

/// Returns the unescaped value of an attribute.
pub(crate) fn attribute(tag: &str, name: &str) -> Option<String> {
    let tag = format!(" {}", tag.split('>').next()?);
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    Some(unescaped(rest.split('"').next()?))
}

fn unescaped(html: &str) -> String {
    let entities =
        [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    entities.iter().fold(html.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}
