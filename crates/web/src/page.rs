//! The page's files: built into the program, or in a directory (`--serve-ui`). Maps paths to files, and sets the
//! headers of a response.

mod files;
mod stream;

use std::path::{Component, Path, PathBuf};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use self::files::{FILES, File};

/// Nothing but our own files, no inline script, no other page around ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
                      font-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A page of the user may load any resource, but no page may embed it in a frame.
const FOREIGN_POLICY: &str = "frame-ancestors 'none'";

/// Where the files come from.
#[derive(Debug)]
pub(crate) enum Page {
    /// From this program.
    Own,
    /// From this directory, without links that lead out of it.
    Directory(PathBuf),
}

impl Page {
    /// The page in a directory.
    ///
    /// # Errors
    /// When it is none, or has no `index.html`.
    pub(crate) fn directory(dir: &Path) -> std::io::Result<Self> {
        let dir = dir.canonicalize()?;
        std::fs::metadata(dir.join("index.html"))?;
        Ok(Self::Directory(dir))
    }

    /// Answers a request for a file.
    pub(crate) async fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Response {
        if method != Method::GET && method != Method::HEAD {
            return only("GET, HEAD");
        }
        match self {
            Self::Own => own(path, headers),
            Self::Directory(dir) => from_directory(dir, path).await,
        }
    }
}

/// Returns a built-in file, or the page if the path could be one of its addresses.
fn own(path: &str, headers: &HeaderMap) -> Response {
    let name = path.trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    let found = FILES.iter().find(|file| file.name == name);
    let index = || FILES.iter().find(|file| file.name == "index.html");
    let Some(file) = found.or_else(|| is_address(name).then(index).flatten()) else {
        return plain(StatusCode::NOT_FOUND, "Not Found");
    };
    let tag = format!("\"{}\"", file.hash);
    let is_known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .any(|known| known.to_str().is_ok_and(|known| known.contains(&tag)));
    let mut response = if is_known {
        plain(StatusCode::NOT_MODIFIED, "")
    } else {
        content(file, headers)
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn content(file: &'static File, headers: &HeaderMap) -> Response {
    let packs = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(',').any(|coding| coding.trim().starts_with("gzip")));
    let body = match packs || !file.is_packed {
        true => Body::from(file.stored),
        false => match file.plain() {
            Ok(plain) => Body::from(plain.into_owned()),
            Err(_) => return plain(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
        },
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type(file.name)),
    );
    if packs && file.is_packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Returns true if the path can be an address of the page and not a file.
fn is_address(name: &str) -> bool {
    !name.starts_with("assets/") && !name.rsplit('/').next().unwrap_or_default().contains('.')
}

/// Returns a file of a directory. Other paths return the page, as the pages of the fork expect (web.md 1.2), except
/// below `assets`.
async fn from_directory(dir: &Path, path: &str) -> Response {
    let Some(relative) = decoded(path) else {
        return plain(StatusCode::FORBIDDEN, "Forbidden");
    };
    let wanted = dir.join(&relative);
    let candidates = if relative.as_os_str().is_empty() {
        vec![dir.join("index.html")]
    } else if is_address(&relative.to_string_lossy()) {
        vec![wanted.clone(), wanted.join("index.html"), dir.join("index.html")]
    } else {
        vec![wanted]
    };
    for candidate in candidates {
        let Ok(real) = tokio::fs::canonicalize(&candidate).await else {
            continue;
        };
        if !real.starts_with(dir) {
            return plain(StatusCode::FORBIDDEN, "Forbidden");
        }
        let Ok(metadata) = tokio::fs::metadata(&real).await else {
            continue;
        };
        if !metadata.is_file() {
            continue;
        }
        let kind = media_type(&real.to_string_lossy());
        let Ok(body) = stream::body(real, &metadata).await else {
            return plain(StatusCode::NOT_FOUND, "Not Found");
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(metadata.len()));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(FOREIGN_POLICY),
        );
        return response;
    }
    plain(StatusCode::NOT_FOUND, "Not Found")
}

/// The path below the directory; none when it leads elsewhere, or hides something.
fn decoded(path: &str) -> Option<PathBuf> {
    let text = super::guard::percent_decoded(path);
    if text.contains(['\0', '\\']) {
        return None;
    }
    let relative = PathBuf::from(text.trim_start_matches('/'));
    relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
        .then_some(relative)
}

/// The answer to other methods than these.
pub(crate) fn only(methods: &'static str) -> Response {
    let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    let headers = refused.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(methods));
    refused
}

/// A short text.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// By the name's ending (web.md 1.2).
fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "application/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
