//! Schemas as tables: a row for each field, with its type and its constraints.

use crate::docs::markup::{Html, markdown, markdown_inline};
use serde_json::Value;

/// The length from which on patterns are not shown, since they are unreadable.
const MAX_PATTERN: usize = 80;
/// The pattern that excludes NUL, which is not worth showing.
const NO_NUL: &str = r"^[^\x00]*$";

/// A field of a schema, or a parameter.
pub(crate) struct FieldDoc {
    pub(crate) name: String,
    /// The location of a parameter (`path`, `query` or `header`); empty for a field of a body.
    pub(crate) place: String,
    pub(crate) kind: TypeRef,
    pub(crate) required: bool,
    pub(crate) about: Html,
    pub(crate) limits: Html,
}

/// The type of a field.
pub(crate) struct TypeRef {
    /// `array of`, or empty.
    pub(crate) before: &'static str,
    pub(crate) name: String,
    /// True if the type has an entry in the list of types.
    pub(crate) linked: bool,
    /// `or null`, or empty.
    pub(crate) after: &'static str,
}

/// A named type.
pub(crate) struct TypeDoc {
    pub(crate) name: String,
    pub(crate) about: Html,
    pub(crate) kind: TypeRef,
    pub(crate) limits: Html,
    pub(crate) fields: Vec<FieldDoc>,
}

/// Returns the target of a reference, or the value itself.
pub(crate) fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let address = text(value, "$ref").strip_prefix('#').filter(|a| !a.is_empty());
    address.and_then(|a| document.pointer(a)).unwrap_or(value)
}

/// Returns the name at the end of a reference.
pub(crate) fn ref_name(value: &Value) -> Option<&str> {
    text(value, "$ref").rsplit('/').next().filter(|n| !n.is_empty())
}

/// Returns a string field of a value, or an empty string.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the fields of an object schema.
pub(crate) fn fields(document: &Value, schema: &Value) -> Vec<FieldDoc> {
    let schema = resolve(document, schema);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|r| r.iter().any(|r| r == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |(name, schema): (&String, &Value)| {
        new(document, (name, ""), is_required(name), schema, text(schema, "description"))
    };
    properties.into_iter().flatten().map(field).collect()
}

/// Returns the row of a parameter.
pub(crate) fn parameter(document: &Value, parameter: &Value) -> FieldDoc {
    let parameter = resolve(document, parameter);
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
) -> FieldDoc {
    let bare = non_null(schema);
    let about = [about, text(bare, "description"), text(resolve(document, bare), "description")];
    let about = about.into_iter().find(|a| !a.is_empty()).unwrap_or_default();
    let mut limits = limits(bare);
    if let Some(default) = schema.get("default").or(bare.get("default")) {
        limits.push(format!("default `{default}`"));
    }
    FieldDoc {
        name: name.to_owned(),
        place: place.to_owned(),
        kind: kind(schema),
        required,
        about: markdown(about),
        limits: markdown_inline(&limits.join(" · ")),
    }
}

/// Returns the schema of the non-null case.
fn non_null(schema: &Value) -> &Value {
    let choices = schema.get("oneOf").and_then(Value::as_array);
    let other = choices.and_then(|c| c.iter().find(|c| text(c, "type") != "null"));
    other.filter(|_| choices.is_some_and(|c| c.len() == 2)).unwrap_or(schema)
}

fn kind(schema: &Value) -> TypeRef {
    let bare = non_null(schema);
    let types = schema.get("type").and_then(Value::as_array);
    let nullable = types.is_some_and(|t| t.iter().any(|t| t == "null"))
        || schema
            .get("oneOf")
            .and_then(Value::as_array)
            .is_some_and(|c| c.iter().any(|c| text(c, "type") == "null"));
    let after = if nullable { "or null" } else { "" };
    let (before, item) = match bare.get("items") {
        Some(items) => ("array of", items),
        None => ("", bare),
    };
    let plain = match types.and_then(|t| t.iter().find_map(|t| t.as_str().filter(|t| *t != "null")))
    {
        Some(name) => name,
        None => text(enumeration(item), "type"),
    };
    match ref_name(item) {
        Some(name) => TypeRef { before, name: name.to_owned(), linked: true, after },
        None if plain.is_empty() => {
            TypeRef { before, name: "one of several".to_owned(), linked: false, after }
        }
        None => TypeRef { before, name: plain.to_owned(), linked: false, after },
    }
}

/// Returns the known values of an enumeration that can get more, or the schema itself.
fn enumeration(schema: &Value) -> &Value {
    let choices = schema.get("anyOf").and_then(Value::as_array);
    choices.and_then(|c| c.iter().find(|c| c.get("enum").is_some())).unwrap_or(schema)
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
    limits.extend(range(None, number("maxItems"), " items"));
    if let Some(choices) = enumeration(schema).get("enum").and_then(Value::as_array) {
        let names: Vec<_> =
            choices.iter().map(|c| format!("`{}`", c.as_str().unwrap_or("false"))).collect();
        limits.push(names.join(", "));
    }
    let format = text(schema, "format");
    if ["uuid", "date-time", "uri-reference"].contains(&format) {
        limits.push(format!("format `{format}`"));
    }
    let pattern = text(schema, "pattern");
    if (1..MAX_PATTERN).contains(&pattern.len()) && pattern != NO_NUL {
        limits.push(format!("pattern `{pattern}`"));
    }
    limits
}

/// Returns all named types.
pub(crate) fn types(document: &Value) -> Vec<TypeDoc> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let one = |(name, schema): (&String, &Value)| TypeDoc {
        name: name.clone(),
        about: markdown(text(schema, "description")),
        kind: kind(schema),
        limits: markdown_inline(&limits(schema).join(" · ")),
        fields: fields(document, schema),
    };
    schemas.into_iter().flatten().map(one).collect()
}
