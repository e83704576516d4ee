//! Links that break, peers that say nonsense, and how the carrier comes back.

use crate::pair::pair;
use crate::peer::Door;
use crate::rig::{Rig, options, submission};
use heliograph_carrier::carrier::Event;
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu::Head;
use heliograph_domain::submission::Outcome;
use std::time::Duration;
use tokio::net::TcpListener;

const ANN: u64 = 447_700_900_123;

#[tokio::test]
async fn a_missing_answer_costs_the_bind_and_leaves_doubt() {
    let (mut rig, mut peer, door) = pair(|o| o.response_timeout = Duration::from_millis(200)).await;
    for token in 0..3 {
        rig.submit(token, ANN).await;
    }
    peer.expect(id::SUBMIT_SM).await;
    let (second, _) = peer.expect(id::SUBMIT_SM).await;
    peer.expect(id::SUBMIT_SM).await;
    peer.answer(second, 0, "x").await;
    assert_eq!(rig.accepted().await.0, 1);
    for token in [0, 2] {
        assert_eq!(rig.outcome().await, (token, Outcome::InDoubt));
    }
    assert!(rig.unbound().await.contains("submit_sm_resp"));
    // A late answer counts only in its own session.
    let mut next = door.bind().await;
    assert_eq!(rig.event().await, Event::Bound);
    next.answer(second, 0, "late").await;
    next.expect_silence().await;
    rig.submit(7, ANN).await;
    let (head, _) = next.expect(id::SUBMIT_SM).await;
    next.answer(head, 0, "y").await;
    assert_eq!(rig.accepted().await, (7, "y".to_owned()));
}

#[tokio::test]
async fn a_link_cut_in_the_middle_of_a_pdu_leaves_doubt() {
    let (mut rig, mut peer, door) = pair(|_| ()).await;
    rig.submit(1, ANN).await;
    peer.expect(id::SUBMIT_SM).await;
    peer.raw(&[0, 0, 0, 20, 0x80, 0, 0, 4, 0]).await;
    drop(peer);
    assert_eq!(rig.outcome().await, (1, Outcome::InDoubt));
    rig.unbound().await;
    door.bind().await;
    assert_eq!(rig.event().await, Event::Bound);
}

#[tokio::test]
async fn nonsense_gets_a_nack_and_the_stream_goes_on() {
    let (mut rig, mut peer, _door) = pair(|_| ()).await;
    let unknown = Head::request(0x0103, 5);
    peer.bare(unknown).await;
    assert_eq!(peer.next().await.0, unknown.nack(0x03));
    // A deliver_sm without a body, responses to nothing, and a vendor's response.
    let broken = Head::request(id::DELIVER_SM, 6);
    peer.bare(broken).await;
    assert_eq!(peer.next().await.0, broken.response(0x65));
    for command in [id::SUBMIT_SM_RESP, id::GENERIC_NACK, 0x8001_0000, id::ALERT_NOTIFICATION] {
        peer.bare(Head::request(command, 99)).await;
    }
    peer.expect_silence().await;
    rig.submit(1, ANN).await;
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    peer.answer(head, 0, "x").await;
    rig.accepted().await;
}

#[tokio::test]
async fn an_impossible_length_ends_the_session() {
    for length in [0u32, 15, 65_537, u32::MAX] {
        let (mut rig, mut peer, _door) = pair(|_| ()).await;
        peer.raw(&length.to_be_bytes()).await;
        assert!(rig.unbound().await.contains("command_length"));
    }
}

#[tokio::test]
async fn a_pdu_in_pieces_is_one_pdu() {
    let (_rig, mut peer, _door) = pair(|_| ()).await;
    for byte in [0, 0, 0, 16, 0, 0, 0, 0x15, 0, 0, 0, 0, 0, 0, 0, 9] {
        peer.raw(&[byte]).await;
    }
    let head = Head::request(id::ENQUIRE_LINK, 9);
    assert_eq!(peer.next().await.0, head.response(0));
}

