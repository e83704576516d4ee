//! What goes out, and how answers find what they answer.

use crate::pair::pair;
use crate::rig::{parts, submission};
use heliograph_carrier::smpp::body::ShortMessage;
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu::Head;
use heliograph_domain::message::FailureCode;
use heliograph_domain::submission::Outcome;
use std::time::{Duration, Instant};

const ANN: u64 = 447_700_900_123;

#[tokio::test]
async fn a_submit_sm_says_what_the_submission_says() {
    let (rig, mut peer, _door) = pair(|_| ()).await;
    for originator in ["Shop", "60777", "447700900999"] {
        let mut part = parts(1, ANN, &"x".repeat(200)).remove(1);
        part.originator = originator.parse().unwrap();
        rig.submissions.send(part).await.unwrap();
    }
    for (originator, ton, npi) in [("Shop", 5, 0), ("60777", 3, 0), ("447700900999", 1, 1)] {
        let (_, body) = peer.expect(id::SUBMIT_SM).await;
        let m = ShortMessage::decode(&body).unwrap();
        assert_eq!(m.source.digits, originator.as_bytes());
        assert_eq!((m.source.ton, m.source.npi), (ton, npi));
        assert_eq!(m.destination.digits, b"447700900123");
        assert_eq!((m.destination.ton, m.destination.npi), (1, 1));
        assert_eq!((m.esm_class, m.data_coding, m.registered_delivery), (esm::UDH, 0, 1));
        assert_eq!(m.validity, b"000002000000000R");
        assert_eq!(m.text[..6], [5, 0, 3, 7, 2, 2]);
    }
}

#[tokio::test]
async fn the_window_is_never_exceeded() {
    let (mut rig, mut peer, _door) = pair(|o| o.window = 3).await;
    for token in 0..10 {
        rig.submit(token, ANN).await;
    }
    let mut unanswered = Vec::new();
    for _ in 0..3 {
        unanswered.push(peer.expect(id::SUBMIT_SM).await.0);
    }
    peer.expect_silence().await;
    for token in 0..7 {
        let head = unanswered.remove(0);
        peer.answer(head, 0, "x").await;
        assert_eq!(rig.accepted().await.0, token);
        unanswered.push(peer.expect(id::SUBMIT_SM).await.0);
        peer.expect_silence().await;
    }
}

#[tokio::test]
async fn answers_that_the_engine_does_not_take_hold_the_window() {
    let (mut rig, mut peer, _door) = pair(|o| o.window = 4).await;
    let mut token = 0;
    // As many as the channel to the engine takes in batches of one, and then the window's worth.
    for _ in 0..16 + 4 {
        rig.submit(token, ANN).await;
        let (head, _) = peer.expect(id::SUBMIT_SM).await;
        peer.answer(head, 0, "x").await;
        peer.expect_silence().await;
        token += 1;
    }
    rig.submit(token, ANN).await;
    peer.expect_silence().await;
    for expected in 0..token {
        assert_eq!(rig.accepted().await.0, expected);
    }
    peer.expect(id::SUBMIT_SM).await;
}

#[tokio::test]
async fn answers_in_any_order_find_their_submissions() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    for token in 0..3 {
        rig.submit(token, ANN).await;
    }
    let mut heads = Vec::new();
    for _ in 0..3 {
        heads.push(peer.expect(id::SUBMIT_SM).await.0);
    }
    for n in [2, 0, 1] {
        peer.answer(heads[n], 0, &format!("id{n}")).await;
    }
    for n in [2, 0, 1] {
        assert_eq!(rig.accepted().await, (n, format!("id{n}")));
    }
}

#[tokio::test]
async fn an_error_may_come_without_a_message_id_or_as_a_nack() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    for token in 0..3 {
        rig.submit(token, ANN).await;
    }
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    peer.bare(head.response(0x0B)).await;
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    peer.bare(head.nack(0x03)).await;
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    peer.bare(head.nack(0)).await;
    for expected in [Some(FailureCode::InvalidRecipient), Some(FailureCode::CarrierError), None] {
        match (rig.outcome().await.1, expected) {
            (Outcome::Refused(failure), Some(code)) => assert_eq!(failure.code, code),
            (Outcome::Ambiguous { status: 0xFF }, None) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_lease_that_has_run_out_is_not_sent() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    let mut late = submission(1, ANN);
    late.not_after = Instant::now();
    rig.submissions.send(late).await.unwrap();
    assert_eq!(rig.outcome().await, (1, Outcome::NotSent));
    peer.expect_silence().await;
}

#[tokio::test]
async fn a_throttled_carrier_pauses_for_a_second() {
    let (mut rig, mut peer, _door) = pair(|o| o.window = 1).await;
    rig.submit(1, ANN).await;
    rig.submit(2, ANN).await;
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    let before = Instant::now();
    peer.answer(head, 0x58, "").await;
    assert_eq!(rig.outcome().await, (1, Outcome::Throttled));
    peer.expect_silence().await;
    peer.expect(id::SUBMIT_SM).await;
    assert!(before.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn the_rate_is_kept() {
    let (rig, mut peer, _door) = pair(|o| (o.window, o.rate) = (100, 40)).await;
    for token in 0..20 {
        rig.submit(token, ANN).await;
    }
    let before = Instant::now();
    for _ in 0..20 {
        peer.expect(id::SUBMIT_SM).await;
    }
    // 20 at 40 a second, of which 4 may come at once.
    assert!(before.elapsed() >= Duration::from_millis(375), "{:?}", before.elapsed());
}

#[tokio::test]
async fn sequence_numbers_answer_only_once() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    rig.submit(1, ANN).await;
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    peer.answer(Head { sequence: head.sequence + 1, ..head }, 0, "stray").await;
    peer.answer(head, 0, "first").await;
    peer.answer(head, 0, "second").await;
    assert_eq!(rig.accepted().await, (1, "first".to_owned()));
    rig.submit(2, ANN).await;
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    peer.answer(head, 0, "third").await;
    assert_eq!(rig.accepted().await, (2, "third".to_owned()));
}
