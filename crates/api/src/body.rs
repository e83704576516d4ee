//! Reads request bodies, and parses JSON objects field by field while collecting all validation
//! errors.

use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use heliograph_domain::wording::sentence;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The time within which a body must arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The size limit of an empty body, in bytes: room for `{}` and white space.
const EMPTY_BODY_LIMIT: usize = 64;

/// Reads a JSON body of at most `limit` bytes.
pub(crate) async fn read_json(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    read_as("application/json", headers, body, limit).await
}

/// Reads a body of this media type and of at most `limit` bytes.
pub(crate) async fn read_as(
    kind: &'static str,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    if !is(kind, headers) {
        return Err(Problem::unsupported_media_type(kind));
    }
    let encoded = headers.get_all(header::CONTENT_ENCODING).iter();
    if encoded.into_iter().any(|v| !v.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::compressed());
    }
    let whole = tokio::time::timeout(READ_TIMEOUT, axum::body::to_bytes(body, limit)).await;
    whole.map_err(|_| Problem::request_timeout())?.map_err(|e| {
        // The error of the size limit is wrapped; every other error means that the client
        // disconnected.
        let mut source: Option<&dyn std::error::Error> = Some(&e);
        while let Some(s) = source {
            if s.to_string().contains("length limit") {
                return Problem::too_large(limit);
            }
            source = s.source();
        }
        Problem::invalid("The body is incomplete.", Vec::new())
    })
}

/// Rejects a body on an operation that takes none, since its fields would be ignored silently. An
/// empty JSON object is accepted, for clients that always send JSON.
pub(crate) async fn require_empty(body: Body) -> Result<(), Problem> {
    let whole =
        tokio::time::timeout(READ_TIMEOUT, axum::body::to_bytes(body, EMPTY_BODY_LIMIT)).await;
    let bytes = whole.map_err(|_| Problem::request_timeout())?;
    match bytes.as_deref().map(<[u8]>::trim_ascii) {
        Ok(b"" | b"{}") => Ok(()),
        _ => Err(Problem::invalid("This endpoint takes no request body.", Vec::new())),
    }
}

fn is(wanted: &str, headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()) else {
        return false;
    };
    let (kind, parameters) = kind.split_once(';').unwrap_or((kind, ""));
    let parameters = parameters.trim().to_ascii_lowercase();
    kind.trim().eq_ignore_ascii_case(wanted)
        && ["", "charset=utf-8", "charset=\"utf-8\""].contains(&parameters.as_str())
}

/// The fields of a JSON object that were not read yet, and the faults found so far.
#[derive(Debug)]
pub(crate) struct JsonFields<'a> {
    fields: Vec<(Cow<'a, str>, Any<'a>)>,
    faults: Vec<Fault>,
}

