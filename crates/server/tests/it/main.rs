//! The whole server from outside: the program as it is shipped, its HTTP and its commands.

#[cfg(test)]
#[cfg(feature = "test-browser")]
mod axe;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod backup_interrupted;
#[cfg(test)]
mod bad_days;
#[cfg(test)]
mod browser;
#[cfg(test)]
#[cfg(feature = "test-browser")]
mod chromium;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod config;
#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod dashboard_conversations;
#[cfg(test)]
mod dashboard_figures;
#[cfg(test)]
mod dashboard_messages;
#[cfg(test)]
mod dashboard_pages;
#[cfg(test)]
mod dashboard_send;
#[cfg(test)]
mod dashboard_settings;
#[cfg(test)]
mod dashboard_tenants;
#[cfg(test)]
mod database;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod draining;
#[cfg(test)]
mod entrance;
#[cfg(test)]
mod first_message;
#[cfg(test)]
mod furnished;
#[cfg(test)]
#[cfg(feature = "test-samples")]
mod guides;
#[cfg(test)]
mod health;
#[cfg(test)]
mod http;
#[cfg(test)]
mod https;
#[cfg(test)]
mod https_client;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
#[cfg(feature = "test-browser")]
mod journey;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod listen;
#[cfg(test)]
mod live;
#[cfg(test)]
mod mail;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod optouts;
#[cfg(test)]
mod optouts_held_back;
#[cfg(test)]
mod optouts_wrong_input;
#[cfg(test)]
mod patience;
#[cfg(test)]
#[cfg(feature = "test-peers")]
mod peers;
#[cfg(test)]
mod people;
#[cfg(test)]
mod ports;
#[cfg(test)]
#[cfg(feature = "test-postgres")]
mod postgres;
#[cfg(test)]
mod process;
#[cfg(test)]
mod rate_limits;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod routes;
#[cfg(test)]
#[cfg(feature = "test-samples")]
mod samples;
#[cfg(test)]
#[cfg(feature = "test-schema")]
mod schema;
#[cfg(test)]
#[cfg(feature = "test-browser")]
mod screenshots;
#[cfg(test)]
mod sealing;
#[cfg(test)]
mod second_step;
#[cfg(test)]
mod send_sms;
#[cfg(test)]
mod server;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod sink;
#[cfg(test)]
mod site;
#[cfg(test)]
mod slow_clients;
#[cfg(test)]
mod smsc;
#[cfg(test)]
mod start;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod worlds;
#[cfg(test)]
mod wrong_input;
