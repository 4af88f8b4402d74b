//! What the origin answers: from a path to a status, fields and a body. No sockets, no clock.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, LAST_MODIFIED, SET_COOKIE,
};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::Full;

use super::image;

/// Sides of the images: about 3 KB and 100 KB.
const SMALL_SIDE: u32 = 54;
const LARGE_SIDE: u32 = 319;
/// Any day in the past; the pages never change.
const MODIFIED: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

/// All bodies, made once.
#[derive(Debug)]
pub(super) struct Pages {
    small: Bytes,
    large: Bytes,
}

/// A thing that the origin has.
struct Page {
    content_type: &'static str,
    cache_control: &'static str,
    etag: Option<&'static str>,
    cookie: Option<&'static str>,
    body: Bytes,
}

impl Pages {
    pub(super) fn new() -> Self {
        Self {
            small: image::square(SMALL_SIDE).into(),
            large: image::square(LARGE_SIDE).into(),
        }
    }

    /// Answers a GET or HEAD. `serial` differs with every call, so that one can see which answer is new.
    pub(super) fn answer(&self, method: &Method, path: &str, fields: &HeaderMap, serial: u64) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "the demo origin knows GET and HEAD\n");
        }
        let Some(page) = self.find(path, serial) else {
            return plain(StatusCode::NOT_FOUND, "the demo origin has no such page\n");
        };
        let known = fields
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let is_known = page
            .etag
            .is_some_and(|etag| known.into_iter().any(|tags| has_tag(tags, etag)));
        respond(&page, method, is_known)
    }

    fn find(&self, path: &str, serial: u64) -> Option<Page> {
        let html = |title: &str, etag, body: &str| Page {
            content_type: "text/html; charset=utf-8",
            cache_control: "max-age=60",
            etag: Some(etag),
            cookie: None,
            body: format!("<!doctype html>\n<title>{title}</title>\n<h1>{title}</h1>\n{body}\n").into(),
        };
        let image = |etag, body: &Bytes| Page {
            content_type: "image/png",
            cache_control: "max-age=3600",
            etag: Some(etag),
            cookie: None,
            body: body.clone(),
        };
        let made = |content_type, cache_control, cookie, body: String| Page {
            content_type,
            cache_control,
            etag: None,
            cookie,
            body: body.into(),
        };
        Some(match path {
            "/" => html(
                "Larder",
                "\"home-1\"",
                "<p><a href=/about>About</a> <img src=/images/small.png alt=waves>",
            ),
            "/about" => html("About", "\"about-1\"", "<p>A demo origin behind a cache."),
            "/images/small.png" => image("\"small-1\"", &self.small),
            "/images/large.png" => image("\"large-1\"", &self.large),
            "/api/slow" => {
                let body = format!("{{\"answer\": 42, \"made\": {serial}}}\n");
                made("application/json", "max-age=30", None, body)
            }
            "/login" => {
                let body = format!("logged in, visitor {serial}\n");
                made(
                    "text/plain",
                    "max-age=60",
                    Some("session=demo; Path=/; HttpOnly; SameSite=Lax"),
                    body,
                )
            }
            _ => return None,
        })
    }
}

fn respond(page: &Page, method: &Method, is_known: bool) -> Response<Full<Bytes>> {
    let body = if method == Method::HEAD || is_known {
        Bytes::new()
    } else {
        page.body.clone()
    };
    let mut response = Response::new(Full::new(body));
    let fields = response.headers_mut();
    fields.insert(CACHE_CONTROL, HeaderValue::from_static(page.cache_control));
    if let Some(etag) = page.etag {
        fields.insert(ETAG, HeaderValue::from_static(etag));
        fields.insert(LAST_MODIFIED, HeaderValue::from_static(MODIFIED));
    }
    if let Some(cookie) = page.cookie {
        fields.insert(SET_COOKIE, HeaderValue::from_static(cookie));
    }
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(page.body.len()));
    response
}

/// Weak comparison (RFC 9110 section 13.1.2). The tags of this origin hold no comma.
fn has_tag(tags: &str, etag: &str) -> bool {
    let mut tags = tags.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
    tags.any(|tag| tag == "*" || tag == etag)
}

pub(super) fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn get(path: &str, fields: &[(http::HeaderName, &'static str)]) -> (u16, HeaderMap, usize) {
        let fields = fields
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let response = Pages::new().answer(&Method::GET, path, &fields.collect(), 7);
        let (parts, body) = response.into_parts();
        (
            parts.status.as_u16(),
            parts.headers,
            body.collect().await.unwrap().to_bytes().len(),
        )
    }

    #[tokio::test]
    async fn each_page_has_its_size_and_its_lifetime() {
        for (path, status, size, cache_control) in [
            ("/", 200, 50..500, "max-age=60"),
            ("/about", 200, 50..500, "max-age=60"),
            ("/images/small.png", 200, 3_000..3_100, "max-age=3600"),
            ("/images/large.png", 200, 102_000..102_600, "max-age=3600"),
            ("/api/slow", 200, 10..100, "max-age=30"),
            ("/login", 200, 10..100, "max-age=60"),
            ("/elsewhere", 404, 10..100, "no-store"),
        ] {
            let (got, fields, length) = get(path, &[]).await;
            assert_eq!(got, status, "{path}");
            assert!(size.contains(&length), "{path}: {length}");
            assert_eq!(fields.get(CACHE_CONTROL).unwrap(), cache_control, "{path}");
        }
        assert!(get("/login", &[]).await.1.contains_key(SET_COOKIE));
    }

    #[tokio::test]
    async fn a_known_etag_is_answered_with_304() {
        for (tags, status) in [
            ("\"about-1\"", 304),
            ("\"x\", W/\"about-1\"", 304),
            ("*", 304),
            ("\"home-1\"", 200),
        ] {
            assert_eq!(get("/about", &[(IF_NONE_MATCH, tags)]).await.0, status, "{tags}");
        }
        let (_, fields, length) = get("/about", &[(IF_NONE_MATCH, "*")]).await;
        assert_eq!(
            (length, fields.get(ETAG).unwrap().to_str().unwrap()),
            (0, "\"about-1\"")
        );
    }

    #[test]
    fn head_has_the_length_of_get_and_other_methods_are_refused() {
        let pages = Pages::new();
        let head = pages.answer(&Method::HEAD, "/images/small.png", &HeaderMap::new(), 0);
        assert_eq!(
            head.headers().get(CONTENT_LENGTH).unwrap(),
            &pages.small.len().to_string()
        );
        let post = pages.answer(&Method::POST, "/", &HeaderMap::new(), 0);
        assert_eq!(post.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
