//! Everything that the tests share.

pub(crate) mod carrier;
pub(crate) mod client;
pub(crate) mod endpoint;
pub(crate) mod html;
pub(crate) mod page;
pub(crate) mod site;
