//! The carrier and the simulated SMSC against other people's SMPP.
//!
//! Needs `npm ci` in this directory, and a Python with requirements.txt installed, named by
//! HELIOGRAPH_PEERS_PYTHON. Run with `--features test-peers`.

#[cfg(test)]
#[path = "../it/rig.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use the rest")]
mod rig;

#[cfg(test)]
mod tests {
    use crate::rig::{Rig, Smsc, options, parts, submission};
    use heliograph_carrier::smsc::options::SmscOptions;
    use heliograph_domain::inbound::Incoming;
    use heliograph_domain::phone::Recipient;
    use heliograph_domain::receipt::Verdict;
    use heliograph_domain::text::Concat;
    use serde_json::{Value, json};
    use std::process::Stdio;
    use std::time::Duration;
    use tokio::io::{AsyncBufReadExt, BufReader, Lines};
    use tokio::process::{Child, ChildStdout, Command};
    use tokio::time::timeout;

    const PATIENCE: Duration = Duration::from_secs(30);
    const ANN: u64 = 447_700_900_123;

    /// A peer, and the lines that it prints.
    struct Peer {
        child: Child,
        lines: Lines<BufReader<ChildStdout>>,
    }

    impl Peer {
        fn start(program: &str, arguments: &[&str]) -> Self {
            let mut child = Command::new(program)
                .args(arguments)
                .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers"))
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .expect("the peer can't be started: see the head of this file");
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            Self { child, lines }
        }

        /// The next line, which must be this event.
        async fn expect(&mut self, event: &str) -> Value {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.expect("the peer says nothing").unwrap().expect("the peer has ended");
            let line: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["event"], event, "{line}");
            line
        }

        async fn end(mut self) {
            let status = timeout(PATIENCE, self.child.wait()).await;
            assert!(status.expect("the peer does not end").unwrap().success());
        }
    }

    #[tokio::test]
    async fn our_client_at_the_smsc_of_node_smpp() {
        let mut node = Peer::start("node", &["smsc.mjs"]);
        let port = node.expect("listening").await["port"].as_u64().unwrap();
        let mut rig = Rig::bound(options(u16::try_from(port).unwrap())).await;
        let bound = node.expect("bound").await;
        assert_eq!((&bound["systemId"], &bound["version"]), (&json!("heliograph"), &json!(0x34)));
        assert_eq!(node.expect("alive").await["status"], 0);
        for (text, headers) in [("Hello from Rust".to_owned(), 0), ("Grüße 你好 ".repeat(20), 1)]
        {
            let mut shown = String::new();
            for part in parts(1, ANN, &text) {
                rig.submissions.send(part).await.unwrap();
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
                shown.push_str(submitted["text"].as_str().unwrap());
                let (_, smsc_id) = rig.accepted().await;
                assert_eq!(submitted["id"], smsc_id);
                let (handle, receipt) = rig.receipt().await;
                assert_eq!((receipt.smsc_id, receipt.recipient), (smsc_id, Recipient(ANN)));
                assert_eq!(receipt.verdict, Verdict::Delivered);
                rig.ack(handle, true).await;
                assert_eq!(node.expect("acknowledged").await["status"], 0);
            }
            assert_eq!(shown, text);
        }
        rig.say_stop();
        node.expect("unbound").await;
        rig.ended().await;
        node.end().await;
    }

    #[tokio::test]
    async fn replies_through_the_smsc_of_node_smpp() {
        let mut node = Peer::start("node", &["replies.mjs"]);
        let port = node.expect("listening").await["port"].as_u64().unwrap();
        let mut rig = Rig::bound(options(u16::try_from(port).unwrap())).await;
        let mut part = submission(1, ANN);
        part.originator = "447700900000".parse().unwrap();
        rig.submissions.send(part).await.unwrap();
        rig.accepted().await;
        let place = |sequence| Some(Concat { reference: 0x2A, total: 3, sequence });
        for (text, concat) in [
            ("GSM: {50} € é", None),
            ("Latin-1: Grüße", None),
            ("UCS-2: Да, 你好 😀", None),
            ("and three.", place(3)),
            ("Part one, ", place(1)),
            ("two @ two, ", place(2)),
        ] {
            let (handle, incoming) = rig.message().await;
            let expected = Incoming {
                from: ANN.to_string(),
                to: "447700900000".to_owned(),
                text: text.to_owned(),
                concat,
                label: None,
            };
            assert_eq!(incoming, expected);
            rig.ack(handle, true).await;
            assert_eq!(node.expect("acknowledged").await["status"], 0);
        }
        rig.say_stop();
        node.expect("unbound").await;
        rig.ended().await;
        node.end().await;
    }

    #[tokio::test]
    async fn the_client_of_smpplib_at_our_smsc() {
        let options = SmscOptions { receipt_delay: Duration::ZERO, ..SmscOptions::default() };
        let handsets = options.handsets.clone();
        let smsc = Smsc::start(options).await;
        let python = std::env::var("HELIOGRAPH_PEERS_PYTHON");
        let python = python.expect("HELIOGRAPH_PEERS_PYTHON names a Python with smpplib");
        let mut python = Peer::start(&python, &["client.py", &smsc.port.to_string()]);
        for _ in 0..4 {
            let receipt = python.expect("receipt").await;
            assert_eq!(receipt["state"], 2);
            let id = receipt["id"].as_str().unwrap();
            assert!(receipt["text"].as_str().unwrap().starts_with(&format!("id:{id} ")));
        }
        let done = python.expect("done").await;
        assert_eq!(done["accepted"], done["receipts"]);
        python.end().await;
        let shown: Vec<_> = handsets.messages(Recipient(ANN)).into_iter().map(|m| m.text).collect();
        assert_eq!(shown, ["Hello from smpplib", &"A long text, ".repeat(20), "Grüße, 你好 😀"]);
        smsc.stop().await;
    }
}