#[tokio::test]
async fn the_rest_of_a_pdu_must_come_in_time() {
    let (mut rig, mut peer, _door) = pair(|o| o.read_timeout = Duration::from_millis(100)).await;
    peer.raw(&[0, 0, 0, 16, 0, 0, 0, 0x15]).await;
    assert!(rig.unbound().await.contains("rest of a PDU"));
}

#[tokio::test]
async fn a_quiet_smsc_is_asked_and_a_dead_one_is_left() {
    let (mut rig, mut peer, _door) = pair(|o| {
        o.enquire_after = Duration::from_millis(50);
        o.enquire_timeout = Duration::from_millis(200);
    })
    .await;
    for _ in 0..3 {
        let (head, _) = peer.expect(id::ENQUIRE_LINK).await;
        peer.bare(head.response(0)).await;
    }
    peer.expect(id::ENQUIRE_LINK).await;
    assert!(rig.unbound().await.contains("enquire_link_resp"));
}

#[tokio::test]
async fn an_smsc_that_unbinds_is_answered_and_found_again() {
    let (mut rig, mut peer, door) = pair(|_| ()).await;
    let unbind = Head::request(id::UNBIND, 5);
    peer.bare(unbind).await;
    assert_eq!(peer.next().await.0, unbind.response(0));
    assert!(peer.read().await.is_none());
    rig.unbound().await;
    door.bind().await;
    assert_eq!(rig.event().await, Event::Bound);
}

#[tokio::test]
async fn a_lost_bind_state_leads_to_a_new_bind() {
    let (mut rig, mut peer, door) = pair(|_| ()).await;
    rig.submit(1, ANN).await;
    rig.submit(2, ANN).await;
    let (first, _) = peer.expect(id::SUBMIT_SM).await;
    let (second, _) = peer.expect(id::SUBMIT_SM).await;
    peer.answer(first, 0x04, "").await;
    assert_eq!(rig.outcome().await, (1, Outcome::NotSent));
    // What is on the way still gets its answer; nothing else is sent.
    rig.submit(3, ANN).await;
    peer.expect_silence().await;
    peer.answer(second, 0, "x").await;
    assert_eq!(rig.accepted().await.0, 2);
    let (unbind, _) = peer.expect(id::UNBIND).await;
    peer.bare(unbind.response(0)).await;
    assert!(rig.unbound().await.contains("ESME_RINVBNDSTS"));
    assert_eq!(rig.outcome().await, (3, Outcome::NotSent));
    door.bind().await;
    assert_eq!(rig.event().await, Event::Bound);
}

#[tokio::test]
async fn submissions_wait_for_the_first_try_and_are_given_back_after_it() {
    let door = Door::open().await;
    let mut rig = Rig::start(options(door.port()));
    rig.submit(1, ANN).await;
    let (mut peer, head) = door.knock().await;
    peer.answer(head, 0x0D, "").await;
    assert!(rig.unbound().await.contains("0x0000000d"));
    assert_eq!(rig.outcome().await, (1, Outcome::NotSent));
    rig.submit(2, ANN).await;
    assert_eq!(rig.outcome().await, (2, Outcome::NotSent));
}

#[tokio::test]
async fn a_host_that_is_not_there_is_told_once() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let mut rig = Rig::start(options(port));
    rig.unbound().await;
    for token in 0..5 {
        rig.submit(token, ANN).await;
        assert_eq!(rig.outcome().await, (token, Outcome::NotSent));
    }
    rig.say_stop();
    assert_eq!(rig.ended().await, []);
}

#[tokio::test]
async fn an_smsc_that_does_not_answer_the_bind_is_given_up() {
    let door = Door::open().await;
    let mut options = options(door.port());
    options.bind_timeout = Duration::from_millis(100);
    let mut rig = Rig::start(options);
    let _silent = door.knock().await;
    assert!(rig.unbound().await.contains("no answer"));
    let _next = door.bind().await;
    assert_eq!(rig.event().await, Event::Bound);
}

