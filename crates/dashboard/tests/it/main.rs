//! Tests of the pages inside the process: the router of the dashboard over a database of its own,
//! on the engine selected by `HELIOGRAPH_TEST_ENGINE`. There is no network and no browser.

#[cfg(test)]
mod api_keys;
#[cfg(test)]
mod assets;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod error_pages;
#[cfg(test)]
mod join;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod members;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod mode;
#[cfg(test)]
mod operator;
#[cfg(test)]
mod optouts;
#[cfg(test)]
mod overview;
#[cfg(test)]
mod password_reset;
#[cfg(test)]
mod phone;
#[cfg(test)]
mod security;
#[cfg(test)]
mod send;
#[cfg(test)]
mod sign_in;
#[cfg(test)]
mod sign_up;
#[cfg(test)]
mod support;
#[cfg(test)]
mod webhooks;
