//! The guides of `docs/` as pages under `/docs/guides`.

use crate::docs::markup::Html;
use askama::Template;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use std::collections::HashMap;

/// The path of the list.
pub(crate) const PATH: &str = "/docs/guides";

/// A guide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guide {
    /// The name of its file in `docs/`, without the extension.
    name: &'static str,
    markdown: &'static str,
}

macro_rules! guides {
    ($($name:literal,)+) => {
        /// All guides, in the order in which they are listed.
        pub(crate) const ALL: &[Guide] = &[$(Guide {
            name: $name,
            markdown: include_str!(concat!("../../../../docs/", $name, ".md")),
        },)+];
    };
}

guides! {
    "quickstart",
    "sending",
    "messages",
    "replies",
    "webhooks",
    "errors",
    "clients",
    "accounts",
    "configuration",
    "commands",
    "https",
    "backup",
}

impl Guide {
    /// Returns the path of the page.
    pub(crate) fn path(&self) -> String {
        format!("{PATH}/{}", self.name)
    }

    /// Returns the title, which is the first line.
    fn title(&self) -> &'static str {
        let first = self.markdown.lines().next().unwrap_or_default();
        first.trim_start_matches("# ")
    }
}

/// The list of guides.
#[derive(Template)]
#[template(path = "docs/guides.html")]
struct List {
    guides: &'static [Guide],
}

/// The page of one guide.
#[derive(Template)]
#[template(path = "docs/guide.html")]
struct Page {
    title: &'static str,
    body: Html,
}

/// Renders the list.
pub(crate) fn list() -> askama::Result<String> {
    List { guides: ALL }.render()
}

/// Renders a guide.
pub(crate) fn page(guide: &Guide) -> askama::Result<String> {
    Page { title: guide.title(), body: Html::rendered(body(guide.markdown)) }.render()
}

/// Renders Markdown. Headings get the anchors that they have on GitHub, and links between guides
/// lead to their pages.
fn body(markdown: &str) -> String {
    let events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
    let mut anchors = anchors(&events).into_iter();
    let events = events.into_iter().filter_map(|event| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            let id = anchors.next().map(CowStr::from);
            Some(Event::Start(Tag::Heading { level, id, classes, attrs }))
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = target(&dest_url).into();
            Some(Event::Start(Tag::Link { link_type, dest_url, title, id }))
        }
        // The files belong to the project, but a page of the product contains no raw HTML.
        Event::Html(_) | Event::InlineHtml(_) => None,
        other => Some(other),
    });
    let mut text = String::new();
    html::push_html(&mut text, events);
    text
}

/// Returns the anchors of all headings, in order.
fn anchors(events: &[Event<'_>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut heading: Option<String> = None;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for event in events {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(text),
            (Event::End(TagEnd::Heading(_)), Some(text)) => {
                let anchor = slug(text);
                let count = seen.entry(anchor.clone()).or_default();
                all.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                *count += 1;
                heading = None;
            }
            _ => {}
        }
    }
    all
}

/// Returns the anchor of a heading: lower case, hyphens for spaces, without punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the address of a link: other guides are pages here, and other files of the repository
/// are not served, so that such a link leads to the list.
fn target(link: &str) -> String {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(f, a)| (f, Some(a)));
    let guide = file.strip_suffix(".md").and_then(|name| ALL.iter().find(|g| g.name == name));
    let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
    match guide {
        _ if file.is_empty() || file.contains("://") => link.to_owned(),
        Some(guide) => format!("{}{anchor}", guide.path()),
        None if file == "../openapi.json" => "/v1/openapi.json".to_owned(),
        None => PATH.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_anchors_of_github() {
        for (heading, anchor) in [
            ("Verify webhooks", "verify-webhooks"),
            ("Private networks (SSRF protection)", "private-networks-ssrf-protection"),
            ("heliograph account limits", "heliograph-account-limits"),
            ("message.delivered", "messagedelivered"),
        ] {
            assert_eq!(slug(heading), anchor);
        }
        let text = body("# One\n\n## `Two`\n\n## `Two`\n\nSee [it](webhooks.md#verify-webhooks).");
        assert!(text.contains("<h1 id=\"one\">One</h1>"), "{text}");
        assert!(text.contains("id=\"two\"") && text.contains("id=\"two-1\""), "{text}");
        assert!(text.contains("href=\"/docs/guides/webhooks#verify-webhooks\""), "{text}");
    }

    #[test]
    fn links_between_guides_lead_to_existing_anchors() {
        let pages: HashMap<String, String> =
            ALL.iter().map(|guide| (guide.path(), body(guide.markdown))).collect();
        for (path, text) in &pages {
            for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let Some((page, anchor)) = link.split_once('#') else { continue };
                let page = if page.is_empty() { path } else { page };
                let Some(target) = pages.get(page) else { continue };
                assert!(target.contains(&format!("id=\"{anchor}\"")), "{path}: {link}");
            }
        }
        // The dashboard links here.
        assert!(pages["/docs/guides/webhooks"].contains("id=\"verify-webhooks\""));
    }
}
