//! A crawler of the dashboard, which finds every page and every form.

use crate::support::browser::{Browser, Page, attribute, fields, tags};
use crate::support::http::Request;
use crate::support::server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// The maximum number of pages of one kind.
const MAX_ALIKE: usize = 3;
/// Routes that are not pages: event streams and files.
const NOT_PAGES: [&str; 2] = ["/live", "/assets/{version}/{name}"];

/// A route of the dashboard.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Route {
    pub(crate) path: String,
    pub(crate) reads: bool,
    pub(crate) posts: bool,
}

impl Route {
    /// Returns whether a path matches this route.
    pub(crate) fn matches(&self, address: &str) -> bool {
        let address = address.split('?').next().unwrap_or_default();
        let parts = self.path.split('/').zip(address.split('/'));
        let same = |(route, part): (&str, &str)| route.starts_with('{') || route == part;
        address.split('/').count() == self.path.split('/').count() && parts.clone().all(same)
    }

    /// Returns whether the path has an id. A phone number is not an id, because every account may
    /// write to it.
    pub(crate) fn has_id(&self) -> bool {
        self.path.replace("{number}", "").contains('{')
    }
}

/// Returns every route in the dashboard's source. The methods come from requests to the server.
pub(crate) fn routes(server: &Server) -> Vec<Route> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboard/src");
    let mut paths = BTreeSet::new();
    added(&folder, &mut paths).unwrap();
    let route = |path: String| {
        let response = server.ask(&Request::new("BREW", &path.replace(['{', '}'], "")));
        let allowed =
            response.header("allow").unwrap_or_else(|| panic!("{path}: {}", response.status));
        let knows = |method| allowed.split(',').any(|known| known == method);
        Route { reads: knows("GET"), posts: knows("POST"), path }
    };
    let routes: Vec<_> = paths.into_iter().map(route).collect();
    assert!(routes.len() > 5, "{routes:?}");
    routes.into_iter().filter(|r| !NOT_PAGES.contains(&r.path.as_str())).collect()
}

fn added(folder: &Path, paths: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            added(&path, paths)?;
        } else {
            let code = fs::read_to_string(&path)?;
            for rest in code.split(".route(").skip(1) {
                let address = first_literal(&code, rest.trim_start());
                paths.insert(address.unwrap_or_else(|| panic!("{}: {rest:.40}", path.display())));
            }
        }
    }
    Ok(())
}

/// Returns the string literal at the beginning of `rest`, or the value of the constant there.
fn first_literal(code: &str, rest: &str) -> Option<String> {
    let rest = match rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()? {
        "" => rest,
        name => code.split_once(&format!("const {name}: &str = "))?.1,
    };
    Some(rest.strip_prefix('"')?.split('"').next()?.to_owned())
}

/// A form with the method POST, and its values.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) action: String,
    /// True for `multipart/form-data`.
    pub(crate) files: bool,
    pub(crate) fields: Vec<(String, String)>,
}

impl Form {
    /// Returns the fields, without fields that differ each time.
    fn stable_fields(&self) -> Vec<(String, String)> {
        let stays =
            |field: &&(String, String)| !["csrf", "idempotency_key"].contains(&field.0.as_str());
        self.fields.iter().filter(stays).cloned().collect()
    }

    /// Returns the fields with another CSRF token, or without one.
    pub(crate) fn with_csrf<'a>(&'a self, csrf: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
        let others = self.fields.iter().filter(|(name, _)| name != "csrf");
        let others = others.map(|(name, value)| (name.as_str(), value.as_str()));
        csrf.map(|csrf| ("csrf", csrf)).into_iter().chain(others).collect()
    }
}

/// The pages and forms that are reachable by links.
pub(crate) struct Crawl {
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) forms: Vec<Form>,
}

impl Crawl {
    /// Crawls the current mode.
    pub(crate) fn current_mode(browser: &Browser<'_>, routes: &[Route]) -> Self {
        let mut crawl = Self { pages: BTreeMap::new(), forms: Vec::new() };
        crawl.walk(browser, routes);
        crawl
    }

