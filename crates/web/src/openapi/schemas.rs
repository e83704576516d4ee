//! The schemas that the document refers to, each by one name.

use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::schema::{AdditionalProperties, Schema};
use utoipa::openapi::{Ref, RefOr};

/// Schemas by their names.
#[derive(Default)]
pub(crate) struct Schemas(BTreeMap<String, RefOr<Schema>>);

impl Schemas {
    /// What a client sends: exactly this. A reference to its schema.
    pub(crate) fn request<T: ToSchema>(&mut self) -> Ref {
        self.add::<T>(|object| {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        })
    }

    /// What a client gets: every field is always there, and more may come in later versions.
    pub(crate) fn answer<T: ToSchema>(&mut self) -> Ref {
        self.add::<T>(complete)
    }

    fn add<T: ToSchema>(&mut self, mend: fn(&mut utoipa::openapi::Object)) -> Ref {
        let mut found = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut found);
        self.extend(found, mend);
        Ref::from_schema_name(T::name())
    }

    /// Takes in what a client gets, as it is.
    pub(crate) fn answers(&mut self, all: impl IntoIterator<Item = (String, RefOr<Schema>)>) {
        self.extend(all, complete);
    }

    fn extend(
        &mut self,
        all: impl IntoIterator<Item = (String, RefOr<Schema>)>,
        mend: fn(&mut utoipa::openapi::Object),
    ) {
        for (name, mut schema) in all {
            if let RefOr::T(Schema::Object(object)) = &mut schema
                && !object.properties.is_empty()
            {
                mend(object);
            }
            self.insert(name, schema);
        }
    }

    /// Takes in a schema; two that differ can't have the same name.
    pub(crate) fn insert(&mut self, name: String, schema: RefOr<Schema>) {
        let there = self.0.insert(name.clone(), schema.clone());
        debug_assert!(there.is_none_or(|t| t == schema), "two different schemas are called {name}");
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, schema) in &other.0 {
            self.insert(name.clone(), schema.clone());
        }
    }

    pub(crate) fn into_inner(self) -> BTreeMap<String, RefOr<Schema>> {
        self.0
    }
}

/// Says that every field is there, but for those that are left out when they are empty.
fn complete(object: &mut utoipa::openapi::Object) {
    let may_be_absent =
        |name: &String| name == "errors" && object.properties.contains_key("requestId");
    object.required = object.properties.keys().filter(|n| !may_be_absent(n)).cloned().collect();
}
