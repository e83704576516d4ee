//! The types of fields: scalars, lists, and types of the domain with their fault codes.

use crate::error::fault::FaultCode;
use crate::request::faults::{Faults, PathStep};
use crate::request::from_json::{FromJson, JsonType, ValueReader};
use heliograph_domain::fields::{
    FieldError, ListName, MaxParts, MessageText, Note, Reference, Validity,
};
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::wording::sentence;
use serde::de::{MapAccess, SeqAccess};
use std::fmt::Display;

impl FromJson for bool {
    const TYPE: JsonType = JsonType::Boolean;

    fn from_boolean(value: bool, _: &mut Faults) -> Option<Self> {
        Some(value)
    }
}

impl FromJson for String {
    const TYPE: JsonType = JsonType::String;

    fn from_text(text: &str, _: &mut Faults) -> Option<Self> {
        Some(text.to_owned())
    }
}

/// A field that may be absent or `null`.
impl<T: FromJson> FromJson for Option<T> {
    const TYPE: JsonType = T::TYPE;

    fn absent(_: &mut Faults) -> Option<Self> {
        Some(None)
    }

    fn wrong_type(found: JsonType, faults: &mut Faults) -> Option<Self> {
        T::wrong_type(found, faults).map(Some)
    }

    fn from_boolean(value: bool, faults: &mut Faults) -> Option<Self> {
        T::from_boolean(value, faults).map(Some)
    }

    fn from_integer(value: i64, faults: &mut Faults) -> Option<Self> {
        T::from_integer(value, faults).map(Some)
    }

    fn from_text(text: &str, faults: &mut Faults) -> Option<Self> {
        T::from_text(text, faults).map(Some)
    }

    fn from_array<'de, A: SeqAccess<'de>>(
        array: A,
        faults: &mut Faults,
    ) -> Result<Option<Self>, A::Error> {
        Ok(T::from_array(array, faults)?.map(Some))
    }

    fn from_object<'de, A: MapAccess<'de>>(
        object: A,
        faults: &mut Faults,
    ) -> Result<Option<Self>, A::Error> {
        Ok(T::from_object(object, faults)?.map(Some))
    }
}

/// A list. All of its items are read, to report the faults of each.
impl<T: FromJson> FromJson for Vec<T> {
    const TYPE: JsonType = JsonType::Array;

    fn from_array<'de, A: SeqAccess<'de>>(
        mut array: A,
        faults: &mut Faults,
    ) -> Result<Option<Self>, A::Error> {
        let (mut items, mut count) = (Self::new(), 0);
        loop {
            let read = |faults: &mut Faults| array.next_element_seed(ValueReader::<T>::new(faults));
            let Some(item) = faults.within(PathStep::Item(count), read)? else { break };
            items.extend(item);
            count += 1;
        }
        Ok((items.len() == count).then_some(items))
    }
}

/// Types that are parsed from a string, with the code of the faults of each.
macro_rules! texts {
    ($($type:ty, $code:expr;)+) => {$(
        impl FromJson for $type {
            const TYPE: JsonType = JsonType::String;

            fn from_text(text: &str, faults: &mut Faults) -> Option<Self> {
                parsed(text.parse(), $code, faults)
            }
        }
    )+};
}

/// Types that are converted from an integer.
macro_rules! integers {
    ($($type:ty;)+) => {$(
        impl FromJson for $type {
            const TYPE: JsonType = JsonType::Integer;

            fn from_integer(value: i64, faults: &mut Faults) -> Option<Self> {
                parsed(value.try_into(), field_code, faults)
            }
        }
    )+};
}

texts! {
    Originator, |_| FaultCode::InvalidOriginator;
    Recipient, |_| FaultCode::InvalidNumber;
    MessageText, field_code;
    Note, field_code;
}

integers! {
    Validity;
    MaxParts;
}

impl FromJson for ListName {
    const TYPE: JsonType = JsonType::String;

    fn from_text(text: &str, faults: &mut Faults) -> Option<Self> {
        let detail = format!("The name must have 1 to {} printable characters.", Self::MAX_LENGTH);
        text.parse().map_err(|_: FieldError| faults.add(FaultCode::InvalidName, detail)).ok()
    }
}

/// A reference, or an integer as an abbreviation of its digits.
impl FromJson for Reference {
    const TYPE: JsonType = JsonType::String;

    fn from_text(text: &str, faults: &mut Faults) -> Option<Self> {
        parsed(text.parse(), field_code, faults)
    }

    fn from_integer(value: i64, faults: &mut Faults) -> Option<Self> {
        Self::from_text(&value.to_string(), faults)
    }
}

fn parsed<T, E: Display>(
    value: Result<T, E>,
    code: impl FnOnce(&E) -> FaultCode,
    faults: &mut Faults,
) -> Option<T> {
    value.map_err(|e| faults.add(code(&e), sentence(&e.to_string()))).ok()
}

const fn field_code(error: &FieldError) -> FaultCode {
    match error {
        FieldError::Empty(_) => FaultCode::Required,
        FieldError::TooLong { .. } => FaultCode::TooLong,
        FieldError::InvalidCharacter { .. } => FaultCode::InvalidCharacter,
        FieldError::OutOfRange { .. } => FaultCode::OutOfRange,
    }
}
