//! Interoperability tests of the carrier and the simulated SMSC with node-smpp and smpplib.
//!
//! Prerequisites: `npm ci` in this directory, and a Python with requirements.txt installed, whose
//! path is in HELIOGRAPH_PEERS_PYTHON. Run with `--features test-peers`.

#[cfg(test)]
#[path = "../it/harness.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use all of it")]
mod harness;

#[cfg(test)]
mod tests {
    use crate::harness::{Harness, Smsc, options, parts, submission};
    use heliograph_carrier::smsc::options::SmscOptions;
    use heliograph_domain::inbound::IncomingSms;
    use heliograph_domain::phone::Recipient;
    use heliograph_domain::receipt::ReceiptOutcome;
    use heliograph_domain::text::Concat;
    use serde_json::{Value, json};
    use std::process::Stdio;
    use std::time::Duration;
    use tokio::io::{AsyncBufReadExt, BufReader, Lines};
    use tokio::process::{Child, ChildStdout, Command};
    use tokio::time::timeout;

    const TIMEOUT: Duration = Duration::from_secs(30);
    const ANN: u64 = 447_700_900_123;

    /// A peer process and the lines that it prints.
    struct PeerProcess {
        child: Child,
        lines: Lines<BufReader<ChildStdout>>,
    }

    impl PeerProcess {
        fn start(program: &str, arguments: &[&str]) -> Self {
            let mut child = Command::new(program)
                .args(arguments)
                .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers"))
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .expect("failed to start the peer: see the prerequisites at the top of this file");
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            Self { child, lines }
        }

        /// Returns the next line, which must be this event.
        async fn expect(&mut self, event: &str) -> Value {
            let line = timeout(TIMEOUT, self.lines.next_line()).await;
            let line = line.expect("no line in time").unwrap().expect("the peer has ended");
            let line: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["event"], event, "{line}");
            line
        }

        async fn end(mut self) {
            let status = timeout(TIMEOUT, self.child.wait()).await;
            assert!(status.expect("the peer does not end").unwrap().success());
        }
    }

    #[tokio::test]
    async fn carrier_works_with_node_smpp_server() {
        let mut node = PeerProcess::start("node", &["smsc.mjs"]);
        let port = node.expect("listening").await["port"].as_u64().unwrap();
        let mut harness = Harness::bound(options(u16::try_from(port).unwrap())).await;
        let bound = node.expect("bound").await;
        assert_eq!((&bound["systemId"], &bound["version"]), (&json!("heliograph"), &json!(0x34)));
        assert_eq!(node.expect("alive").await["status"], 0);
        for (text, headers) in [("Hello from Rust".to_owned(), 0), ("Grüße 你好 ".repeat(20), 1)]
        {
            let mut received = String::new();
            for part in parts(1, ANN, &text) {
                harness.submissions.send(part).await.unwrap();
                let submitted = node.expect("submitted").await;
                assert_eq!(
                    (&submitted["from"], &submitted["fromTon"]),
                    (&json!("Shop"), &json!(5))
                );
                assert_eq!(
                    (&submitted["to"], &submitted["registered"]),
                    (&json!(ANN.to_string()), &json!(1))
                );
                assert_eq!(submitted["headers"], headers);
                received.push_str(submitted["text"].as_str().unwrap());
                let (_, smsc_id) = harness.accepted().await;
                assert_eq!(submitted["id"], smsc_id);
                let (handle, receipt) = harness.receipt().await;
                assert_eq!((receipt.smsc_id, receipt.recipient), (smsc_id, Recipient(ANN)));
                assert_eq!(receipt.outcome, ReceiptOutcome::Delivered);
                harness.ack(handle, true).await;
                assert_eq!(node.expect("acknowledged").await["status"], 0);
            }
            assert_eq!(received, text);
        }
        harness.request_stop();
        node.expect("unbound").await;
        harness.join().await;
        node.end().await;
    }

    #[tokio::test]
    async fn carrier_receives_replies_from_node_smpp_server() {
        let mut node = PeerProcess::start("node", &["replies.mjs"]);
        let port = node.expect("listening").await["port"].as_u64().unwrap();
        let mut harness = Harness::bound(options(u16::try_from(port).unwrap())).await;
        let mut part = submission(1, ANN);
        part.originator = "447700900000".parse().unwrap();
        harness.submissions.send(part).await.unwrap();
        harness.accepted().await;
        let place = |sequence| Some(Concat { reference: 0x2A, total: 3, sequence });
        for (text, concat) in [
            ("GSM: {50} € é", None),
            ("Latin-1: Grüße", None),
            ("UCS-2: Да, 你好 😀", None),
            ("and three.", place(3)),
            ("Part one, ", place(1)),
            ("two @ two, ", place(2)),
        ] {
            let (handle, incoming) = harness.message().await;
            let expected = IncomingSms {
                from: ANN.to_string(),
                to: "447700900000".to_owned(),
                text: text.to_owned(),
                concat,
                label: None,
            };
            assert_eq!(incoming, expected);
            harness.ack(handle, true).await;
            assert_eq!(node.expect("acknowledged").await["status"], 0);
        }
        harness.request_stop();
        node.expect("unbound").await;
        harness.join().await;
        node.end().await;
    }

    #[tokio::test]
    async fn smpplib_client_works_with_simulated_smsc() {
        let options = SmscOptions { receipt_delay: Duration::ZERO, ..SmscOptions::default() };
        let handsets = options.handsets.clone();
        let smsc = Smsc::start(options).await;
        let python = std::env::var("HELIOGRAPH_PEERS_PYTHON");
        let python = python.expect("HELIOGRAPH_PEERS_PYTHON must name a Python with smpplib");
        let mut python = PeerProcess::start(&python, &["client.py", &smsc.port.to_string()]);
        for _ in 0..4 {
            let receipt = python.expect("receipt").await;
            assert_eq!(receipt["state"], 2);
            let id = receipt["id"].as_str().unwrap();
            assert!(receipt["text"].as_str().unwrap().starts_with(&format!("id:{id} ")));
        }
        let done = python.expect("done").await;
        assert_eq!(done["accepted"], done["receipts"]);
        python.end().await;
        let texts: Vec<_> = handsets.messages(Recipient(ANN)).into_iter().map(|m| m.text).collect();
        assert_eq!(texts, ["Hello from smpplib", &"A long text, ".repeat(20), "Grüße, 你好 😀"]);
        smsc.stop().await;
    }
}
