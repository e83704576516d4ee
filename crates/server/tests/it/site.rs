//! The dashboard as somebody can walk through it: every page, and every form on it.

use crate::browser::{Browser, Page, attribute, fields, tags};
use crate::http::Request;
use crate::server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// So many pages of a kind are enough.
const ALIKE: usize = 3;
/// Answers without an end, and files: no pages.
const NO_PAGES: [&str; 2] = ["/live", "/assets/{version}/{name}"];

/// A route of the dashboard, as the code adds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Route {
    pub(crate) path: String,
    pub(crate) reads: bool,
    pub(crate) posts: bool,
}

impl Route {
    /// Whether an address leads here.
    pub(crate) fn leads(&self, address: &str) -> bool {
        let address = address.split('?').next().unwrap_or_default();
        let parts = self.path.split('/').zip(address.split('/'));
        let same = |(route, part): (&str, &str)| route.starts_with('{') || route == part;
        address.split('/').count() == self.path.split('/').count() && parts.clone().all(same)
    }

    /// Whether it is about a thing with an id; a number is everybody's to write to.
    pub(crate) fn has_id(&self) -> bool {
        self.path.replace("{number}", "").contains('{')
    }
}

/// Every route that the dashboard's code adds. Which methods it knows is asked from outside.
pub(crate) fn routes(server: &Server) -> Vec<Route> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/src/dashboard");
    let mut paths = BTreeSet::new();
    added(&folder, &mut paths).unwrap();
    let route = |path: String| {
        let answer = server.ask(&Request::new("BREW", &path.replace(['{', '}'], "")));
        let allowed = answer.header("allow").unwrap_or_else(|| panic!("{path}: {}", answer.status));
        let knows = |method| allowed.split(',').any(|known| known == method);
        Route { reads: knows("GET"), posts: knows("POST"), path }
    };
    let routes: Vec<_> = paths.into_iter().map(route).collect();
    assert!(routes.len() > 5, "{routes:?}");
    routes.into_iter().filter(|r| !NO_PAGES.contains(&r.path.as_str())).collect()
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

/// The literal with which this begins, or that of the constant that is named there.
fn first_literal(code: &str, rest: &str) -> Option<String> {
    let rest = match rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()? {
        "" => rest,
        name => code.split_once(&format!("const {name}: &str = "))?.1,
    };
    Some(rest.strip_prefix('"')?.split('"').next()?.to_owned())
}

/// A form that posts, with what stands in it.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) action: String,
    /// Whether it can carry a file.
    pub(crate) files: bool,
    pub(crate) fields: Vec<(String, String)>,
}

impl Form {
    /// Its fields without those that differ each time.
    fn said(&self) -> Vec<(String, String)> {
        let stays = |field: &&(String, String)| !["csrf", "once"].contains(&field.0.as_str());
        self.fields.iter().filter(stays).cloned().collect()
    }

    /// Its fields with another proof of where it comes from, or without one.
    pub(crate) fn with_csrf<'a>(&'a self, csrf: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
        let others = self.fields.iter().filter(|(name, _)| name != "csrf");
        let others = others.map(|(name, value)| (name.as_str(), value.as_str()));
        csrf.map(|csrf| ("csrf", csrf)).into_iter().chain(others).collect()
    }
}

/// What somebody finds who follows each link.
pub(crate) struct Site {
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) forms: Vec<Form>,
}

impl Site {
    /// All that this browser's owner finds in the one of test and live mode in which they are.
    pub(crate) fn here(browser: &Browser<'_>, routes: &[Route]) -> Self {
        let mut site = Self { pages: BTreeMap::new(), forms: Vec::new() };
        site.walk(browser, routes);
        site
    }

    /// All that this browser's owner finds.
    pub(crate) fn of(browser: &Browser<'_>, routes: &[Route]) -> Self {
        let mut site = Self::here(browser, routes);
        // The live side of the account, if somebody is signed in.
        if let Some(page) = site.pages.values().find(|p| p.text().contains("action=\"/mode\"")) {
            let csrf = page.csrf();
            assert_eq!(browser.post("/mode", &[("csrf", &csrf), ("mode", "live")]).status, 303);
            site.walk(browser, routes);
            assert_eq!(browser.post("/mode", &[("csrf", &csrf), ("mode", "test")]).status, 303);
        }
        let mut known = BTreeSet::new();
        site.forms.retain(|form| known.insert((form.action.clone(), form.said())));
        site
    }

    /// One page that no link leads to.
    pub(crate) fn on(page: Page) -> Self {
        Self { forms: forms(&page), pages: BTreeMap::from([(page.path.clone(), page)]) }
    }

    /// Follows every link, and keeps what is there the first time.
    fn walk(&mut self, browser: &Browser<'_>, routes: &[Route]) {
        let (mut seen, mut kinds) = (BTreeSet::new(), BTreeMap::<_, usize>::new());
        let fixed = routes.iter().filter(|r| r.reads && !r.path.contains('{'));
        let mut open: Vec<_> = fixed.map(|r| r.path.clone()).collect();
        while let Some(address) = open.pop() {
            let route = routes.iter().find(|r| r.reads && r.leads(&address));
            let Some(route) = route.filter(|_| seen.insert(address.clone())) else { continue };
            let kind = kinds.entry((route.path.clone(), names(&address))).or_default();
            *kind += 1;
            if *kind > ALIKE {
                continue;
            }
            let answer = browser.get(&address);
            if answer.status == 303 {
                open.extend(answer.header("location").map(str::to_owned));
                continue;
            }
            let page = Page { path: address.clone(), answer };
            if page.answer.status == 200 && page.is_html() {
                open.extend(page.links());
                self.forms.extend(forms(&page));
            }
            self.pages.entry(address).or_insert(page);
        }
    }
}

/// The names in a query: two pages with the same ones are alike.
fn names(address: &str) -> Vec<String> {
    let query = address.split_once('?').map(|(_, query)| query).unwrap_or_default();
    query.split('&').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())).collect()
}

impl Page {
    pub(crate) fn is_html(&self) -> bool {
        self.answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"))
    }

    /// Where it leads within this service.
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

/// The forms of a page that post, each with what its first button adds.
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

/// What somebody might type.
fn typical(name: &str) -> &'static str {
    match name {
        "email" => "new@example.com",
        "url" => "https://example.com/hook",
        "recipient" | "number" | "numbers" => "+447700900999",
        "originator" => "Shop",
        _ => "some words that are long enough",
    }
}
