//! The API reference at `/docs`: the OpenAPI document as one page.

use crate::docs::markup::{Html, escaped, json_html, markdown, markdown_inline};
use crate::docs::schema::{self, FieldDoc, TypeDoc, ref_name, resolve, text};
use askama::Template;
use serde_json::Value;

/// The reference page.
#[derive(Template)]
#[template(path = "docs/reference.html")]
struct Reference {
    version: String,
    about: Html,
    groups: Vec<Group>,
    types: Vec<TypeDoc>,
}

struct Group {
    /// The anchor of the group.
    slug: String,
    name: String,
    about: Html,
    operations: Vec<Operation>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    about: Html,
    parameters: Vec<FieldDoc>,
    fields: Vec<FieldDoc>,
    examples: Vec<Example>,
    answers: Vec<Answer>,
    problems: Vec<ProblemLink>,
}

/// An example request.
struct Example {
    name: String,
    text: Html,
}

struct Answer {
    status: String,
    about: Html,
    headers: Vec<String>,
    kind: Option<String>,
    example: Option<Html>,
}

/// A link to the page of a problem code.
pub(crate) struct ProblemLink {
    pub(crate) status: String,
    pub(crate) name: String,
}

/// Renders the reference page.
pub(crate) fn page(document: &Value) -> askama::Result<String> {
    let info = document.get("info").unwrap_or(&Value::Null);
    let tags = document.get("tags").and_then(Value::as_array);
    let groups = tags.into_iter().flatten().map(|tag| group(document, tag)).collect();
    let (version, about) = (text(info, "version").to_owned(), markdown(text(info, "description")));
    Reference { version, about, groups, types: schema::types(document) }.render()
}

fn group(document: &Value, tag: &Value) -> Group {
    let name = text(tag, "name");
    let is_in = |o: &&(&str, &str, &Value)| o.2.pointer("/tags/0").is_some_and(|t| t == name);
    let mut all = operations(document, "paths");
    all.extend(operations(document, "webhooks"));
    Group {
        slug: name.replace(' ', "-"),
        name: name.to_owned(),
        about: markdown(text(tag, "description")),
        operations: all.iter().filter(is_in).map(|o| operation(document, *o)).collect(),
    }
}

/// Returns the (path, method, operation) triples of a section of the document.
pub(crate) fn operations<'a>(
    document: &'a Value,
    section: &str,
) -> Vec<(&'a str, &'a str, &'a Value)> {
    let items = document.get(section).and_then(Value::as_object);
    let methods = |(path, item): (&'a String, &'a Value)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, o)| (path.as_str(), method.as_str(), o))
    };
    items.into_iter().flatten().flat_map(methods).collect()
}

fn operation(document: &Value, (path, method, operation): (&str, &str, &Value)) -> Operation {
    let body = operation.pointer("/requestBody/content").and_then(Value::as_object);
    let body = body.and_then(|b| b.iter().next());
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let responses = operation.get("responses").and_then(Value::as_object);
    let schema = body.and_then(|(_, content)| content.get("schema"));
    Operation {
        id: text(operation, "operationId").to_owned(),
        method: method.to_ascii_uppercase(),
        path: path.to_owned(),
        summary: text(operation, "summary").to_owned(),
        about: markdown(text(operation, "description")),
        parameters: parameters
            .into_iter()
            .flatten()
            .map(|p| schema::parameter(document, p))
            .collect(),
        fields: schema.map(|s| schema::fields(document, s)).unwrap_or_default(),
        examples: examples(operation, (path, method), body),
        answers: responses
            .into_iter()
            .flatten()
            .filter_map(|(s, r)| answer(document, s, r))
            .collect(),
        problems: problems(document, operation),
    }
}

/// Returns the example requests: the body of a webhook, or a curl command for the API.
fn examples(
    operation: &Value,
    (path, method): (&str, &str),
    body: Option<(&String, &Value)>,
) -> Vec<Example> {
    let one = body.and_then(|(_, content)| content.get("example"));
    if !path.starts_with('/') {
        let name = "Event".to_owned();
        return one.map(|e| Example { name, text: json_html(e) }).into_iter().collect();
    }
    let open = operation.pointer("/security/0").is_none();
    let curl = |kind: &str, data: &str| {
        let method = if method == "get" {
            String::new()
        } else {
            format!("-X {} ", method.to_ascii_uppercase())
        };
        let key = if open { "" } else { " \\\n  -H \"Authorization: Bearer $KEY\"" };
        let kind = if kind.is_empty() {
            String::new()
        } else {
            format!(" \\\n  -H 'Content-Type: {kind}'")
        };
        format!("curl {method}$URL{path}{key}{kind}{data}")
    };
    let Some((kind, content)) = body else {
        let text = escaped(&curl("", ""));
        return vec![Example { name: "Request".to_owned(), text }];
    };
    if one.is_some() {
        let text = escaped(&curl(kind, " \\\n  --data-binary @numbers.csv"));
        return vec![Example { name: "Request".to_owned(), text }];
    }
    let named = content.get("examples").and_then(Value::as_object);
    let example = |(_, example): (&String, &Value)| {
        let body = example.get("value").unwrap_or(&Value::Null);
        let body = serde_json::to_string_pretty(body).unwrap_or_default();
        let text = escaped(&curl(kind, &format!(" \\\n  -d '{body}'")));
        Example { name: format!("Request: {}", schema::text(example, "summary")), text }
    };
    named.into_iter().flatten().map(example).collect()
}

fn answer(document: &Value, status: &str, response: &Value) -> Option<Answer> {
    let response = resolve(document, response);
    let content = response.get("content").and_then(Value::as_object);
    let content = content.and_then(|c| c.iter().next());
    if content.is_some_and(|(kind, _)| kind == "application/problem+json") {
        return None;
    }
    let headers = response.get("headers").and_then(Value::as_object);
    let headers = headers.into_iter().flatten().map(|(name, _)| name.clone());
    let example = content.and_then(|(_, c)| c.get("example")).map(|e| match e {
        Value::String(text) => escaped(text),
        other => json_html(other),
    });
    Some(Answer {
        status: status.to_owned(),
        about: markdown_inline(text(response, "description")),
        headers: headers.filter(|h| h != "X-Request-Id").collect(),
        kind: content.and_then(|(_, c)| ref_name(c.get("schema")?)).map(str::to_owned),
        example,
    })
}

/// Returns the problem codes of an operation.
pub(crate) fn problems(document: &Value, operation: &Value) -> Vec<ProblemLink> {
    let responses = operation.get("responses").and_then(Value::as_object);
    let mut links = Vec::new();
    for (status, response) in responses.into_iter().flatten() {
        let examples =
            resolve(document, response).pointer("/content/application~1problem+json/examples");
        let names = examples.and_then(Value::as_object).into_iter().flatten();
        links.extend(
            names.map(|(name, _)| ProblemLink { status: status.clone(), name: name.clone() }),
        );
    }
    links
}
