//! Values that are read from JSON, and the JSON types that belong to no other module.

use crate::error::Problem;
use crate::error::fault::FaultCode;
use crate::request::faults::Faults;
use crate::request::syntax_error;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// The type of a JSON value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JsonType {
    Boolean,
    Integer,
    /// A number that is not an integer of 64 bits.
    Fraction,
    String,
    Array,
    Object,
}

impl JsonType {
    const fn found(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Integer => "a number",
            Self::Fraction => "a fractional or very large number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    const fn wanted(self) -> &'static str {
        match self {
            Self::Integer => "an integer",
            other => other.found(),
        }
    }
}

/// A value of a request. Each function returns `None` after it has recorded a fault.
///
/// A type implements the function of its own JSON type; all others record a fault.
pub(crate) trait FromJson: Sized {
    /// The JSON type of valid values.
    const TYPE: JsonType;

    /// Returns the value of a field that is absent or `null`.
    fn absent(faults: &mut Faults) -> Option<Self> {
        faults.add(FaultCode::Required, "This field is required.");
        None
    }

    /// Records that the value has another JSON type.
    fn wrong_type(found: JsonType, faults: &mut Faults) -> Option<Self> {
        let (wanted, found) = (Self::TYPE.wanted(), found.found());
        faults.add(FaultCode::WrongType, format_args!("Expected {wanted}, got {found}."));
        None
    }

    /// Reads a boolean.
    fn from_boolean(_: bool, faults: &mut Faults) -> Option<Self> {
        Self::wrong_type(JsonType::Boolean, faults)
    }

    /// Reads an integer.
    fn from_integer(_: i64, faults: &mut Faults) -> Option<Self> {
        Self::wrong_type(JsonType::Integer, faults)
    }

    /// Reads a string, which does not contain NUL if the type is [`JsonType::String`].
    fn from_text(_: &str, faults: &mut Faults) -> Option<Self> {
        Self::wrong_type(JsonType::String, faults)
    }

    /// Reads an array. The error is one of syntax, in any of these functions.
    fn from_array<'de, A: SeqAccess<'de>>(
        mut array: A,
        faults: &mut Faults,
    ) -> Result<Option<Self>, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::wrong_type(JsonType::Array, faults))
    }

    /// Reads an object.
    fn from_object<'de, A: MapAccess<'de>>(
        mut object: A,
        faults: &mut Faults,
    ) -> Result<Option<Self>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::wrong_type(JsonType::Object, faults))
    }
}

/// Parses the body of a request.
pub(crate) fn parse<T: FromJson>(json: &[u8]) -> Result<T, Problem> {
    // A byte order mark is not part of the text (RFC 8259, 8.1).
    let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    let mut faults = Faults::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let root = Root(ValueReader::<T>::new(&mut faults));
    let value = deserializer.deserialize_map(root);
    let value = value
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|e| Problem::invalid(syntax_error::sentence(&e, json), Vec::new()))?;
    faults.finish()?;
    // A value that is missing has a fault.
    value.ok_or_else(Problem::internal)
}

/// The body, which must be an object.
struct Root<'f, T>(ValueReader<'f, T>);

impl<'de, T: FromJson> Visitor<'de> for Root<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Option<T>, A::Error> {
        self.0.visit_map(object)
    }
}

/// A value of the type `T` that is about to be read.
pub(crate) struct ValueReader<'f, T> {
    faults: &'f mut Faults,
    wanted: PhantomData<T>,
}

impl<'f, T> ValueReader<'f, T> {
    /// Creates the reader of a value; faults are recorded in `faults`.
    pub(crate) const fn new(faults: &'f mut Faults) -> Self {
        Self { faults, wanted: PhantomData }
    }
}

impl<'de, T: FromJson> DeserializeSeed<'de> for ValueReader<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Option<T>, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de, T: FromJson> Visitor<'de> for ValueReader<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(T::absent(self.faults))
    }

    fn visit_bool<E>(self, v: bool) -> Result<Option<T>, E> {
        Ok(T::from_boolean(v, self.faults))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Option<T>, E> {
        Ok(T::from_integer(v, self.faults))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Option<T>, E> {
        Ok(match i64::try_from(v) {
            Ok(v) => T::from_integer(v, self.faults),
            Err(_) => T::wrong_type(JsonType::Fraction, self.faults),
        })
    }

    fn visit_f64<E>(self, v: f64) -> Result<Option<T>, E> {
        Ok(match whole(v) {
            Some(v) => T::from_integer(v, self.faults),
            None => T::wrong_type(JsonType::Fraction, self.faults),
        })
    }

    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Option<T>, E> {
        Ok(text(v, self.faults))
    }

    fn visit_str<E>(self, v: &str) -> Result<Option<T>, E> {
        Ok(text(v, self.faults))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, array: A) -> Result<Option<T>, A::Error> {
        T::from_array(array, self.faults)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Option<T>, A::Error> {
        T::from_object(object, self.faults)
    }
}

/// Returns the integer that is written with a fraction of zero or an exponent, like `1.0`: in JSON
/// Schema, it is an integer, too. Above 2^53, digits are lost.
fn whole(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    let is_exact = number.fract() == 0.0 && number.abs() <= LIMIT;
    is_exact.then(|| format!("{number:.0}").parse().ok()).flatten()
}

/// Reads a string. NUL is refused here, so that no type can forget to do so: PostgreSQL cannot
/// store it.
fn text<T: FromJson>(text: &str, faults: &mut Faults) -> Option<T> {
    if T::TYPE == JsonType::String && text.contains('\0') {
        let detail = "The value must not contain the character NUL.";
        faults.add(FaultCode::InvalidCharacter, detail);
        return None;
    }
    T::from_text(text, faults)
}
