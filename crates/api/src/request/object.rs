//! Reads the fields of objects.

use crate::error::fault::FaultCode;
use crate::request::faults::{Faults, PathStep};
use crate::request::from_json::{FromJson, ValueReader};
use crate::request::suggestion::UnknownField;
use crate::request::syntax_error::TOO_MANY_FIELDS;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The maximum number of fields of one object, including unknown ones: no request has so many.
const MAX_FIELDS: usize = 100;

/// A field of an object that is being read.
pub(crate) enum Slot<T> {
    Absent,
    /// The value, unless it has a fault.
    Present(Option<T>),
}

/// Reads the fields of one object.
pub(crate) struct ObjectReader<'f, A> {
    object: A,
    faults: &'f mut Faults,
    fields: usize,
    /// The unknown names so far.
    unknown: Vec<String>,
}

impl<'de, 'f, A: MapAccess<'de>> ObjectReader<'f, A> {
    /// Creates the reader of an object; faults are recorded in `faults`.
    pub(crate) const fn new(object: A, faults: &'f mut Faults) -> Self {
        Self { object, faults, fields: 0, unknown: Vec::new() }
    }

    /// Returns the name of the next field, until the end of the object.
    pub(crate) fn next_name(&mut self) -> Result<Option<Cow<'de, str>>, A::Error> {
        let Some(Name(name)) = self.object.next_key()? else { return Ok(None) };
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            return Err(A::Error::custom(TOO_MANY_FIELDS));
        }
        Ok(Some(name))
    }

    /// Reads the value of a known field.
    pub(crate) fn read<T: FromJson>(
        &mut self,
        name: &'static str,
        slot: &mut Slot<T>,
    ) -> Result<(), A::Error> {
        if matches!(slot, Slot::Present(_)) {
            return self.refuse_duplicate(name);
        }
        let object = &mut self.object;
        let read = |faults: &mut Faults| object.next_value_seed(ValueReader::new(faults));
        *slot = Slot::Present(self.faults.within(PathStep::Field(name), read)?);
        Ok(())
    }

    /// Refuses an unknown field. Fields are never ignored: a misspelled option would have no
    /// effect.
    pub(crate) fn refuse(&mut self, name: &str, known: &[&'static str]) -> Result<(), A::Error> {
        if self.unknown.iter().any(|n| n == name) {
            return self.refuse_duplicate(name);
        }
        self.unknown.push(name.to_owned());
        self.object.next_value::<IgnoredAny>()?;
        self.faults.add_field(name, FaultCode::UnknownField, UnknownField { name, known });
        Ok(())
    }

    /// Returns the value of a field after the end of the object.
    pub(crate) fn take<T: FromJson>(&mut self, name: &'static str, slot: Slot<T>) -> Option<T> {
        match slot {
            Slot::Absent => self.faults.within(PathStep::Field(name), T::absent),
            Slot::Present(value) => value,
        }
    }

    fn refuse_duplicate(&mut self, name: &str) -> Result<(), A::Error> {
        self.object.next_value::<IgnoredAny>()?;
        self.faults.add_field(name, FaultCode::DuplicateField, "Duplicate field.");
        Ok(())
    }
}

/// The name of a field, borrowed if it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_str(NameVisitor).map(Name)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(v.to_owned()))
    }
}
