//! The named schemas of the OpenAPI document.

use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::schema::{AdditionalProperties, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};

/// Schemas by name.
#[derive(Default)]
pub(crate) struct Schemas(BTreeMap<String, RefOr<Schema>>);

impl Schemas {
    /// Adds the schema of a request body and returns a reference to it. Additional properties are
    /// not allowed.
    pub(crate) fn request<T: ToSchema>(&mut self) -> Ref {
        self.add::<T>(|object| {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
            object.properties.values_mut().for_each(merge_null);
        })
    }

    /// Adds the schema of a response and returns a reference to it. All fields are required, and
    /// new ones can be added in later versions.
    pub(crate) fn response<T: ToSchema>(&mut self) -> Ref {
        self.add::<T>(require_all)
    }

    fn add<T: ToSchema>(&mut self, adjust: fn(&mut utoipa::openapi::Object)) -> Ref {
        let mut found = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut found);
        self.extend(found, adjust);
        Ref::from_schema_name(T::name())
    }

    /// Adds schemas of responses.
    pub(crate) fn extend_responses(
        &mut self,
        all: impl IntoIterator<Item = (String, RefOr<Schema>)>,
    ) {
        self.extend(all, require_all);
    }

    fn extend(
        &mut self,
        all: impl IntoIterator<Item = (String, RefOr<Schema>)>,
        adjust: fn(&mut utoipa::openapi::Object),
    ) {
        for (name, mut schema) in all {
            if let RefOr::T(Schema::Object(object)) = &mut schema
                && !object.properties.is_empty()
            {
                adjust(object);
            }
            self.insert(name, schema);
        }
    }

    /// Adds a schema. Different schemas must not have the same name.
    pub(crate) fn insert(&mut self, name: String, schema: RefOr<Schema>) {
        let previous = self.0.insert(name.clone(), schema.clone());
        debug_assert!(
            previous.is_none_or(|p| p == schema),
            "two different schemas are named {name}"
        );
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

/// Describes an optional value by one schema with two types, instead of a choice of two schemas.
fn merge_null(property: &mut RefOr<Schema>) {
    let RefOr::T(Schema::OneOf(choice)) = property else { return };
    let [RefOr::T(Schema::Object(value)), RefOr::T(Schema::Object(null))] = &*choice.items else {
        return;
    };
    // The values of an enumeration do not include `null`.
    let mut types = match &value.schema_type {
        SchemaType::Type(kind) => vec![kind.clone()],
        SchemaType::Array(types) => types.clone(),
        SchemaType::AnyValue => return,
    };
    if !types.contains(&Type::Null)
        && null.schema_type == SchemaType::Type(Type::Null)
        && value.enum_values.is_none()
    {
        let mut merged = value.clone();
        types.push(Type::Null);
        merged.schema_type = SchemaType::Array(types);
        merged.description = choice.description.take().or(merged.description);
        *property = RefOr::T(Schema::Object(merged));
    }
}

/// Marks all fields as required, except those that are omitted when empty.
fn require_all(object: &mut utoipa::openapi::Object) {
    let is_optional =
        |name: &String| name == "errors" && object.properties.contains_key("requestId");
    object.required = object.properties.keys().filter(|n| !is_optional(n)).cloned().collect();
}