    /// Crawls test and live mode.
    pub(crate) fn both_modes(browser: &Browser<'_>, routes: &[Route]) -> Self {
        let mut crawl = Self::current_mode(browser, routes);
        // Live mode, if the browser has a session.
        if let Some(page) = crawl.pages.values().find(|p| p.text().contains("action=\"/mode\"")) {
            let csrf = page.csrf();
            assert_eq!(browser.post("/mode", &[("csrf", &csrf), ("mode", "live")]).status, 303);
            crawl.walk(browser, routes);
            assert_eq!(browser.post("/mode", &[("csrf", &csrf), ("mode", "test")]).status, 303);
        }
        let mut known = BTreeSet::new();
        crawl.forms.retain(|form| known.insert((form.action.clone(), form.stable_fields())));
        crawl
    }

    /// Contains one page that no link leads to.
    pub(crate) fn single(page: Page) -> Self {
        Self { forms: forms(&page), pages: BTreeMap::from([(page.path.clone(), page)]) }
    }

    /// Follows every link, and keeps the first version of each page.
    fn walk(&mut self, browser: &Browser<'_>, routes: &[Route]) {
        let (mut seen, mut kinds) = (BTreeSet::new(), BTreeMap::<_, usize>::new());
        let fixed = routes.iter().filter(|r| r.reads && !r.path.contains('{'));
        let mut open: Vec<_> = fixed.map(|r| r.path.clone()).collect();
        while let Some(address) = open.pop() {
            let route = routes.iter().find(|r| r.reads && r.matches(&address));
            let Some(route) = route.filter(|_| seen.insert(address.clone())) else { continue };
            let kind = kinds.entry((route.path.clone(), names(&address))).or_default();
            *kind += 1;
            if *kind > MAX_ALIKE {
                continue;
            }
            let response = browser.get(&address);
            if response.status == 303 {
                open.extend(response.header("location").map(str::to_owned));
                continue;
            }
            let page = Page { path: address.clone(), response };
            if page.response.status == 200 && page.is_html() {
                open.extend(page.links());
                self.forms.extend(forms(&page));
            }
            self.pages.entry(address).or_insert(page);
        }
    }
}

/// Returns the names in a query; two pages with the same names are of one kind.
fn names(address: &str) -> Vec<String> {
    let query = address.split_once('?').map(|(_, query)| query).unwrap_or_default();
    query.split('&').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())).collect()
}

impl Page {
    pub(crate) fn is_html(&self) -> bool {
        self.response.header("content-type").is_some_and(|kind| kind.starts_with("text/html"))
    }

    /// Returns the links within this service.
    fn links(&self) -> Vec<String> {
        let html = self.text();
        let mut all = Vec::new();
        for tag in html.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
            let link = attribute(tag, "href").filter(|_| tag.starts_with("a "));
            all.extend(link.into_iter().chain(attribute(tag, "hx-get")));
        }
        all.retain(|link| link.starts_with('/'));
        all.iter().map(|link| link.split('#').next().unwrap_or_default().to_owned()).collect()
    }
}

/// Returns the POST forms of a page, with the value of their first button.
fn forms(page: &Page) -> Vec<Form> {
    let html = page.text();
    let forms = html.split("<form ").skip(1).filter_map(|form| form.split("</form>").next());
    let posting = forms.filter(|form| attribute(form, "method").as_deref() == Some("post"));
    let read = |form: &str| {
        let action = attribute(form, "action").unwrap_or_else(|| page.path.clone());
        let action = action.split('#').next().unwrap_or_default().to_owned();
        let mut fields = fields(form);
        for (name, value) in &mut fields {
            if value.is_empty() {
                typical(name).clone_into(value);
            }
        }
        for button in tags(form, "button").iter().take(1) {
            fields.extend(attribute(button, "name").zip(attribute(button, "value")));
        }
        let files = attribute(form, "enctype").is_some();
        let tags = form.split('<').map(|rest| rest.split('>').next().unwrap_or_default());
        let others = tags.flat_map(|tag| [attribute(tag, "formaction"), attribute(tag, "hx-post")]);
        let actions: BTreeSet<_> = others.flatten().chain([action]).collect();
        let form = move |action| Form { action, files, fields: fields.clone() };
        actions.into_iter().map(form).collect::<Vec<_>>()
    };
    posting.flat_map(read).collect()
}

/// Returns a valid value for a field.
fn typical(name: &str) -> &'static str {
    match name {
        "email" => "new@example.com",
        "url" => "https://example.com/hook",
        "recipient" | "number" | "numbers" => "+447700900999",
        "originator" => "Shop",
        _ => "some words that are long enough",
    }
}
