//! The description of one API operation, and its builder.

use crate::error::code::ProblemCode;
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

/// An operation of the OpenAPI document.
pub(crate) struct Operation {
    pub(crate) path: &'static str,
    pub(crate) method: HttpMethod,
    pub(crate) schemas: Schemas,
    pub(crate) problems: BTreeSet<ProblemCode>,
    description: String,
    operation: path::Operation,
}

impl Operation {
    /// Describes a GET operation.
    pub(crate) fn get(path: &'static str, id: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Get, path, id, summary)
    }

    /// Describes a POST operation.
    pub(crate) fn post(path: &'static str, id: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Post, path, id, summary)
    }

    /// Describes a PATCH operation.
    pub(crate) fn patch(path: &'static str, id: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Patch, path, id, summary)
    }

    /// Describes a DELETE operation.
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

    /// Returns the method for the router.
    pub(crate) fn method_filter(&self) -> MethodFilter {
        match self.method {
            HttpMethod::Post => MethodFilter::POST,
            HttpMethod::Patch => MethodFilter::PATCH,
            HttpMethod::Delete => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        }
    }

    /// Sets the tag.
    pub(crate) fn tag(mut self, tag: &str) -> Self {
        self.operation.tags = Some(vec![tag.to_owned()]);
        self
    }

    /// Sets the description, in Markdown.
    pub(crate) fn description(mut self, text: &str) -> Self {
        self.description = text.to_owned();
        self
    }

    /// Requires an API key with this scope, and adds the problems that all authenticated operations
    /// share.
    pub(crate) fn scope(mut self, scope: Scope) -> Self {
        let key = SecurityRequirement::new(API_KEY, std::iter::empty::<String>());
        self.operation.security = Some(vec![key]);
        self.description.push_str(&format!("\n\nRequired scope: `{}`.", scope.name()));
        self.problems(&[
            ProblemCode::InvalidRequest,
            ProblemCode::Unauthenticated,
            ProblemCode::ScopeMissing,
            ProblemCode::RateLimited,
            ProblemCode::Internal,
            ProblemCode::Overloaded,
        ])
    }

    /// Marks the operation as public: it requires no API key.
    pub(crate) fn public(mut self) -> Self {
        self.operation.security = Some(Vec::new());
        self
    }

    /// Adds the problems of a public operation that takes no query parameters.
    pub(crate) fn rejects_query(self) -> Self {
        self.problems(&[ProblemCode::InvalidRequest, ProblemCode::Overloaded])
    }

    /// Adds problems that the operation can fail with.
    pub(crate) fn problems(mut self, codes: &[ProblemCode]) -> Self {
        self.problems.extend(codes);
        self
    }

    /// Adds a path parameter.
    pub(crate) fn path_param(
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
        self.problems(&[ProblemCode::NotFound])
    }

    /// Adds an optional query parameter.
    pub(crate) fn query_param(
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

    /// Adds an optional query parameter that can be repeated.
    pub(crate) fn query_list_param(
        mut self,
        name: &str,
        description: &str,
        item: impl Into<RefOr<Schema>>,
    ) -> Self {
        let list = ArrayBuilder::new().items(item.into()).min_items(Some(1));
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(list));
        self.operation.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
        self
    }

    /// Adds the header `Idempotency-Key`, and its problems.
    pub(crate) fn idempotent(mut self) -> Self {
        let key = parameter(parameters::IDEMPOTENCY_KEY);
        self.operation.parameters.get_or_insert_default().push(key);
        self.problems(&[ProblemCode::IdempotencyKeyReused, ProblemCode::RequestInFlight])
            .response_header("Idempotent-Replayed")
    }

