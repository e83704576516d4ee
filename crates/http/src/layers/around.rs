//! The common form of all middleware: something before the request, something after the response.
//!
//! A middleware is written without futures, so that it costs no allocation, and shared by all
//! requests: the stack is part of every request, and a send costs only some tens of microseconds in
//! all.

use crate::body_drain;
use axum::extract::Request;
use axum::response::Response;
use futures_util::future::BoxFuture;
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower::{Layer, Service};

/// A middleware: sees each request before, and its response after the service inside.
pub trait Around {
    /// Data that is carried from the request to its response. It is also dropped when the client
    /// goes away first.
    type State;

    /// Inspects or changes a request.
    ///
    /// # Errors
    /// The response that takes the place of the service's. The rest of the request's body is
    /// drained before it is sent.
    fn before(&self, request: &mut Request) -> Result<Self::State, Box<Response>>;

    /// Inspects or changes the response. Not called for a response of this middleware's `before`.
    fn after(&self, state: Self::State, response: &mut Response);
}

/// The layer of a middleware.
#[derive(Clone, Debug)]
pub struct AroundLayer<M>(pub M);

impl<S, M: Clone> Layer<S> for AroundLayer<M> {
    type Service = AroundService<S, M>;

    fn layer(&self, inner: S) -> Self::Service {
        AroundService { inner, middleware: Arc::new(self.0.clone()) }
    }
}

/// A service with a middleware around it.
#[derive(Debug)]
pub struct AroundService<S, M> {
    inner: S,
    middleware: Arc<M>,
}

impl<S: Clone, M> Clone for AroundService<S, M> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), middleware: self.middleware.clone() }
    }
}

impl<S, M> Service<Request> for AroundService<S, M>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    M: Around,
{
    type Response = Response;
    type Error = Infallible;
    type Future = AroundFuture<S::Future, M>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match self.middleware.before(&mut request) {
            Ok(state) => {
                let middleware = self.middleware.clone();
                let after = Some((middleware, state));
                AroundFuture { stage: Stage::Running { future: self.inner.call(request), after } }
            }
            Err(response) => {
                let rejected = async move {
                    let (head, body) = request.into_parts();
                    body_drain::discard(&head.headers, body).await;
                    *response
                };
                AroundFuture { stage: Stage::Rejected { future: Box::pin(rejected) } }
            }
        }
    }
}

pin_project! {
    /// The future of [`AroundService`].
    pub struct AroundFuture<F, M: Around> {
        #[pin]
        stage: Stage<F, M>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<F, M: Around> {
        // The service inside is at work.
        Running {
            #[pin]
            future: F,
            after: Option<(Arc<M>, M::State)>,
        },
        // The middleware rejected the request.
        Rejected {
            future: BoxFuture<'static, Response>,
        },
    }
}

impl<F, M> Future for AroundFuture<F, M>
where
    F: Future<Output = Result<Response, Infallible>>,
    M: Around,
{
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().stage.project() {
            StageProjection::Running { future, after } => {
                let mut response = ready!(future.poll(cx))?;
                if let Some((middleware, state)) = after.take() {
                    middleware.after(state, &mut response);
                }
                Poll::Ready(Ok(response))
            }
            StageProjection::Rejected { future } => future.as_mut().poll(cx).map(Ok),
        }
    }
}
