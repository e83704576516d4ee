//! Black-box tests of the server: the program as it is shipped, its HTTP interface and its
//! commands.

#[cfg(test)]
mod api;
#[cfg(test)]
#[cfg(feature = "test-browser")]
mod browser;
#[cfg(test)]
mod carriers;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod http;
#[cfg(test)]
#[cfg(feature = "test-postgres")]
mod postgres;
#[cfg(test)]
mod sqlite;
#[cfg(test)]
mod support;
#[cfg(test)]
mod webhooks;
