//! Schemas as tables: a row for each field, with its type and its limits in words.

use crate::docs::markup::{Html, line, markdown};
use serde_json::Value;

/// A pattern longer than this helps nobody who reads.
const SHORT_PATTERN: usize = 80;
/// "No NUL": nobody would write one.
const NO_NUL: &str = r"^[^\x00]*$";

/// A field, or a parameter.
pub(crate) struct Field {
    pub(crate) name: String,
    /// `path`, `query` or `header`; empty for a field of a body.
    pub(crate) place: String,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) about: Html,
    pub(crate) limits: Html,
}

/// What may stand in a field.
pub(crate) struct Kind {
    /// `list of`, or nothing.
    pub(crate) before: &'static str,
    pub(crate) name: String,
    /// Whether it has a place of its own in the list of types.
    pub(crate) linked: bool,
    /// `or null`, or nothing.
    pub(crate) after: &'static str,
}

/// A type that others refer to.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) about: Html,
    pub(crate) kind: Kind,
    pub(crate) limits: Html,
    pub(crate) fields: Vec<Field>,
}

/// What a reference leads to, or the value itself.
pub(crate) fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let address = text(value, "$ref").strip_prefix('#').filter(|a| !a.is_empty());
    address.and_then(|a| document.pointer(a)).unwrap_or(value)
}

/// The name at the end of a reference.
pub(crate) fn referred(value: &Value) -> Option<&str> {
    text(value, "$ref").rsplit('/').next().filter(|n| !n.is_empty())
}

/// A text among the fields of a value, or nothing.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The fields of an object's schema.
pub(crate) fn fields(document: &Value, schema: &Value) -> Vec<Field> {
    let schema = resolved(document, schema);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|r| r.iter().any(|r| r == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |(name, schema): (&String, &Value)| {
        new(document, (name, ""), is_required(name), schema, text(schema, "description"))
    };
    properties.into_iter().flatten().map(field).collect()
}

/// A parameter.
pub(crate) fn parameter(document: &Value, parameter: &Value) -> Field {
    let parameter = resolved(document, parameter);
    let required = parameter.get("required") == Some(&Value::Bool(true));
    let name_and_place = (text(parameter, "name"), text(parameter, "in"));
    let schema = parameter.get("schema").unwrap_or(&Value::Null);
    new(document, name_and_place, required, schema, text(parameter, "description"))
}

fn new(
    document: &Value,
    (name, place): (&str, &str),
    required: bool,
    schema: &Value,
    about: &str,
) -> Field {
    let bare = some(schema);
    let about = [about, text(bare, "description"), text(resolved(document, bare), "description")];
    let about = about.into_iter().find(|a| !a.is_empty()).unwrap_or_default();
    let mut limits = limits(bare);
    if let Some(default) = schema.get("default").or(bare.get("default")) {
        limits.push(format!("default `{default}`"));
    }
    Field {
        name: name.to_owned(),
        place: place.to_owned(),
        kind: kind(schema),
        required,
        about: markdown(about),
        limits: line(&limits.join(" · ")),
    }
}

/// The schema of what is there when it is not null.
fn some(schema: &Value) -> &Value {
    let choices = schema.get("oneOf").and_then(Value::as_array);
    let other = choices.and_then(|c| c.iter().find(|c| text(c, "type") != "null"));
    other.filter(|_| choices.is_some_and(|c| c.len() == 2)).unwrap_or(schema)
}

fn kind(schema: &Value) -> Kind {
    let bare = some(schema);
    let types = schema.get("type").and_then(Value::as_array);
    let nullable = types.is_some_and(|t| t.iter().any(|t| t == "null"))
        || schema
            .get("oneOf")
            .and_then(Value::as_array)
            .is_some_and(|c| c.iter().any(|c| text(c, "type") == "null"));
    let after = if nullable { "or null" } else { "" };
    let (before, item) = match bare.get("items") {
        Some(items) => ("list of", items),
        None => ("", bare),
    };
    let plain = match types.and_then(|t| t.iter().find_map(|t| t.as_str().filter(|t| *t != "null")))
    {
        Some(name) => name,
        None => text(item, "type"),
    };
    match referred(item) {
        Some(name) => Kind { before, name: name.to_owned(), linked: true, after },
        None if plain.is_empty() => {
            Kind { before, name: "one of several".to_owned(), linked: false, after }
        }
        None => Kind { before, name: plain.to_owned(), linked: false, after },
    }
}

fn limits(schema: &Value) -> Vec<String> {
    let number = |name: &str| schema.get(name).and_then(Value::as_i64);
    let range = |least: Option<i64>, most: Option<i64>, what: &str| match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{what}")),
        (Some(least), None) if least > 0 => Some(format!("at least {least}{what}")),
        (None, Some(most)) => Some(format!("at most {most}{what}")),
        _ => None,
    };
    let mut limits = Vec::new();
    limits.extend(range(number("minimum"), number("maximum"), ""));
    limits.extend(range(number("minLength"), number("maxLength"), " characters"));
    limits.extend(range(None, number("maxItems"), " entries"));
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let names: Vec<_> =
            choices.iter().map(|c| format!("`{}`", c.as_str().unwrap_or("false"))).collect();
        limits.push(names.join(", "));
    }
    let format = text(schema, "format");
    if ["uuid", "date-time", "uri-reference"].contains(&format) {
        limits.push(format!("format `{format}`"));
    }
    let pattern = text(schema, "pattern");
    if (1..SHORT_PATTERN).contains(&pattern.len()) && pattern != NO_NUL {
        limits.push(format!("pattern `{pattern}`"));
    }
    limits
}

/// All types that others refer to.
pub(crate) fn named(document: &Value) -> Vec<Named> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let one = |(name, schema): (&String, &Value)| Named {
        name: name.clone(),
        about: markdown(text(schema, "description")),
        kind: kind(schema),
        limits: line(&limits(schema).join(" · ")),
        fields: fields(document, schema),
    };
    schemas.into_iter().flatten().map(one).collect()
}
