//! A person's browser without scripts: it keeps cookies, fills in forms and follows redirects.

use crate::http::{Answer, Request};
use crate::server::Server;
use std::cell::RefCell;
use std::collections::BTreeMap;
use url::form_urlencoded::Serializer;

/// More redirects than this are a ring.
const REDIRECTS: usize = 5;

/// A browser, signed in or not.
pub(crate) struct Browser<'a> {
    server: &'a Server,
    cookies: RefCell<BTreeMap<String, String>>,
}

/// What a browser shows.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The address that was answered, after all redirects.
    pub(crate) path: String,
    pub(crate) answer: Answer,
}

impl<'a> Browser<'a> {
    /// Nobody yet.
    pub(crate) fn new(server: &'a Server) -> Self {
        Self { server, cookies: RefCell::default() }
    }

    /// Whoever follows the greeting's link.
    pub(crate) fn greeted(server: &'a Server) -> Self {
        let greeting = server.greeting();
        let link = greeting.split_whitespace().find(|word| word.contains("/sign-in/")).unwrap();
        Self::by_link(server, link)
    }

    /// Whoever owns this account, by a link from the command line.
    pub(crate) fn of(server: &'a Server, email: &str) -> Self {
        Self::by_link(server, &server.told(&["account", "link", "--email", email]))
    }

    fn by_link(server: &'a Server, link: &str) -> Self {
        let browser = Self::new(server);
        let path = path_of(link);
        let page = browser.open(&path);
        let page = browser.send(&page, &path, &[]);
        assert_eq!(page.path, "/phone", "{link}: {}", page.text());
        browser
    }

    /// What it knows of its session.
    pub(crate) fn cookies(&self) -> BTreeMap<String, String> {
        self.cookies.borrow().clone()
    }

    /// Asks once, with its cookies, and keeps those of the answer.
    pub(crate) fn ask(&self, request: Request) -> Answer {
        let cookies = self.cookies();
        let sent: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = request.header("Accept", "text/html").header("User-Agent", "Browser");
        let answer = self.server.ask(&request.header("Cookie", sent.join("; ")));
        for cookie in answer.all("set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    /// Asks for a page, once.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path))
    }

    /// Sends fields as a page of ours would, once.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.ask(form(path, fields).header("Origin", "http://test"))
    }

    /// Opens a page, wherever it leads.
    pub(crate) fn open(&self, path: &str) -> Page {
        self.follow(path, self.get(path))
    }

    /// Fills in the form that posts to `action` and sends it: `fields` beside what stands in it already.
    pub(crate) fn send(&self, page: &Page, action: &str, fields: &[(&str, &str)]) -> Page {
        let form = page.form(action);
        let typed = |name: &String| fields.iter().any(|(typed, _)| typed == name);
        let kept: Vec<_> = form.into_iter().filter(|(name, _)| !typed(name)).collect();
        let mut all: Vec<_> = kept.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        all.extend(fields);
        self.follow(action, self.post(action, &all))
    }

    fn follow(&self, path: &str, mut answer: Answer) -> Page {
        let mut path = path.to_owned();
        for _ in 0..REDIRECTS {
            if answer.status != 303 {
                return Page { path, answer };
            }
            answer.header("location").unwrap().clone_into(&mut path);
            answer = self.get(&path);
        }
        panic!("redirected in a ring: {path}")
    }
}

/// The path of a link to sign in: commands don't know at which port a test's server listens.
pub(crate) fn path_of(link: &str) -> String {
    let (_, token) = link.trim().rsplit_once("/sign-in/").unwrap();
    format!("/sign-in/{token}")
}

/// A form as browsers send it, without a word of where it comes from.
pub(crate) fn form(path: &str, fields: &[(&str, &str)]) -> Request {
    let body = Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = Request::new("POST", path).body(body);
    request.header("Content-Type", "application/x-www-form-urlencoded")
}

/// The same in the way in which files are sent.
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
        self.answer.text()
    }

    /// Whether a person can read this on it.
    pub(crate) fn says(&self, words: &str) -> bool {
        unescaped(&self.text()).contains(words)
    }

    /// The field that lets its forms come back.
    pub(crate) fn csrf(&self) -> String {
        let all = tags(&self.text(), "input");
        let field = all.iter().find(|tag| attribute(tag, "name").as_deref() == Some("csrf"));
        field.and_then(|tag| attribute(tag, "value")).unwrap_or_else(|| panic!("{}", self.path))
    }

    /// The name under which whatever its first such form makes is made one time.
    pub(crate) fn once(&self) -> String {
        let all = tags(&self.text(), "input");
        let field = all.iter().find(|tag| attribute(tag, "name").as_deref() == Some("once"));
        field.and_then(|tag| attribute(tag, "value")).unwrap_or_else(|| panic!("{}", self.path))
    }

    /// What stands in the fields of the form that posts to `action`.
    fn form(&self, action: &str) -> Vec<(String, String)> {
        let html = self.text();
        let forms = html.split("<form ").skip(1).filter_map(|form| form.split("</form>").next());
        // The part of the page to show then is nobody's business but the browser's.
        let leads = |form: &str| attribute(form, "action")?.split('#').next().map(str::to_owned);
        let is_it = |form: &&str| leads(form).as_deref() == Some(action);
        let mut forms = forms.filter(is_it);
        fields(forms.next().unwrap_or_else(|| panic!("{}: no form {action}", self.path)))
    }
}

/// What stands in the fields of a form.
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

/// The tags of a kind, without their brackets.
pub(crate) fn tags(html: &str, kind: &str) -> Vec<String> {
    let begin = format!("<{kind}");
    let opened = html.split(&begin).skip(1).filter(|rest| rest.starts_with([' ', '>', '\n']));
    opened.map(|rest| rest.split('>').next().unwrap_or_default().to_owned()).collect()
}

/// The value of an attribute, as it was before it was escaped.
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
