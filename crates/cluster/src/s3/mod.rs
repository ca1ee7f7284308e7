//! Sessions in S3. Each session has a head object, which says where the session is, has its last lines and names the segments
//! that have the others. Writing the head with `If-Match` (`If-None-Match` the first time) is what makes an append a part of the
//! session, so the server itself refuses a stale writer. The decision record 34-session-stores.md says why.

mod append;
mod head;
mod read;

use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::{Mutex, PoisonError};

use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore as _, ObjectStoreExt as _, RetryConfig, UpdateVersion};
use store::{Result, SessionId, SessionStore, StoreError, StoreFuture, Watch, check_lines};

use crate::address::S3Address;
use crate::limits::{CONNECT_WAIT, KNOWN_HEADS, S3_ANSWER_WAIT};
use head::Head;

/// Sessions in S3.
#[derive(Debug)]
pub struct S3Store {
    objects: AmazonS3,
    prefix: String,
    /// Heads as this store last wrote them. The server compares their tags with every append.
    known: Mutex<HashMap<SessionId, Version>>,
}

/// A head object and its tag; no tag if there is no object yet.
#[derive(Debug, Clone, Default)]
struct Version {
    head: Head,
    tag: Option<UpdateVersion>,
}

impl S3Store {
    /// Prepares access to a bucket; nothing is sent yet. `environment` has the variables that begin with `AWS_`.
    ///
    /// # Errors
    /// [`StoreError::Engine`] when a variable or the endpoint cannot be used.
    pub fn new(address: &S3Address, environment: &[(String, String)]) -> Result<Self> {
        let mut builder = AmazonS3Builder::new();
        for (name, value) in environment {
            if let Ok(key) = AmazonS3ConfigKey::from_str(&name.to_ascii_lowercase()) {
                builder = builder.with_config(key, value);
            }
        }
        builder = builder
            .with_bucket_name(&address.bucket)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_client_options(
                ClientOptions::new()
                    .with_connect_timeout(CONNECT_WAIT)
                    .with_timeout(S3_ANSWER_WAIT)
                    .with_allow_http(
                        address
                            .endpoint
                            .as_deref()
                            .is_some_and(|url| url.starts_with("http://")),
                    ),
            )
            .with_retry(RetryConfig {
                max_retries: 2,
                retry_timeout: S3_ANSWER_WAIT,
                ..RetryConfig::default()
            });
        if let Some(endpoint) = &address.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(region) = &address.region {
            builder = builder.with_region(region);
        }
        Ok(Self {
            objects: builder.build().map_err(|e| engine("use the bucket", &e))?,
            prefix: address.prefix.clone(),
            known: Mutex::default(),
        })
    }

    fn head_path(&self, session: &SessionId) -> Path {
        Path::from(format!("{}/heads/{}", self.prefix, session.encoded()))
    }

    /// The directory of the segments of one life of a session: another one begins when it was deleted.
    fn segments_path(&self, session: &SessionId, generation: &str) -> Path {
        Path::from(format!(
            "{}/segments/{}/{generation}",
            self.prefix,
            session.encoded()
        ))
    }

    fn segment_path(&self, session: &SessionId, generation: &str, segment: &head::Segment) -> Path {
        let name = format!("{:020}-{}", segment.start, segment.append);
        self.segments_path(session, generation).join(name)
    }

    fn known(&self, session: &SessionId) -> Option<Version> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(session).cloned()
    }

    fn remember(&self, session: &SessionId, version: Version) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_HEADS && !known.contains_key(session) {
            known.clear();
        }
        known.insert(session.clone(), version);
    }

    fn forget(&self, session: &SessionId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(session);
    }

    /// The head as the server has it; an empty one without tag if the session does not exist.
    async fn version(&self, session: &SessionId) -> Result<Version> {
        let failed = |e: &object_store::Error| engine("read the session", e);
        let found = match self.objects.get(&self.head_path(session)).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(Version::default()),
            Err(e) => return Err(failed(&e)),
        };
        let tag = UpdateVersion {
            e_tag: found.meta.e_tag.clone(),
            version: found.meta.version.clone(),
        };
        let bytes = found.bytes().await.map_err(|e| failed(&e))?;
        Ok(Version {
            head: Head::read(session, &bytes)?,
            tag: Some(tag),
        })
    }

    async fn all(&self) -> Result<Vec<SessionId>> {
        let prefix = Path::from(format!("{}/heads", self.prefix));
        let found: Vec<_> = self
            .objects
            .list(Some(&prefix))
            .try_collect()
            .await
            .map_err(|e| engine("list the sessions", &e))?;
        let mut ids: Vec<SessionId> = found
            .iter()
            .filter_map(|object| SessionId::decode(object.location.filename()?))
            .collect();
        ids.sort();
        Ok(ids)
    }

    /// Removes the head first: from then on there is no session, also if the rest fails.
    async fn remove(&self, session: &SessionId) -> Result<bool> {
        let failed = |e: &object_store::Error| engine("delete the session", e);
        self.forget(session);
        let found = self.version(session).await?;
        if found.tag.is_none() {
            return Ok(false);
        }
        match self.objects.delete(&self.head_path(session)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(e) => return Err(failed(&e)),
        }
        let segments = self.segments_path(session, &found.head.generation);
        let mut objects = self.objects.list(Some(&segments));
        while let Some(object) = objects.try_next().await.map_err(|e| failed(&e))? {
            match self.objects.delete(&object.location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(e) => return Err(failed(&e)),
            }
        }
        Ok(true)
    }
}

impl SessionStore for S3Store {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        lines: &'a [Vec<u8>],
        expected: u64,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            check_lines(lines)?;
            append::append(self, session, lines, expected).await
        })
    }

    fn load<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, Vec<Vec<u8>>> {
        Box::pin(read::load(self, session, from))
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionId>> {
        Box::pin(self.all())
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        Box::pin(self.remove(session))
    }

    fn watch<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, Box<dyn Watch>> {
        Box::pin(async move {
            let watch = read::S3Watch::start(self, session, from).await?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }
}

/// Names the innermost cause: the outer ones repeat the object's address only.
fn engine(action: &'static str, error: &object_store::Error) -> StoreError {
    StoreError::Engine {
        action,
        reason: error.to_string(),
    }
}
