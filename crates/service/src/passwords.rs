//! Passwords: hashing and comparing them, which is slow on purpose, a few at once and away from all else.

use crate::error::{Error, Result};
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Threads that hash: each takes 19 MiB and a core.
pub const THREADS: usize = 2;
/// Passwords that may wait: at some 30 ms each nobody waits longer than half a second.
const WAITING: usize = 32;
/// Memory in KiB, passes and lanes, as OWASP has them.
const COST: (u32, u32, u32) = (19 * 1_024, 2, 1);
/// What the passwords of people are compared with who do not exist or have none: it costs the same.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGhhcyBpdCE$Zm9yIHRoZSB0aW1lIGl0IHRha2VzLCBubyBtb3JlISE";

type Job = Box<dyn FnOnce() + Send>;

/// Hands passwords to the threads that hash. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Passwords(SyncSender<Job>);

/// What one such thread works on.
#[derive(Clone)]
pub struct Work(Arc<Mutex<Receiver<Job>>>);

/// A way to threads that hash, and what they work on.
pub fn channel() -> (Passwords, Work) {
    let (jobs, work) = sync_channel(WAITING);
    (Passwords(jobs), Work(Arc::new(Mutex::new(work))))
}

impl Work {
    /// Works until nobody can hand anything in any more.
    pub fn run(self) {
        loop {
            let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match next {
                Ok(job) => job(),
                Err(_) => return,
            }
        }
    }
}

impl Passwords {
    /// The hash of a password, in PHC form.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when too many wait already.
    pub async fn hash(&self, password: &str) -> Result<String> {
        let password = password.to_owned();
        let hashed = self.work(move || {
            let hash: std::result::Result<argon2::PasswordHash, _> =
                argon()?.hash_password(password.as_bytes());
            hash.map(|hash| hash.to_string()).map_err(|e| Error::Internal(e.to_string()))
        });
        hashed.await?
    }

    /// Whether this is the password that was hashed. It takes as long when there is none.
    ///
    /// # Errors
    /// As [`Self::hash`].
    pub async fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool> {
        let (password, hash) = (password.to_owned(), hash.map(str::to_owned));
        let same = self.work(move || {
            let hashed = hash.as_deref().unwrap_or(NOBODY);
            Ok(argon()?.verify_password(password.as_bytes(), hashed).is_ok() && hash.is_some())
        });
        same.await?
    }

    async fn work<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (reply, done) = oneshot::channel();
        let busy = || Error::Overloaded("too many passwords are looked at".to_owned());
        let job = Box::new(move || drop(reply.send(job())));
        self.0.try_send(job).map_err(|_| busy())?;
        done.await.map_err(|_| busy())
    }
}

fn argon() -> Result<Argon2<'static>> {
    let (memory, passes, lanes) = COST;
    let params =
        Params::new(memory, passes, lanes, None).map_err(|e| Error::Internal(e.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_known_again_and_nobody_has_none() {
        let (passwords, work) = channel();
        let thread = std::thread::spawn(move || work.run());
        let hash = passwords.hash("otter velvet tram").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(passwords.hash("otter velvet tram").await.unwrap(), hash);
        assert!(passwords.verify("otter velvet tram", Some(&hash)).await.unwrap());
        assert!(!passwords.verify("otter velvet trams", Some(&hash)).await.unwrap());
        assert!(!passwords.verify("otter velvet tram", None).await.unwrap());
        drop(passwords);
        thread.join().unwrap();
    }

    #[test]
    fn nobodys_hash_costs_what_others_do() {
        let begin = format!("$argon2id$v=19$m={},t={},p={}$", COST.0, COST.1, COST.2);
        assert!(NOBODY.starts_with(&begin));
        let hash = argon2::PasswordHash::new(NOBODY).unwrap();
        assert_eq!(
            (hash.salt.unwrap().as_ref().len(), hash.hash.unwrap().as_ref().len()),
            (14, 32)
        );
    }

    #[tokio::test]
    async fn too_many_are_refused() {
        let (passwords, _work) = channel();
        let waiting: Vec<_> = (0..WAITING).map(|_| passwords.hash("x")).collect();
        let mut waiting: Vec<_> = waiting.into_iter().map(Box::pin).collect();
        for one in &mut waiting {
            assert!(futures_util::poll!(one).is_pending());
        }
        assert!(matches!(passwords.hash("x").await, Err(Error::Overloaded(_))));
    }
}