    /// Sets a JSON request body, with named examples.
    pub(crate) fn json_body<T: ToSchema>(mut self, examples: &[(&str, Value)]) -> Self {
        let schema = self.schemas.request::<T>();
        let content = ContentBuilder::new().schema(Some(schema));
        let content = content.examples_from_iter(examples.iter().map(|(name, value)| {
            let example = ExampleBuilder::new().summary(*name).value(Some(value.clone()));
            (name.replace(' ', "-"), RefOr::T(example.build()))
        }));
        self.body(JSON, content.build())
    }

    /// Sets a CSV request body.
    pub(crate) fn csv_body(self, example: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(example.into()));
        self.body("text/csv", content.build())
    }

    fn body(mut self, kind: &str, content: Content) -> Self {
        let body: RequestBody =
            RequestBodyBuilder::new().required(Some(Required::True)).content(kind, content).build();
        self.operation.request_body = Some(RefOr::T(body));
        self.problems(&[
            ProblemCode::RequestTimeout,
            ProblemCode::PayloadTooLarge,
            ProblemCode::UnsupportedMediaType,
        ])
    }

    /// Adds a JSON response.
    pub(crate) fn response<T: ToSchema + Serialize>(
        mut self,
        status: StatusCode,
        description: &str,
        sample: &T,
    ) -> Self {
        let schema = self.schemas.response::<T>();
        let example = serde_json::to_value(sample).ok();
        let content = ContentBuilder::new().schema(Some(schema)).example(example);
        self.add_response(status, description, Some((JSON, content.build())))
    }

    /// Adds a response with a page of items, and the parameters `limit` and `cursor`.
    pub(crate) fn page_response<T: ToSchema + Serialize>(mut self, sample: &T) -> Self {
        self.operation
            .parameters
            .get_or_insert_default()
            .extend(parameters::PAGE.into_iter().map(parameter));
        let item = self.schemas.response::<T>();
        let text_or_null = SchemaType::from_iter([Type::String, Type::Null]);
        let cursor = ObjectBuilder::new()
            .schema_type(text_or_null)
            .description(Some("The value of `cursor` for the next page; null on the last page."));
        let page = ObjectBuilder::new()
            .description(Some("A page of a list."))
            .property("data", ArrayBuilder::new().items(item).max_items(Some(100)))
            .property("nextCursor", cursor);
        let name = format!("{}Page", T::name());
        self.schemas.extend_responses([(name.clone(), page.into())]);
        let example = serde_json::json!({ "data": [sample], "nextCursor": null });
        let schema = utoipa::openapi::Ref::from_schema_name(name);
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(example));
        self.add_response(StatusCode::OK, "A page of results.", Some((JSON, content.build())))
    }

    /// Adds a plain text response.
    pub(crate) fn text_response(self, status: StatusCode, description: &str, sample: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(sample.into()));
        self.add_response(status, description, Some(("text/plain", content.build())))
    }

    /// Adds a response without a body.
    pub(crate) fn empty_response(self, status: StatusCode, description: &str) -> Self {
        self.add_response(status, description, None)
    }

    /// Adds a JSON response without a detailed schema.
    pub(crate) fn untyped_response(self, description: &str, sample: Value) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::Object);
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(sample));
        self.add_response(StatusCode::OK, description, Some((JSON, content.build())))
    }

    fn add_response(
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

    /// Adds a header to the responses: `ETag` and `Idempotent-Replayed` to all of them, others to
    /// 201 only.
    pub(crate) fn response_header(mut self, name: &str) -> Self {
        let everywhere = ["ETag", "Idempotent-Replayed"].contains(&name);
        let applies = |status: &str| everywhere || status == "201";
        for (status, response) in &mut self.operation.responses.responses {
            if let RefOr::T(response) = response
                && applies(status)
            {
                response.headers.insert(name.to_owned(), header(name));
            }
        }
        self
    }

    /// Returns the operation for the OpenAPI document.
    pub(crate) fn to_openapi(&self) -> path::Operation {
        let mut operation = self.operation.clone();
        operation.description = Some(self.description.trim().to_owned());
        problems::responses(&mut operation.responses, &self.problems);
        operation
    }
}