impl<'a> JsonFields<'a> {
    /// Parses the body of a request.
    pub(crate) fn parse(json: &'a [u8]) -> Result<Self, Problem> {
        let found: Object<'a> = serde_json::from_slice(json).map_err(|e| {
            let what = match e.classify() {
                serde_json::error::Category::Data => "The body is not a JSON object",
                _ => "The body is not valid JSON",
            };
            Problem::invalid(format!("{what}: {e}."), Vec::new())
        })?;
        let mut fields = Self { fields: found.fields, faults: Vec::new() };
        for name in found.duplicates {
            fields.fault(&name, FaultCode::DuplicateField, "Duplicate field.");
        }
        Ok(fields)
    }

    /// Records a fault of `field`.
    pub(crate) fn fault(&mut self, field: &str, code: FaultCode, detail: impl Into<String>) {
        let pointer = format!("#/{}", field.replace('~', "~0").replace('/', "~1"));
        self.faults.push(Fault { pointer, code, detail: detail.into() });
    }

    /// Removes and returns a field; `null` counts as absent.
    fn take(&mut self, field: &str) -> Option<Any<'a>> {
        let at = self.fields.iter().position(|(name, _)| name == field)?;
        let (_, value) = self.fields.swap_remove(at);
        (value != Any::Null).then_some(value)
    }

    fn wrong_type(&mut self, field: &str, wanted: &str, found: &Any<'_>) {
        self.fault(
            field,
            FaultCode::WrongType,
            format!("Expected {wanted}, got {}.", found.name()),
        );
    }

    /// Reads an optional string.
    pub(crate) fn text(&mut self, field: &str) -> Option<Cow<'a, str>> {
        match self.take(field)? {
            Any::Text(t) if t.contains('\0') => {
                self.fault(
                    field,
                    FaultCode::InvalidCharacter,
                    "The value must not contain the character NUL.",
                );
                None
            }
            Any::Text(t) => Some(t),
            other => {
                self.wrong_type(field, "a string", &other);
                None
            }
        }
    }

    /// Reads a required string.
    pub(crate) fn required_text(&mut self, field: &str) -> Option<Cow<'a, str>> {
        if !self.fields.iter().any(|(name, value)| name == field && *value != Any::Null) {
            self.take(field);
            self.fault(field, FaultCode::Required, "This field is required.");
            return None;
        }
        self.text(field)
    }

    /// Reads a required string and parses it as `T`.
    pub(crate) fn required<T: FromStr<Err: fmt::Display>>(
        &mut self,
        field: &str,
        code: FaultCode,
    ) -> Option<T> {
        let text = self.required_text(field)?;
        text.parse().map_err(|e: T::Err| self.fault(field, code, sentence(&e.to_string()))).ok()
    }

    /// Reads an optional string and parses it as `T`.
    pub(crate) fn optional<T: FromStr<Err: fmt::Display>>(
        &mut self,
        field: &str,
        code: FaultCode,
    ) -> Option<T> {
        let text = self.text(field)?;
        text.parse().map_err(|e: T::Err| self.fault(field, code, sentence(&e.to_string()))).ok()
    }

    /// Reads an optional boolean.
    pub(crate) fn flag(&mut self, field: &str) -> Option<bool> {
        match self.take(field)? {
            Any::Bool(b) => Some(b),
            other => {
                self.wrong_type(field, "a boolean", &other);
                None
            }
        }
    }

    /// Reads an optional integer within the limits of `T`.
    pub(crate) fn number<T: TryFrom<i64, Error: fmt::Display>>(
        &mut self,
        field: &str,
    ) -> Option<T> {
        match self.take(field)? {
            Any::Int(n) => {
                let fault = |e: T::Error| {
                    self.fault(field, FaultCode::OutOfRange, sentence(&e.to_string()));
                };
                n.try_into().map_err(fault).ok()
            }
            other => {
                self.wrong_type(field, "an integer", &other);
                None
            }
        }
    }

    /// Removes a field of any type; returns whether it was present.
    pub(crate) fn is_present(&mut self, field: &str) -> bool {
        self.take(field).is_some()
    }

    /// Returns all faults as one problem, if there are any. Fields that were not read are unknown
    /// and faults, too.
    pub(crate) fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.fields) {
            self.fault(
                &name,
                FaultCode::UnknownField,
                "Unknown field. Field names are case-sensitive.",
            );
        }
        match self.faults.len() {
            0 => Ok(()),
            1 => Err(Problem::invalid("1 validation error. See 'errors'.", self.faults)),
            n => {
                Err(Problem::invalid(format!("{n} validation errors. See 'errors'."), self.faults))
            }
        }
    }
}

/// A JSON value of a flat object; the contents of nested values are dropped.
#[derive(PartialEq, Debug)]
enum Any<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Fraction,
    Text(Cow<'a, str>),
    List,
    Object,
}

impl Any<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "a number",
            Self::Fraction => "a fractional or very large number",
            Self::Text(_) => "a string",
            Self::List => "an array",
            Self::Object => "an object",
        }
    }
}

impl<'de> Deserialize<'de> for Any<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(AnyVisitor)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Any<'de>, E> {
        Ok(Any::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Any<'de>, E> {
        Ok(Any::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Any<'de>, E> {
        Ok(Any::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Any<'de>, E> {
        Ok(i64::try_from(v).map_or(Any::Fraction, Any::Int))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Any<'de>, E> {
        Ok(Any::Fraction)
    }

    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Any<'de>, E> {
        Ok(Any::Text(Cow::Borrowed(v)))
    }

    fn visit_str<E>(self, v: &str) -> Result<Any<'de>, E> {
        Ok(Any::Text(Cow::Owned(v.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Any<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Any::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Any::Object)
    }
}

struct Object<'a> {
    fields: Vec<(Cow<'a, str>, Any<'a>)>,
    duplicates: Vec<Cow<'a, str>>,
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

/// JsonFields of one object beyond which reading ends: no request has so many.
const MOST_FIELDS: usize = 100;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut object = Object { fields: Vec::with_capacity(4), duplicates: Vec::new() };
        while let Some(Name(name)) = map.next_key()? {
            let value = map.next_value()?;
            if object.fields.iter().any(|(n, _)| *n == name) {
                object.duplicates.push(name);
            } else {
                object.fields.push((name, value));
            }
            if object.fields.len() + object.duplicates.len() > MOST_FIELDS {
                return Err(serde::de::Error::custom("too many fields"));
            }
        }
        Ok(object)
    }
}

/// A field's name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match Any::deserialize(d)? {
            Any::Text(t) => Ok(Self(t)),
            _ => Err(serde::de::Error::custom("a name must be a string")),
        }
    }
}
