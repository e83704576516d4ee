//! The macro that declares the objects of requests.

/// Declares an object of a request: a struct with its schema and its parser.
///
/// Attributes are passed on to the struct and to its schema. The wire name of a field follows its
/// type (`block_optout: Option<bool> as "blockOptout"`), unless it equals the name of the field.
/// Every type is a [`FromJson`]; fields of the type `Option` may be absent or `null`.
macro_rules! request {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field_vis:vis $field:ident: $type:ty $(as $wire:literal)?,
            )+
        }
    ) => {
        #[derive(utoipa::ToSchema)]
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $(#[schema(rename = $wire)])? $field_vis $field: $type,)+
        }

        impl $crate::request::FromJson for $name {
            const TYPE: $crate::request::JsonType = $crate::request::JsonType::Object;

            fn from_object<'de, A: serde::de::MapAccess<'de>>(
                object: A,
                faults: &mut $crate::request::Faults,
            ) -> Result<Option<Self>, A::Error> {
                const NAMES: &[&str] = &[$($crate::request::request!(@name $field $($wire)?),)+];
                $(let mut $field = $crate::request::Slot::Absent;)+
                let mut object = $crate::request::ObjectReader::new(object, faults);
                while let Some(name) = object.next_name()? {
                    match &*name {
                        $($crate::request::request!(@name $field $($wire)?) => object.read(
                            $crate::request::request!(@name $field $($wire)?),
                            &mut $field,
                        )?,)+
                        unknown => object.refuse(unknown, NAMES)?,
                    }
                }
                let fields = ($(
                    object.take($crate::request::request!(@name $field $($wire)?), $field),
                )+);
                let ($(Some($field),)+) = fields else { return Ok(None) };
                Ok(Some(Self { $($field,)+ }))
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $wire:literal) => { $wire };
}

pub(crate) use request;

#[cfg(test)]
mod tests {
    use crate::request::{FromJson, parse};
    use heliograph_domain::fields::{MaxParts, MessageText, Note};
    use heliograph_domain::phone::Recipient;
    use serde_json::{Value, json};
    use std::fmt::Debug;
    use utoipa::{PartialSchema, ToSchema};

    request! {
        /// A request with nested objects and lists.
        #[derive(PartialEq, Debug)]
        struct ImportBody {
            name: String,
            #[schema(value_type = Vec<ContactBody>)]
            contacts: Vec<ContactBody>,
            #[schema(inline)]
            max_parts: Option<MaxParts> as "maxParts",
            dry_run: Option<bool> as "dryRun",
            owner: Option<ContactBody>,
            matrix: Option<Vec<Vec<String>>> as "a/b~c",
        }
    }

    request! {
        /// A contact.
        #[derive(PartialEq, Debug)]
        pub(crate) struct ContactBody {
            #[schema(value_type = String)]
            number: Recipient,
            #[schema(inline)]
            note: Option<Note>,
            tags: Option<Vec<String>>,
        }
    }

    request! {
        #[derive(PartialEq, Debug)]
        struct TextBody {
            #[schema(inline)]
            text: MessageText,
        }
    }

    /// Returns the problem document of an invalid body.
    fn problem<T: FromJson + Debug>(json: &str) -> Value {
        serde_json::from_slice(&parse::<T>(json.as_bytes()).unwrap_err().json("")).unwrap()
    }

    /// Checks the faults of a body: pointer, code and detail of each, in this order.
    #[track_caller]
    fn check<T: FromJson + Debug>(json: &str, expected: &[(&str, &str, &str)]) {
        let problem = problem::<T>(json);
        let faults = problem["errors"].as_array().unwrap().iter();
        let columns = ["pointer", "code", "detail"];
        let faults: Vec<_> = faults.map(|f| columns.map(|c| f[c].as_str().unwrap())).collect();
        let expected: Vec<_> = expected.iter().map(|(p, c, d)| [*p, *c, *d]).collect();
        assert_eq!(faults, expected, "{json}");
    }

    #[test]
    fn nested_objects_and_lists_are_read() {
        let body = parse::<ImportBody>(
            br#"{"name": "caf\u00e9", "contacts": [{"number": "+447700900123", "tags": []},
                 {"number": "+447700900124", "note": "a\nb", "tags": ["x", "y"]}],
                 "a/b~c": [[], ["z"]], "maxParts": 3, "dryRun": null}"#,
        );
        let contact = |number: &str, note: Option<&str>, tags: &[&str]| ContactBody {
            number: number.parse().unwrap(),
            note: note.map(|n| n.parse().unwrap()),
            tags: Some(tags.iter().map(|t| (*t).to_owned()).collect()),
        };
        let expected = ImportBody {
            name: "café".to_owned(),
            contacts: vec![
                contact("+447700900123", None, &[]),
                contact("+447700900124", Some("a\nb"), &["x", "y"]),
            ],
            max_parts: Some(3.try_into().unwrap()),
            dry_run: None,
            owner: None,
            matrix: Some(vec![vec![], vec!["z".to_owned()]]),
        };
        assert_eq!(body.unwrap(), expected);
    }

    #[test]
    fn all_faults_are_reported_in_the_order_of_the_body() {
        let json = r##"{
            "contacts": [
                {"number": "+447700900123"},
                {"nummer": "12", "note": 5},
                7,
                {"number": "12", "tags": ["a", null, {"b": [1]}, "c\u0000"]}
            ],
            "Contacts": [],
            "a/b~c": [["x"], [true]],
            "maxParts": 0,
            "owner": {"number": "+447700900123", "c/d~e": 1},
            "dryRun": "yes"
        }"##;
        let expected = [
            ("#/contacts/1/nummer", "unknown_field", "Unknown field. Did you mean 'number'?"),
            ("#/contacts/1/note", "wrong_type", "Expected a string, got a number."),
            ("#/contacts/1/number", "required", "This field is required."),
            ("#/contacts/2", "wrong_type", "Expected an object, got a number."),
            (
                "#/contacts/3/number",
                "invalid_number",
                "The number has too few digits: write it in full, with its country and area code.",
            ),
            ("#/contacts/3/tags/1", "required", "This field is required."),
            ("#/contacts/3/tags/2", "wrong_type", "Expected a string, got an object."),
            (
                "#/contacts/3/tags/3",
                "invalid_character",
                "The value must not contain the character NUL.",
            ),
            ("#/Contacts", "unknown_field", "Unknown field. Did you mean 'contacts'?"),
            ("#/a~1b~0c/1/0", "wrong_type", "Expected a string, got a boolean."),
            ("#/maxParts", "out_of_range", "The value must be between 1 and 255."),
            ("#/owner/c~1d~0e", "unknown_field", "Unknown field. Field names are case-sensitive."),
            ("#/dryRun", "wrong_type", "Expected a boolean, got a string."),
            ("#/name", "required", "This field is required."),
        ];
        check::<ImportBody>(json, &expected);
        assert_eq!(problem::<ImportBody>(json)["detail"], "14 validation errors. See 'errors'.");
    }

    #[test]
    fn wrong_types_are_named() {
        for (value, found) in [
            ("true", "a boolean"),
            ("1", "a number"),
            ("-1", "a number"),
            ("1.0", "a number"),
            ("1.5", "a fractional or very large number"),
            ("1e300", "a fractional or very large number"),
            ("18446744073709551615", "a fractional or very large number"),
            ("[1, [2], {}]", "an array"),
            (r#"{"a": {"b": "c"}}"#, "an object"),
        ] {
            let detail = format!("Expected a string, got {found}.");
            let json = format!(r#"{{"text": {value}}}"#);
            check::<TextBody>(&json, &[("#/text", "wrong_type", &detail)]);
        }
        for (field, value, detail) in [
            ("maxParts", r#""1""#, "Expected an integer, got a string."),
            ("maxParts", r#""\u0000""#, "Expected an integer, got a string."),
            ("dryRun", "0", "Expected a boolean, got a number."),
            ("owner", "[]", "Expected an object, got an array."),
            ("a/b~c", "{}", "Expected an array, got an object."),
        ] {
            let json = format!(r#"{{"name": "", "contacts": [], "{field}": {value}}}"#);
            let pointer = format!("#/{}", field.replace('~', "~0").replace('/', "~1"));
            check::<ImportBody>(&json, &[(&pointer, "wrong_type", detail)]);
        }
    }

    #[test]
    fn required_fields_can_be_neither_absent_nor_null() {
        for json in ["{}", r#"{"text": null}"#] {
            check::<TextBody>(json, &[("#/text", "required", "This field is required.")]);
        }
        let json = r#"{"text": ""}"#;
        check::<TextBody>(json, &[("#/text", "required", "The text must not be empty.")]);
    }

    #[test]
    fn faults_of_the_domain_have_codes() {
        let long = json!({ "number": "447700900123", "note": "日".repeat(256) }).to_string();
        let detail = "The note must not exceed 255 characters.";
        check::<ContactBody>(&long, &[("#/note", "too_long", detail)]);
    }

    #[test]
    fn duplicate_fields_are_refused() {
        let fault = |pointer| (pointer, "duplicate_field", "Duplicate field.");
        check::<TextBody>(r#"{"text": "a", "text": "a"}"#, &[fault("#/text")]);
        check::<TextBody>(r#"{"text": "a", "te\u0078t": [[7]]}"#, &[fault("#/text")]);
        check::<ContactBody>(
            r#"{"number": "447700900123", "note": null, "note": null, "note": "a"}"#,
            &[fault("#/note"), fault("#/note")],
        );
        let unknown =
            ("#/other", "unknown_field", "Unknown field. Field names are case-sensitive.");
        check::<TextBody>(
            r#"{"other": 1, "text": "a", "other": {"b": 2}}"#,
            &[unknown, fault("#/other")],
        );
        let json = r#"{"name": "", "contacts": [], "owner": {"number": "447700900123", "tags": [],
            "tags": []}}"#;
        check::<ImportBody>(json, &[fault("#/owner/tags")]);
    }

    #[test]
    fn bodies_that_are_not_objects_are_refused() {
        for (json, detail) in [
            ("[]", "The body must be a JSON object, not an array."),
            ("null", "The body must be a JSON object, not null."),
            ("", "The body is empty."),
            (r#"{"text": "a"} {}"#, "The body is not valid JSON: there is more text after"),
            (r#"{"text": 1, "x": [1, 2}"#, "The body is not valid JSON: a comma or a closing"),
            (r#"{"text": "\ud800"}"#, "The body is not valid JSON: a string contains half"),
            (r#"{"text": 1e999}"#, "The body is not valid JSON: a number is too large"),
        ] {
            let problem = problem::<TextBody>(json);
            let found = problem["detail"].as_str().unwrap();
            assert!(found.starts_with(detail), "{json}: {found}");
            assert_eq!(problem.get("errors"), None);
        }
    }

    #[test]
    fn an_object_has_at_most_100_fields() {
        let fields = |count| (0..count).map(|i| format!("\"f{i}\": 0,")).collect::<String>();
        let within = problem::<TextBody>(&format!("{{{} \"text\": \"a\"}}", fields(99)));
        assert_eq!(within["errors"].as_array().unwrap().len(), 99);
        for fields in [fields(100), "\"f\": 0,".repeat(100), "\"text\": \"a\",".repeat(100)] {
            let beyond = problem::<TextBody>(&format!("{{{fields} \"text\": \"a\"}}"));
            let detail = beyond["detail"].as_str().unwrap();
            assert!(
                detail.starts_with("An object has too many fields at line 1, column "),
                "{detail}"
            );
        }
    }

    #[test]
    fn integers_may_have_a_fraction_of_zero() {
        for number in ["3", "3.0", "3.000", "30e-1", "0.3E1"] {
            let json = format!(r#"{{"name": "", "contacts": [], "maxParts": {number}}}"#);
            let body = parse::<ImportBody>(json.as_bytes()).unwrap();
            assert_eq!(body.max_parts, Some(3.try_into().unwrap()), "{number}");
        }
        let json = r#"{"name": "", "contacts": [], "maxParts": 3.5}"#;
        let detail = "Expected an integer, got a fractional or very large number.";
        check::<ImportBody>(json, &[("#/maxParts", "wrong_type", detail)]);
    }

    #[test]
    fn byte_order_mark_is_ignored() {
        let body = parse::<TextBody>("\u{feff}{\"text\": \"a\"}".as_bytes()).unwrap();
        assert_eq!(body.text.as_str(), "a");
        assert!(parse::<TextBody>("\u{feff}\u{feff}{\"text\": \"a\"}".as_bytes()).is_err());
    }

    #[test]
    fn pointers_are_encoded_and_short() {
        let detail = "Unknown field. Field names are case-sensitive.";
        for (name, pointer) in [
            ("a b", "#/a%20b"),
            ("c%d", "#/c%25d"),
            ("e^f", "#/e%5Ef"),
            ("g|h", "#/g%7Ch"),
            (r"i\\j", "#/i%5Cj"),
            (r#"k\"l"#, "#/k%22l"),
            ("m/n~", "#/m~1n~0"),
            ("naïve", "#/na%C3%AFve"),
            ("#?!$&'()*+,;=:@-._", "#/%23?!$&'()*+,;=:@-._"),
            (r"\u0000", "#/%00"),
        ] {
            let json = format!(r#"{{"text": "a", "{name}": 1}}"#);
            check::<TextBody>(&json, &[(pointer, "unknown_field", detail)]);
        }
        let json = format!(r#"{{"text": "a", "{}": 1}}"#, "日".repeat(300_000));
        let pointer = format!("#/{}%E2%80%A6", "%E6%97%A5".repeat(100));
        check::<TextBody>(&json, &[(&pointer, "unknown_field", detail)]);
    }

    #[test]
    fn at_most_100_faults_are_listed() {
        let body = |count: usize| {
            let items = "{},".repeat(count - 1);
            problem::<ImportBody>(&format!(r#"{{"name": "", "contacts": [{items} {{}}]}}"#))
        };
        let most = body(100);
        assert_eq!(most["detail"], "100 validation errors. See 'errors'.");
        assert_eq!(most["errors"].as_array().unwrap().len(), 100);
        let more = body(300_000);
        let detail = "300000 validation errors. The first 100 are listed in 'errors'.";
        assert_eq!(more["detail"], detail);
        assert_eq!(more["errors"].as_array().unwrap().len(), 100);
        assert_eq!(more["errors"][99]["pointer"], "#/contacts/99/number");
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = |count| format!("{}{}", "[".repeat(count), "]".repeat(count));
        let json = format!(r#"{{"text": {}}}"#, deep(200_000));
        check::<TextBody>(&json, &[("#/text", "wrong_type", "Expected a string, got an array.")]);
        let json = format!(r#"{{"text": "a", "x": {}}}"#, deep(200_000));
        let detail = "Unknown field. Field names are case-sensitive.";
        check::<TextBody>(&json, &[("#/x", "unknown_field", detail)]);
        let json = format!(r#"{{"name": "", "contacts": [], "a/b~c": {}}}"#, deep(200_000));
        let detail = "Expected a string, got an array.";
        check::<ImportBody>(&json, &[("#/a~1b~0c/0/0", "wrong_type", detail)]);
    }

    #[test]
    fn schema_has_the_names_that_are_read() {
        let schema = serde_json::to_value(ImportBody::schema()).unwrap();
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["name", "contacts", "maxParts", "dryRun", "owner", "a/b~c"]);
        assert_eq!(schema["required"], json!(["name", "contacts"]));
        assert_eq!(ContactBody::name(), "ContactBody");
    }
}
