//! The `heliograph smsc` command: the SMSC simulator as a process of its own.

use crate::output;
use crate::signals;
use crate::system::SystemClock;
use anyhow::Context;
use clap::Args;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_carrier::smsc::simulator::Simulator;
use heliograph_carrier::smsc::{control, server};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The end of `heliograph smsc -h`.
pub(crate) const EXAMPLE: &str = "Example:
  heliograph smsc --port 2775 --control-port 2776";

/// The end of `heliograph smsc --help`.
pub(crate) const LONG_HELP: &str = "Example:
  heliograph smsc --port 2775 --control-port 2776

The simulator is an SMPP 3.4 server that accepts any system_id and password. The last four digits of
the recipient select what happens to a message:

  0001  receipt UNDELIV with error 011
  0002  receipt EXPIRED with error 027
  0003  submit_sm refused with ESME_RINVDSTADR (0x0B)
  0004  first submit_sm refused with ESME_RTHROTTLED (0x58), then delivered
  0005  receipt DELIVRD after 30 seconds
  0006  no receipt
  0007  receipt DELIVRD before the submit_sm_resp
  0008  receipt DELIVRD twice
  0009  receipt DELIVRD, then the recipient replies STOP

All other messages get the receipt DELIVRD after --receipt-delay.";

/// The arguments of `heliograph smsc`.
#[derive(Args, Debug)]
pub(crate) struct SmscArgs {
    /// SMPP port on 127.0.0.1; 0 selects a free port
    #[arg(long, default_value_t = 2775)]
    port: u16,
    /// Port on 127.0.0.1 of the HTTP control API, which reads virtual handsets and sends replies; 0
    /// selects a free port
    #[arg(long, value_name = "PORT")]
    control_port: Option<u16>,
    /// Delay from a message to its delivery receipt, in milliseconds
    #[arg(long, default_value_t = 200, value_name = "MS")]
    receipt_delay: u64,
    /// Maximum number of unacknowledged receipts per session
    #[arg(long, default_value_t = 500, value_name = "N")]
    receipt_window: usize,
    /// Send no delivery receipts
    #[arg(long)]
    no_receipts: bool,
    /// Delay from a submit_sm to its response, in milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    resp_delay: u64,
    /// Fraction of submits to reject with ESME_RSYSERR, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "FRACTION", value_parser = fraction)]
    error_rate: f64,
    /// Submits per second above which to answer ESME_RTHROTTLED; 0 for no limit
    #[arg(long, default_value_t = 0, value_name = "N")]
    throttle: u32,
    /// Do not respond to every Nth submit; 0 to respond to all
    #[arg(long, default_value_t = 0, value_name = "N")]
    drop_response: u64,
    /// Disconnect after every N submits; 0 to never disconnect
    #[arg(long, default_value_t = 0, value_name = "N")]
    disconnect_every: u64,
    /// Use hexadecimal message ids in responses and decimal ones in receipts
    #[arg(long)]
    hex_ids: bool,
    /// Append a JSON line to this file for each submit and each acknowledged receipt or reply
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Maximum number of messages that the virtual handsets keep
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    keep_messages: usize,
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err("must be a number from 0 to 1".to_owned()),
    }
}

impl SmscArgs {
    fn options(self) -> SmscOptions {
        SmscOptions {
            receipt_delay: Duration::from_millis(self.receipt_delay),
            receipt_window: self.receipt_window,
            error_rate: self.error_rate,
            throttle: self.throttle,
            resp_delay: Duration::from_millis(self.resp_delay),
            drop_response_every: self.drop_response,
            disconnect_every: self.disconnect_every,
            hex_ids: self.hex_ids,
            no_receipts: self.no_receipts,
            journal: self.journal,
            keep_messages: self.keep_messages,
            ..SmscOptions::default()
        }
    }
}

/// Runs `heliograph smsc` until SIGTERM or Ctrl-C.
pub(crate) fn main(args: SmscArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let (listener, address) = listen(args.port).await?;
        let control = match args.control_port {
            Some(port) => Some(listen(port).await?),
            None => None,
        };
        let simulator = Simulator::new(args.options(), Arc::new(SystemClock))?;
        output::stdout(&format!(
            "SMPP server listening on {address} (accepts any system_id and password)"
        ));
        let (stop, stopped) = watch::channel(false);
        let mut servers = JoinSet::new();
        servers.spawn(server::serve(listener, simulator.clone(), stopped.clone()));
        if let Some((listener, address)) = control {
            output::stdout(&format!("Control API listening on http://{address}"));
            servers.spawn(control::serve(listener, simulator, stopped));
        }
        tokio::select! {
            // A server ends only when it is stopped or fails.
            Some(ended) = servers.join_next() => ended?,
            signal = signals::wait_for_shutdown() => {
                signal?;
                stop.send_replace(true);
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn listen(port: u16) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("failed to listen on 127.0.0.1:{port}"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
