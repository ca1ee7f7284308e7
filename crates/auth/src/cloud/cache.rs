//! Credentials that were found, until they run out. One caller looks for them, others wait for what it finds.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::limits::{CREDENTIAL_MARGIN, CREDENTIAL_RECHECK, MAX_CREDENTIAL_SETS};

/// What credentials depend on: the values of all settings they are found by.
pub type Key = Vec<Option<String>>;

/// One set of credentials; the lock is held while they are looked for.
type Slot<T> = Arc<tokio::sync::Mutex<Option<Entry<T>>>>;

struct Entry<T> {
    value: T,
    until: SystemTime,
}

/// Credentials per set of variables, with their expiry. Bounded: the oldest set is evicted.
pub struct CredentialCache<T> {
    slots: Mutex<Vec<(Key, Slot<T>)>>,
}

impl<T> Default for CredentialCache<T> {
    fn default() -> Self {
        Self {
            slots: Mutex::default(),
        }
    }
}

/// Shows no values.
impl<T> fmt::Debug for CredentialCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialCache(..)")
    }
}

impl<T: Clone> CredentialCache<T> {
    /// The value for `key`: the kept one while it is good, else what `load` finds. `load` also says when that runs out; a
    /// value without an end is looked for again after some minutes, so that changed files are noticed.
    ///
    /// # Errors
    /// Those of `load`.
    pub async fn get<E>(
        &self,
        key: &Key,
        load: impl Future<Output = Result<(T, Option<SystemTime>), E>>,
    ) -> Result<T, E> {
        let slot = self.slot(key);
        let mut entry = slot.lock().await;
        let now = SystemTime::now();
        if let Some(entry) = entry.as_ref().filter(|entry| entry.until > now) {
            return Ok(entry.value.clone());
        }
        let (value, end) = load.await?;
        let until = end.map_or(now + CREDENTIAL_RECHECK, |end| renewal(now, end));
        *entry = Some(Entry {
            value: value.clone(),
            until,
        });
        Ok(value)
    }

    /// Drops the value for `key`.
    pub fn forget(&self, key: &Key) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|(known, _)| known != key);
    }

    fn slot(&self, key: &Key) -> Slot<T> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, slot)) = slots.iter().find(|(known, _)| known == key) {
            return Arc::clone(slot);
        }
        if slots.len() >= MAX_CREDENTIAL_SETS {
            slots.remove(0);
        }
        let slot = Slot::default();
        slots.push((key.clone(), Arc::clone(&slot)));
        slot
    }
}

/// Renewed some minutes early; short-lived ones after half of their time, so that they are used at all.
fn renewal(now: SystemTime, end: SystemTime) -> SystemTime {
    let left = end.duration_since(now).unwrap_or(Duration::ZERO);
    now + left.saturating_sub(CREDENTIAL_MARGIN).max(left / 2)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    async fn ask(cache: &CredentialCache<u32>, key: &str, count: &AtomicU32, end: Option<SystemTime>) -> u32 {
        let key = vec![Some(key.to_owned())];
        let load = async { Ok::<_, ()>((count.fetch_add(1, Ordering::SeqCst), end)) };
        cache.get(&key, load).await.unwrap()
    }

    #[tokio::test]
    async fn cached_values_expire_and_are_separate_per_key() {
        let (cache, count) = (CredentialCache::default(), AtomicU32::new(0));
        let later = Some(SystemTime::now() + Duration::from_secs(3600));
        assert_eq!(ask(&cache, "a", &count, later).await, 0);
        assert_eq!(ask(&cache, "a", &count, later).await, 0);
        assert_eq!(ask(&cache, "b", &count, Some(SystemTime::now())).await, 1);
        assert_eq!(ask(&cache, "b", &count, None).await, 2, "ran out at once");
        assert_eq!(ask(&cache, "b", &count, None).await, 2);
        cache.forget(&vec![Some("b".to_owned())]);
        assert_eq!(ask(&cache, "b", &count, None).await, 3);
    }

    #[tokio::test]
    async fn failures_are_not_cached_and_cache_is_bounded() {
        let (cache, count) = (CredentialCache::default(), AtomicU32::new(7));
        let key = vec![Some("a".to_owned())];
        let failed = cache.get(&key, async { Err::<(u32, _), _>("no") }).await;
        assert_eq!(failed, Err("no"));
        assert_eq!(ask(&cache, "a", &count, None).await, 7);
        for number in 0..2 * MAX_CREDENTIAL_SETS {
            ask(&cache, &number.to_string(), &count, None).await;
        }
        assert_eq!(cache.slots.lock().unwrap().len(), MAX_CREDENTIAL_SETS);
    }

    #[test]
    fn credentials_are_renewed_before_expiry() {
        let now = SystemTime::now();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(renewal(now, now + minutes(60)), now + minutes(55));
        assert_eq!(renewal(now, now + minutes(4)), now + minutes(2));
        assert_eq!(renewal(now, now - minutes(4)), now);
    }
}
