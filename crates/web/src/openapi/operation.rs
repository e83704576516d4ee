//! One operation of the API, as it tells of itself.

use crate::error::code::Code;
use crate::openapi::parameters::{self, header, parameter};
use crate::openapi::problems;
use crate::openapi::schemas::Schemas;
use axum::http::StatusCode;
use axum::routing::MethodFilter;
use heliograph_domain::account::Scope;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use utoipa::ToSchema;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::{HttpMethod, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{
    Content, ContentBuilder, RefOr, Required, Response, path, response::Responses,
    security::SecurityRequirement,
};

/// The name of the security scheme.
pub(crate) const API_KEY: &str = "apiKey";

const JSON: &str = "application/json";

/// What the document says of a route.
pub(crate) struct Operation {
    pub(crate) path: &'static str,
    pub(crate) method: HttpMethod,
    pub(crate) schemas: Schemas,
    pub(crate) problems: BTreeSet<Code>,
    description: String,
    operation: path::Operation,
}

impl Operation {
    /// Something that is looked at.
    pub(crate) fn get(path: &'static str, id: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Get, path, id, summary)
    }

    /// Something that is done.
    pub(crate) fn post(path: &'static str, id: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Post, path, id, summary)
    }

    /// Something that is removed.
    pub(crate) fn delete(path: &'static str, id: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Delete, path, id, summary)
    }

    fn new(method: HttpMethod, path: &'static str, id: &str, summary: &str) -> Self {
        let mut operation = path::Operation::new();
        operation.operation_id = Some(id.to_owned());
        operation.summary = Some(summary.to_owned());
        let (schemas, problems, description) = Default::default();
        Self { path, method, schemas, problems, description, operation }
    }

    /// What the router listens to.
    pub(crate) fn filter(&self) -> MethodFilter {
        match self.method {
            HttpMethod::Post => MethodFilter::POST,
            HttpMethod::Delete => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        }
    }

    /// The group that it stands in.
    pub(crate) fn tag(mut self, tag: &str) -> Self {
        self.operation.tags = Some(vec![tag.to_owned()]);
        self
    }

    /// What it does, in a paragraph or more of Markdown.
    pub(crate) fn describe(mut self, text: &str) -> Self {
        self.description = text.to_owned();
        self
    }

    /// The scope that the key must have. Whatever asks for a key can fail in these ways.
    pub(crate) fn scope(mut self, scope: Scope) -> Self {
        let key = SecurityRequirement::new(API_KEY, std::iter::empty::<String>());
        self.operation.security = Some(vec![key]);
        self.description.push_str(&format!("\n\nThe key needs the scope `{}`.", scope.name()));
        self.problems(&[
            Code::InvalidRequest,
            Code::Unauthenticated,
            Code::ScopeMissing,
            Code::RateLimited,
            Code::Internal,
            Code::Overloaded,
        ])
    }

    /// It needs no key.
    pub(crate) fn open(mut self) -> Self {
        self.operation.security = Some(Vec::new());
        self
    }

    /// It reads nothing, and refuses what can't be read; it answers as long as requests are taken.
    pub(crate) fn invalid(self) -> Self {
        self.problems(&[Code::InvalidRequest, Code::Overloaded])
    }

    /// In which ways it can fail, besides those that all of its kind share.
    pub(crate) fn problems(mut self, codes: &[Code]) -> Self {
        self.problems.extend(codes);
        self
    }

    /// A part of the path.
    pub(crate) fn part(
        mut self,
        name: &str,
        description: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(schema));
        self.operation.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
        self.problems(&[Code::NotFound])
    }

    /// A parameter by which a list is narrowed.
    pub(crate) fn narrowed(
        mut self,
        name: &str,
        description: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(schema));
        self.operation.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
        self
    }

    /// It takes the header `Idempotency-Key`.
    pub(crate) fn idempotent(mut self) -> Self {
        let key = parameter(parameters::IDEMPOTENCY_KEY);
        self.operation.parameters.get_or_insert_default().push(key);
        self.problems(&[Code::IdempotencyKeyReused, Code::RequestInFlight])
            .header("Idempotent-Replayed")
    }

    /// It takes a body of JSON; examples are named by what they show.
    pub(crate) fn takes<T: ToSchema>(mut self, examples: &[(&str, Value)]) -> Self {
        let schema = self.schemas.request::<T>();
        let content = ContentBuilder::new().schema(Some(schema));
        let content = content.examples_from_iter(examples.iter().map(|(name, value)| {
            let example = ExampleBuilder::new().summary(*name).value(Some(value.clone()));
            (name.replace(' ', "-"), RefOr::T(example.build()))
        }));
        self.body(JSON, content.build())
    }

    /// It takes a CSV file.
    pub(crate) fn takes_csv(self, example: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(example.into()));
        self.body("text/csv", content.build())
    }

    fn body(mut self, kind: &str, content: Content) -> Self {
        let body: RequestBody =
            RequestBodyBuilder::new().required(Some(Required::True)).content(kind, content).build();
        self.operation.request_body = Some(RefOr::T(body));
        self.problems(&[Code::RequestTimeout, Code::PayloadTooLarge, Code::UnsupportedMediaType])
    }

    /// It answers with this, when it succeeds.
    pub(crate) fn answers<T: ToSchema + Serialize>(
        mut self,
        status: StatusCode,
        description: &str,
        sample: &T,
    ) -> Self {
        let schema = self.schemas.answer::<T>();
        let example = serde_json::to_value(sample).ok();
        let content = ContentBuilder::new().schema(Some(schema)).example(example);
        self.answer(status, description, Some((JSON, content.build())))
    }

    /// It answers with a page of these, and takes `limit` and `cursor`.
    pub(crate) fn answers_page<T: ToSchema + Serialize>(mut self, sample: &T) -> Self {
        self.operation
            .parameters
            .get_or_insert_default()
            .extend(parameters::PAGE.into_iter().map(parameter));
        let item = self.schemas.answer::<T>();
        let text_or_null = SchemaType::from_iter([Type::String, Type::Null]);
        let cursor = ObjectBuilder::new()
            .schema_type(text_or_null)
            .description(Some("What `cursor` has to be for the next page; null on the last one."));
        let page = ObjectBuilder::new()
            .description(Some("A part of a list, and how to get the next."))
            .property("data", ArrayBuilder::new().items(item).max_items(Some(100)))
            .property("nextCursor", cursor);
        let name = format!("{}Page", T::name());
        self.schemas.answers([(name.clone(), page.into())]);
        let example = serde_json::json!({ "data": [sample], "nextCursor": null });
        let schema = utoipa::openapi::Ref::from_schema_name(name);
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(example));
        self.answer(StatusCode::OK, "One page.", Some((JSON, content.build())))
    }

    /// It answers with plain text.
    pub(crate) fn answers_text(self, status: StatusCode, description: &str, sample: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(sample.into()));
        self.answer(status, description, Some(("text/plain", content.build())))
    }

    /// It answers with nothing but a status.
    pub(crate) fn answers_nothing(self, status: StatusCode, description: &str) -> Self {
        self.answer(status, description, None)
    }

    /// It answers with JSON that has no schema of ours.
    pub(crate) fn answers_any(self, description: &str, sample: Value) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::Object);
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(sample));
        self.answer(StatusCode::OK, description, Some((JSON, content.build())))
    }

    fn answer(
        mut self,
        status: StatusCode,
        description: &str,
        content: Option<(&str, Content)>,
    ) -> Self {
        let mut response = Response::new(description);
        if let Some((kind, content)) = content {
            response.content.insert(kind.to_owned(), RefOr::T(content));
        }
        response.headers.insert("X-Request-Id".to_owned(), header("X-Request-Id"));
        let responses: &mut Responses = &mut self.operation.responses;
        responses.responses.insert(status.as_str().to_owned(), RefOr::T(response));
        self
    }

    /// What was made, or comes in a version, says so in this header of its answers.
    pub(crate) fn header(mut self, name: &str) -> Self {
        let everywhere = ["ETag", "Idempotent-Replayed"].contains(&name);
        let made = |status: &str| everywhere || status == "201";
        for (status, response) in &mut self.operation.responses.responses {
            if let RefOr::T(response) = response
                && made(status)
            {
                response.headers.insert(name.to_owned(), header(name));
            }
        }
        self
    }

    /// As it stands in the document.
    pub(crate) fn documented(&self) -> path::Operation {
        let mut operation = self.operation.clone();
        operation.description = Some(self.description.trim().to_owned());
        problems::responses(&mut operation.responses, &self.problems);
        operation
    }
}
