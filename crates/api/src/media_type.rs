//! The media type of a request body.

use crate::error::Problem;
use crate::error::fault::shorten;
use crate::header::single;
use axum::http::{HeaderMap, header};

/// Requires a body of this media type, in UTF-8. Unknown parameters of the media type are ignored.
pub(crate) fn require(wanted: &'static str, headers: &HeaderMap) -> Result<(), Problem> {
    let unsupported = || Problem::unsupported_media_type(wanted);
    let value = single(headers, &header::CONTENT_TYPE, "Content-Type")?;
    let value = value.and_then(|v| v.to_str().ok()).ok_or_else(unsupported)?;
    let mut parts = split(value).into_iter();
    if !parts.next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted)) {
        return Err(unsupported());
    }
    match parts.filter_map(charset).find(|name| !is_utf8(name)) {
        Some(other) => Err(Problem::unsupported_charset(&shorten(other))),
        None => Ok(()),
    }
}

/// Splits a header value at semicolons outside of quoted strings.
fn split(value: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value
        .split(|c| {
            let is_end = c == ';' && !is_quoted;
            is_quoted ^= c == '"' && !is_escaped;
            is_escaped = c == '\\' && is_quoted && !is_escaped;
            is_end
        })
        .collect()
}

/// Returns the name of the character set, if the parameter is one.
fn charset(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
}

/// Returns whether a text in this character set is in UTF-8. ASCII is a part of UTF-8.
fn is_utf8(charset: &str) -> bool {
    ["utf-8", "utf8", "us-ascii"].iter().any(|name| charset.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use serde_json::Value;

    /// Returns the code and the detail of the error, if there is one.
    fn check(values: &[&str]) -> Option<(u64, String)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        }
        let problem = require("application/json", &headers).err()?.json("");
        let problem: Value = serde_json::from_slice(&problem).unwrap();
        Some((problem["status"].as_u64()?, problem["detail"].as_str()?.to_owned()))
    }

    #[test]
    fn unknown_parameters_are_ignored() {
        for value in [
            "application/json",
            "Application/JSON ; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
            "application/json; charset=utf8",
            "application/json;",
            "application/json; foo=bar",
            "application/json; foo=\"a;charset=latin1;\\\";charset=latin1\"; charset=utf-8",
            "application/json; profile=\"https://example.com/a\"; version=1",
        ] {
            assert_eq!(check(&[value]), None, "{value}");
        }
    }

    #[test]
    fn other_media_types_are_refused() {
        let expected = "Send the body as 'Content-Type: application/json'.";
        for values in [&[][..], &["text/plain"], &[""], &["application/json5"], &["json"]] {
            assert_eq!(check(values), Some((415, expected.to_owned())), "{values:?}");
        }
    }

    #[test]
    fn other_character_sets_are_named() {
        let (_, detail) = check(&["application/json; a=b; Charset=\"ISO-8859-1\""]).unwrap();
        assert_eq!(detail, "Send the body in UTF-8, not in 'ISO-8859-1'.");
        let long = format!("application/json; charset={}", "x".repeat(1_000));
        let (status, detail) = check(&[&long]).unwrap();
        assert_eq!((status, detail.chars().count()), (415, 135));
    }

    #[test]
    fn two_headers_are_refused() {
        let detail = "The header Content-Type must be sent only once.".to_owned();
        for second in ["application/json", "text/plain"] {
            let found = check(&["application/json", second]);
            assert_eq!(found, Some((400, detail.clone())), "{second}");
        }
    }
}
