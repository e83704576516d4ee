//! Passwords: hashing and verification (Argon2id) on dedicated threads with a bounded queue, and
//! changing one's own password.

use crate::identity::sessions::{self, AuthenticatedUser};
use crate::kernel::audit::{self, AuditAction};
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use async_recursion::async_recursion as boxed;
use heliograph_domain::password;
use heliograph_domain::secret::Token;
use heliograph_store::identity::magic_links;
use heliograph_store::identity::users;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The number of hashing threads: each uses 19 MiB and a core.
pub const THREADS: usize = 2;
/// The number of passwords that may wait: at some 30 ms each, the wait stays below half a second.
const WAITING: usize = 32;
/// Memory in KiB, passes and lanes, as recommended by OWASP.
const COST: (u32, u32, u32) = (19 * 1_024, 2, 1);
/// A hash that is verified when a user does not exist or has no password, so that the response
/// takes the same time.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGhhcyBpdCE$Zm9yIHRoZSB0aW1lIGl0IHRha2VzLCBubyBtb3JlISE";

type Job = Box<dyn FnOnce() + Send>;

/// A handle to the hashing threads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Passwords(SyncSender<Job>);

/// The work queue of the hashing threads.
#[derive(Clone)]
pub struct Work(Arc<Mutex<Receiver<Job>>>);

/// Returns a handle and the work queue.
pub fn channel() -> (Passwords, Work) {
    let (jobs, work) = sync_channel(WAITING);
    (Passwords(jobs), Work(Arc::new(Mutex::new(work))))
}

impl Work {
    /// Works until all handles are gone.
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
    /// Returns the hash of a password in PHC form.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when too many passwords are waiting.
    #[boxed]
    pub async fn hash(&self, password: &str) -> Result<String> {
        let password = password.to_owned();
        let hashed = self.work(move || {
            let hash: std::result::Result<argon2::PasswordHash, _> =
                argon()?.hash_password(password.as_bytes());
            hash.map(|hash| hash.to_string()).map_err(|e| Error::Internal(e.to_string()))
        });
        hashed.await?
    }

    /// Returns whether the password matches the hash. Takes the same time when there is no hash.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when too many passwords are waiting.
    #[boxed]
    pub async fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool> {
        let password = password.to_owned();
        let hash = hash.map(str::to_owned);
        let same = self.work(move || {
            let hashed = hash.as_deref().unwrap_or(NOBODY);
            Ok(argon()?.verify_password(password.as_bytes(), hashed).is_ok() && hash.is_some())
        });
        same.await?
    }

    async fn work<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (reply, done) = oneshot::channel();
        let busy = || Error::Overloaded("too many passwords are being checked".to_owned());
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

/// An email address and a password.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The email address.
    pub email: &'a str,
    /// The password.
    pub password: &'a str,
}

/// A change of a password.
#[derive(Clone, Copy)]
pub struct PasswordChange<'a> {
    /// The old password; anything if the user has none.
    pub old: &'a str,
    /// The new password.
    pub new: &'a str,
}

/// Changes the password of a signed-in user; `None` when the old one is wrong. All other sessions of
/// the user end, all links are invalidated, and the session continues with the returned secret.
///
/// # Errors
/// [`Error::WeakPassword`].
pub async fn change(
    cx: &Context,
    passwords: &Passwords,
    who: &AuthenticatedUser,
    address: &str,
    change: PasswordChange<'_>,
) -> Result<Option<Token>> {
    let PasswordChange { old, new } = change;
    let session = &who.details.session;
    let user =
        users::by_id(&mut cx.db.read().await?, session.user).await?.ok_or(Error::NotFound)?;
    // A user who signed up by a link has no old password.
    if user.password_hash.is_some() && !passwords.verify(old, user.password_hash.as_deref()).await?
    {
        return Ok(None);
    }
    password::check(new, &user.email)?;
    let hash = passwords.hash(new).await?;
    let mut tx = cx.db.write().await?;
    users::set_password(&mut tx, user.id, &hash).await?;
    users::drop_pending_totp(&mut tx, user.id).await?;
    users::delay_codes(&mut tx, user.id, None).await?;
    magic_links::delete_for_user(&mut tx, user.id).await?;
    let token = sessions::rotate(cx, &mut tx, session).await?;
    audit::record(cx, &mut tx, &who.actor(address), AuditAction::PasswordChanged, "").await?;
    tx.commit().await?;
    Ok(Some(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_matches_only_its_own_hash() {
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
    fn the_dummy_hash_costs_as_much_as_others() {
        let begin = format!("$argon2id$v=19$m={},t={},p={}$", COST.0, COST.1, COST.2);
        assert!(NOBODY.starts_with(&begin));
        let hash = argon2::PasswordHash::new(NOBODY).unwrap();
        assert_eq!(
            (hash.salt.unwrap().as_ref().len(), hash.hash.unwrap().as_ref().len()),
            (14, 32)
        );
    }

    #[tokio::test]
    async fn passwords_beyond_the_queue_are_rejected() {
        let (passwords, _work) = channel();
        let waiting: Vec<_> = (0..WAITING).map(|_| passwords.hash("x")).collect();
        let mut waiting: Vec<_> = waiting.into_iter().map(Box::pin).collect();
        for one in &mut waiting {
            assert!(futures_util::poll!(one).is_pending());
        }
        assert!(matches!(passwords.hash("x").await, Err(Error::Overloaded(_))));
    }
}