#[tokio::test]
async fn stopping_waits_for_answers_and_gives_back_the_rest() {
    let (rig, mut peer, _door) = pair(|o| o.window = 2).await;
    for token in 0..4 {
        rig.submit(token, ANN).await;
    }
    let (first, _) = peer.expect(id::SUBMIT_SM).await;
    let (second, _) = peer.expect(id::SUBMIT_SM).await;
    peer.deliver(1, "447700900123", esm::RECEIPT, "id:1 stat:DELIVRD").await;
    rig.say_stop();
    let mut rig = rig;
    let mut outcomes = Vec::new();
    let mut handle = None;
    while handle.is_none() || outcomes.len() < 2 {
        match rig.event().await {
            Event::Receipt { handle: of, .. } => handle = Some(of),
            Event::Submitted { token, outcome, .. } => outcomes.push((token, outcome)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(outcomes, [(2, Outcome::NotSent), (3, Outcome::NotSent)]);
    assert!(rig.submissions.try_send(submission(5, ANN)).is_err());
    peer.answer(second, 0, "b").await;
    peer.answer(first, 0, "a").await;
    assert_eq!(rig.accepted().await.0, 1);
    assert_eq!(rig.accepted().await.0, 0);
    // The engine still owes an acknowledgement; new receipts would only make it later.
    peer.receipt(2, "447700900123", "2").await;
    let (head, _) = peer.expect(id::DELIVER_SM_RESP).await;
    assert_eq!((head.status, head.sequence), (0x64, 2));
    peer.expect_silence().await;
    rig.ack(handle.unwrap(), true).await;
    let (head, _) = peer.expect(id::DELIVER_SM_RESP).await;
    assert_eq!((head.status, head.sequence), (0, 1));
    let (unbind, _) = peer.expect(id::UNBIND).await;
    peer.bare(unbind.response(0)).await;
    assert!(peer.read().await.is_none());
    assert_eq!(rig.ended().await, [Event::Unbound("shutting down".to_owned())]);
}

#[tokio::test]
async fn stopping_does_not_wait_for_ever() {
    let (mut rig, mut peer, _door) = pair(|o| o.drain_timeout = Duration::from_millis(100)).await;
    rig.submit(1, ANN).await;
    peer.expect(id::SUBMIT_SM).await;
    rig.say_stop();
    assert_eq!(rig.outcome().await, (1, Outcome::InDoubt));
    rig.unbound().await;
    assert_eq!(rig.ended().await, []);
}

#[tokio::test]
async fn an_engine_that_goes_away_ends_the_carrier() {
    let (rig, mut peer, _door) = pair(|_| ()).await;
    rig.submit(1, ANN).await;
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    let tasks = rig.abandon();
    peer.answer(head, 0, "x").await;
    tasks.join_all().await;
}

#[tokio::test]
async fn the_condition_of_a_line_can_be_looked_at() {
    let (mut rig, mut peer, door) = pair(|_| ()).await;
    let seen = rig.condition.look();
    assert_eq!((seen.bound, seen.unanswered, seen.throttled, seen.trouble), (true, 0, false, None));
    rig.submit(1, ANN).await;
    let (head, _) = peer.expect(id::SUBMIT_SM).await;
    assert_eq!(rig.condition.look().unanswered, 1);
    peer.answer(head, 0x58, "").await;
    assert_eq!(rig.outcome().await, (1, Outcome::Throttled));
    let seen = rig.condition.look();
    assert_eq!((seen.unanswered, seen.throttled), (0, true));
    assert!(!rig.condition.look().throttled, "it is told once");
    drop(peer);
    rig.unbound().await;
    let seen = rig.condition.look();
    let (why, _) = seen.trouble.unwrap();
    assert!(!seen.bound && why.starts_with("bind lost: "), "{why}");
    let _peer = door.bind().await;
    assert_eq!(rig.event().await, Event::Bound);
    assert!(rig.condition.look().bound);
}
