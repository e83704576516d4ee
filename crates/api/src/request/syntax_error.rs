//! The errors of bodies that are not JSON objects, as sentences for people.

use serde_json::error::Category;

/// The message of the error of an object with too many fields.
pub(super) const TOO_MANY_FIELDS: &str = "too many fields";

/// The beginnings of the messages of the parser, each with a clause for people.
const CLAUSES: &[(&str, &str)] = &[
    ("EOF while parsing a string", "a string is not closed"),
    ("EOF while parsing a list", "an array is not closed"),
    ("EOF while parsing an object", "an object is not closed"),
    ("EOF while parsing a value", "a value is missing"),
    ("expected `:`", "a colon is missing after the name of a field"),
    ("expected `,` or `]`", "a comma or a closing bracket is missing"),
    ("expected `,` or `}`", "a comma or a closing brace is missing"),
    ("expected ident", "a word is neither true, false nor null"),
    ("expected value", "a value is missing or invalid"),
    ("invalid escape", "a string contains an invalid escape sequence"),
    ("invalid number", "a number is invalid"),
    ("number out of range", "a number is too large"),
    ("invalid unicode code point", "a string is not in UTF-8"),
    ("control character", "a string contains a control character that is not escaped"),
    ("key must be a string", "the name of a field is not in double quotes"),
    ("lone leading surrogate", "a string contains half of a surrogate pair"),
    ("unexpected end of hex escape", "a string contains half of a surrogate pair"),
    ("trailing comma", "a comma is not followed by a value"),
    ("trailing characters", "there is more text after the end of the object"),
    ("recursion limit exceeded", "the values are nested too deeply"),
];

/// Explains why `json` could not be read.
pub(super) fn sentence(error: &serde_json::Error, json: &[u8]) -> String {
    if json.trim_ascii().is_empty() {
        return "The body is empty. Send a JSON object.".to_owned();
    }
    let (message, place) = (error.to_string(), place(error, json));
    if error.classify() != Category::Data {
        let clause = CLAUSES.iter().find(|(begin, _)| message.starts_with(begin));
        let clause = clause.map_or("a character is not allowed", |(_, clause)| *clause);
        return format!("The body is not valid JSON: {clause} at {place}.");
    }
    match message.starts_with(TOO_MANY_FIELDS) {
        true => format!("An object has too many fields at {place}."),
        false => format!("The body must be a JSON object, not {}.", kind(json)),
    }
}

/// Returns the line and the column, in characters from 1. At the beginning of a line, the parser
/// has no column.
fn place(error: &serde_json::Error, json: &[u8]) -> String {
    let line = json.split(|b| *b == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = line.get(..error.column()).unwrap_or(line);
    match String::from_utf8_lossy(before).chars().count() {
        0 => format!("line {}", error.line()),
        column => format!("line {}, column {column}", error.line()),
    }
}

/// Names the type of a value that is not an object, by its first character.
fn kind(json: &[u8]) -> &'static str {
    match json.trim_ascii().first() {
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use crate::request::{Faults, FromJson, JsonType, parse};
    use serde::de::{IgnoredAny, MapAccess};

    /// Any object.
    #[derive(Debug)]
    struct AnyObject;

    impl FromJson for AnyObject {
        const TYPE: JsonType = JsonType::Object;

        fn from_object<'de, A: MapAccess<'de>>(
            mut object: A,
            _: &mut Faults,
        ) -> Result<Option<Self>, A::Error> {
            while object.next_entry::<String, IgnoredAny>()?.is_some() {}
            Ok(Some(Self))
        }
    }

    fn detail(json: &[u8]) -> String {
        let problem = parse::<AnyObject>(json).unwrap_err().json("");
        let problem: serde_json::Value = serde_json::from_slice(&problem).unwrap();
        problem["detail"].as_str().unwrap().to_owned()
    }

    #[test]
    fn syntax_errors_have_a_place() {
        for (json, clause) in [
            (r#"{"text": "Hello"#, "a string is not closed at line 1, column 15"),
            (r#"{"text": ["#, "an array is not closed at line 1, column 10"),
            ("{\"text\": 1,\n\"a\": 2", "an object is not closed at line 2, column 6"),
            ("{\"text\":", "a value is missing at line 1, column 8"),
            (r#"{"text" 1}"#, "a colon is missing after the name of a field at line 1, column 9"),
            (r#"{"a": [1 2]}"#, "a comma or a closing bracket is missing at line 1, column 10"),
            (r#"{"a": 1 "b": 2}"#, "a comma or a closing brace is missing at line 1, column 9"),
            (r#"{"a": nul}"#, "a word is neither true, false nor null at line 1, column 10"),
            (r#"{"a": 'b'}"#, "a value is missing or invalid at line 1, column 7"),
            (r#"{"a": True}"#, "a value is missing or invalid at line 1, column 7"),
            (r#"{"a": "\x"}"#, "a string contains an invalid escape sequence at line 1, column 9"),
            (r#"{"a": 01}"#, "a number is invalid at line 1, column 8"),
            (r#"{"a": 1.}"#, "a number is invalid at line 1, column 9"),
            ("{a: 1}", "the name of a field is not in double quotes at line 1, column 2"),
            (r#"{"a": 1,}"#, "a comma is not followed by a value at line 1, column 9"),
            (
                r#"{"a": 1} {}"#,
                "there is more text after the end of the object at line 1, column 10",
            ),
            // Columns are characters, not bytes.
            (r#"{"ü": 'b'}"#, "a value is missing or invalid at line 1, column 7"),
        ] {
            let expected = format!("The body is not valid JSON: {clause}.");
            assert_eq!(detail(json.as_bytes()), expected, "{json}");
        }
        let control = "The body is not valid JSON: a string contains a control character that is \
                       not escaped at line 1, column 8.";
        assert_eq!(detail(b"{\"a\": \"b\nc\"}"), control);
        let utf8 = "The body is not valid JSON: a string is not in UTF-8 at line 1, column 4.";
        assert_eq!(detail(b"{\"a\xff\": 1}"), utf8);
    }

    #[test]
    fn bodies_of_other_types_are_named() {
        for (json, kind) in [
            ("[]", "an array"),
            (" [1, 2", "an array"),
            ("\"a\"", "a string"),
            ("true", "a boolean"),
            ("null", "null"),
            ("-1.5", "a number"),
        ] {
            let expected = format!("The body must be a JSON object, not {kind}.");
            assert_eq!(detail(json.as_bytes()), expected, "{json}");
        }
        for empty in ["", " \r\n"] {
            assert_eq!(detail(empty.as_bytes()), "The body is empty. Send a JSON object.");
        }
    }
}
