//! The simulated SMSC: alone as `heliograph smsc`, or inside the service.

use crate::output;
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

/// Runs the simulated SMSC: a real SMPP 3.4 server on 127.0.0.1 that takes any credentials. The last
/// digits of a number choose what happens to it: 0001 undeliverable, 0002 expired, 0003 rejected at
/// submit, 0004 throttled first, 0005 receipt after 30 s, 0006 no receipt, 0007 receipt before the
/// response, 0008 receipt twice, 0009 replies STOP; anything else is delivered within a second.
#[derive(Args, Debug)]
pub(crate) struct SmscArgs {
    /// Port on 127.0.0.1; 0 takes any free one and prints it
    #[arg(long, default_value_t = 2775)]
    port: u16,
    /// Port on 127.0.0.1 where scripts look at handsets and reply from them over HTTP; 0 takes any
    /// free one and prints it
    #[arg(long, value_name = "PORT")]
    control_port: Option<u16>,
    /// Milliseconds from a message to its receipt
    #[arg(long, default_value_t = 200, value_name = "MS")]
    receipt_delay: u64,
    /// Receipts that may wait for their acknowledgement on one session
    #[arg(long, default_value_t = 500, value_name = "N")]
    receipt_window: usize,
    /// Send no receipts at all
    #[arg(long)]
    no_receipts: bool,
    /// Milliseconds from a submit_sm to its response
    #[arg(long, default_value_t = 0, value_name = "MS")]
    resp_delay: u64,
    /// Share of submits that are refused with ESME_RSYSERR, 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    error_rate: f64,
    /// Submits a second beyond which ESME_RTHROTTLED is answered; 0 is never
    #[arg(long, default_value_t = 0, value_name = "N")]
    throttle: u32,
    /// Leave one submit in N without a response; 0 is never
    #[arg(long, default_value_t = 0, value_name = "N")]
    drop_response: u64,
    /// Cut the link after every N submits; 0 is never
    #[arg(long, default_value_t = 0, value_name = "N")]
    disconnect_every: u64,
    /// Give message ids in hexadecimal in responses, in decimal in receipts
    #[arg(long)]
    hex_ids: bool,
    /// Append one JSON line per submit and per acknowledged receipt or reply to this file
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Messages that the virtual handsets keep
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    keep_messages: usize,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
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

/// `heliograph smsc`.
pub(crate) fn main(args: SmscArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let (listener, address) = listen(args.port).await?;
        let control = match args.control_port {
            Some(port) => Some(listen(port).await?),
            None => None,
        };
        let simulator = Simulator::new(args.options(), Arc::new(SystemClock))?;
        output::result(&format!("SMPP on {address}, any system_id and password"));
        let (stop, stopped) = watch::channel(false);
        let mut served = JoinSet::new();
        served.spawn(server::serve(listener, simulator.clone(), stopped.clone()));
        if let Some((listener, address)) = control {
            output::result(&format!("control on http://{address}"));
            served.spawn(control::serve(listener, simulator, stopped));
        }
        tokio::select! {
            // They end only when they are stopped, or broken.
            Some(ended) = served.join_next() => ended?,
            signal = crate::serve::signal() => {
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
        .with_context(|| format!("127.0.0.1:{port} can't be listened on"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
