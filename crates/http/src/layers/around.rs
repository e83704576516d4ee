//! The common form of all middleware: something before the request, something after the response.
//!
//! A middleware is written without futures, and several are combined into one before they are put
//! around a service ([`Around::around`]). So a stack of them costs no allocation, and the request
//! and its future are not moved from one to the next: the stack is part of every request, and a send
//! costs only some tens of microseconds in all.

use axum::extract::Request;
use axum::response::Response;
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower::Service;

/// A middleware: sees each request before, and its response after the service inside.
pub trait Around: Sized {
    /// Data that is carried from the request to its response. It is also dropped when the client
    /// goes away first.
    type State;

    /// Inspects or changes a request.
    ///
    /// # Errors
    /// The response that takes the place of the service's.
    fn before(&self, request: &mut Request) -> Result<Self::State, Box<Response>>;

    /// Inspects or changes the response. Not called for a response of this middleware's `before`.
    fn after(&self, state: Self::State, response: &mut Response);

    /// Combines two middlewares: this one is around the other one, and sees its responses.
    fn around<M: Around>(self, inner: M) -> (Self, M) {
        (self, inner)
    }
}

impl<A: Around, B: Around> Around for (A, B) {
    type State = (A::State, B::State);

    fn before(&self, request: &mut Request) -> Result<Self::State, Box<Response>> {
        let (outer, inner) = self;
        let outer_state = outer.before(request)?;
        match inner.before(request) {
            Ok(inner_state) => Ok((outer_state, inner_state)),
            Err(mut response) => {
                outer.after(outer_state, &mut response);
                Err(response)
            }
        }
    }

    fn after(&self, (outer_state, inner_state): Self::State, response: &mut Response) {
        let (outer, inner) = self;
        inner.after(inner_state, response);
        outer.after(outer_state, response);
    }
}

/// A service with a middleware around it.
#[derive(Debug)]
pub struct AroundService<S, M> {
    inner: S,
    middleware: Arc<M>,
}

impl<S, M> AroundService<S, M> {
    /// Puts a middleware around a service.
    pub fn new(middleware: M, inner: S) -> Self {
        Self { inner, middleware: Arc::new(middleware) }
    }
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
            Err(response) => AroundFuture { stage: Stage::Rejected { response: Some(response) } },
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
            response: Option<Box<Response>>,
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
            // A future is not polled again after it was ready.
            StageProjection::Rejected { response } => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(*response)))
            }
        }
    }
}
