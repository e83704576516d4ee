//! Renders the Markdown subset of descriptions, and JSON with syntax highlighting, as HTML.

use serde_json::Value;
use std::fmt::{self, Write};

/// Escaped HTML that templates insert unchanged.
#[derive(Clone, Default, Debug)]
pub(crate) struct Html(String);

impl Html {
    /// Takes HTML that a renderer has produced from a trusted text.
    pub(crate) const fn rendered(html: String) -> Self {
        Self(html)
    }
}

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Html {}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Renders paragraphs, lists, `code`, **strong** and [links](…).
pub(crate) fn markdown(text: &str) -> Html {
    let mut html = String::new();
    for block in text.split("\n\n").filter(|b| !b.trim().is_empty()) {
        let items: Vec<_> = block.lines().filter_map(|l| l.strip_prefix("- ")).collect();
        if items.is_empty() {
            let _ = write!(html, "<p>{}</p>", inline(block));
        } else {
            let items: String = items.iter().map(|i| format!("<li>{}</li>", inline(i))).collect();
            let _ = write!(html, "<ul>{items}</ul>");
        }
    }
    Html(html)
}

/// Renders one line of Markdown without a paragraph.
pub(crate) fn markdown_inline(text: &str) -> Html {
    Html(inline(text))
}

fn inline(text: &str) -> String {
    let mut html = String::new();
    for (at, part) in text.split('`').enumerate() {
        match at % 2 {
            0 => html.push_str(&links(&strong(&escape(part)))),
            _ => {
                let _ = write!(html, "<code>{}</code>", escape(part));
            }
        }
    }
    html
}

fn strong(html: &str) -> String {
    let parts = html.split("**").enumerate();
    parts
        .map(|(at, p)| if at % 2 == 0 { p.to_owned() } else { format!("<strong>{p}</strong>") })
        .collect()
}

fn links(html: &str) -> String {
    let Some((before, rest)) = html.split_once('[') else { return html.to_owned() };
    match rest.split_once("](").and_then(|(text, rest)| Some((text, rest.split_once(')')?))) {
        Some((text, (to, after))) => {
            format!("{before}<a href=\"{to}\">{text}</a>{}", links(after))
        }
        None => html.to_owned(),
    }
}

/// Renders a JSON value over several lines, with elements for syntax highlighting.
pub(crate) fn json_html(value: &Value) -> Html {
    let mut html = String::new();
    write_json(&mut html, value, 0);
    Html(html)
}

fn write_json(html: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            html.push_str("{\n");
            for (at, (name, value)) in fields.iter().enumerate() {
                let _ = write!(html, "{indent}<i>&quot;{}&quot;</i>: ", escape(name));
                write_json(html, value, depth + 1);
                html.push_str(if at + 1 < fields.len() { ",\n" } else { "\n" });
            }
            let _ = write!(html, "{end}}}");
        }
        Value::Array(items) if !items.is_empty() => {
            html.push_str("[\n");
            for (at, item) in items.iter().enumerate() {
                html.push_str(&indent);
                write_json(html, item, depth + 1);
                html.push_str(if at + 1 < items.len() { ",\n" } else { "\n" });
            }
            let _ = write!(html, "{end}]");
        }
        Value::String(_) => {
            let _ = write!(html, "<b>{}</b>", escape(&value.to_string()));
        }
        other => {
            let _ = write!(html, "<u>{}</u>", escape(&other.to_string()));
        }
    }
}

/// Escapes plain text.
pub(crate) fn escaped(text: &str) -> Html {
    Html(escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_subset_is_rendered() {
        for (text, html) in [
            (
                "One <b>.\n\nTwo & `a < b`.",
                "<p>One &lt;b&gt;.</p><p>Two &amp; <code>a &lt; b</code>.</p>",
            ),
            ("- one\n- **two**", "<ul><li>one</li><li><strong>two</strong></li></ul>"),
            ("See [it](/docs) [now", "<p>See <a href=\"/docs\">it</a> [now</p>"),
        ] {
            assert_eq!(markdown(text).to_string(), html);
        }
    }

    #[test]
    fn json_keeps_field_order_and_is_escaped() {
        let value = serde_json::json!({ "b": ["<", 1], "a": null, "c": {} });
        let html = "{\n  <i>&quot;b&quot;</i>: [\n    <b>&quot;&lt;&quot;</b>,\n    <u>1</u>\n  \
                    ],\n  <i>&quot;a&quot;</i>: <u>null</u>,\n  <i>&quot;c&quot;</i>: <u>{}</u>\n}";
        assert_eq!(json_html(&value).to_string(), html);
    }
}
