//! The whole server from outside: the program as it is shipped, its HTTP and its commands.

#[cfg(test)]
mod database;
#[cfg(test)]
mod first_message;
#[cfg(test)]
mod http;
#[cfg(test)]
mod patience;
#[cfg(all(test, feature = "test-postgres"))]
mod postgres;
#[cfg(test)]
mod process;
#[cfg(test)]
mod send_sms;
#[cfg(test)]
mod server;
#[cfg(test)]
mod smsc;
