//! The response to a request, as a test looks at it.

use crate::support::html;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt;

/// A response.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Page {
    /// Reads a response to its end.
    pub(crate) async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Self { status: parts.status, headers: parts.headers, body }
    }

    /// Returns the value of a header, or an empty string.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns status, target of the redirect, and names of new cookies.
    pub(crate) fn head(&self) -> String {
        let mut head =
            vec![self.status.as_u16().to_string(), html::stable(self.header("location"))];
        for cookie in self.headers.get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            let verb = if cookie.contains("Max-Age=0") { "removes" } else { "sets" };
            head.push(format!("{verb} {}", cookie.split('=').next().unwrap()));
        }
        head.retain(|part| !part.is_empty());
        head.join(" ")
    }

    /// Returns the head and the visible text of the main part.
    pub(crate) fn main(&self) -> String {
        self.part("<main")
    }

    /// Returns the head and the visible text of the section whose heading has this id.
    pub(crate) fn section(&self, heading: &str) -> String {
        self.part(&format!("aria-labelledby=\"{heading}\""))
    }

    /// Returns the head and the visible text of the element whose opening tag contains `mark`.
    pub(crate) fn part(&self, mark: &str) -> String {
        let part = html::element(&self.body, mark);
        let part = part.unwrap_or_else(|| panic!("no {mark}: {}\n{}", self.head(), self.body));
        format!("{}\n{}", self.head(), html::text(part))
    }

    /// Returns the head and the message about the last action, in one line.
    pub(crate) fn notice(&self) -> String {
        self.part("class=\"notice").replace('\n', " ")
    }

    /// Returns the head and the error at the field with this id, in one line.
    pub(crate) fn error(&self, field: &str) -> String {
        self.part(&format!("id=\"{field}-error\"")).replace('\n', " ")
    }

    /// Returns whether the page has such an element.
    pub(crate) fn has(&self, mark: &str) -> bool {
        self.body.contains(mark)
    }

    /// Returns the raw content of the element with this id.
    pub(crate) fn content(&self, id: &str) -> String {
        let element = html::element(&self.body, &format!("id=\"{id}\"")).unwrap();
        element.split_once('>').unwrap().1.to_owned()
    }

    /// Returns the fields of the form with this action.
    pub(crate) fn form(&self, action: &str) -> Vec<(String, String)> {
        let mark = format!("action=\"{action}\"");
        let form = html::element(&self.body, &mark);
        html::fields(form.unwrap_or_else(|| panic!("no form {action}\n{}", self.body)))
    }

    /// Returns the action of the first form whose action ends so.
    pub(crate) fn action(&self, end: &str) -> String {
        let mut actions = self.body.split(" action=\"").filter_map(|rest| rest.split('"').next());
        actions.find(|action| action.ends_with(end)).unwrap().to_owned()
    }

    /// Returns the target of the first link with this text.
    pub(crate) fn link(&self, text: &str) -> String {
        let mut links = self.body.split("<a").skip(1);
        let link = links.find(|link| link.split("</a>").next().unwrap().contains(text));
        html::attribute(link.unwrap(), "href").unwrap()
    }
}
