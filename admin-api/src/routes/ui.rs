//! The dashboard's files. They hold no figures; what they show, they ask the API for, with the token.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use super::shown;
use crate::problem::{Code, Refusal};

/// Own files and own API, nothing inline, no frame around it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
);

pub(crate) async fn index(headers: HeaderMap) -> Response {
    serve("index.html", &headers).unwrap_or_else(|| not_found("/").into_response())
}

/// Whatever no call answers for.
pub(crate) async fn asset(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let asset = uri.path().strip_prefix('/').and_then(|path| serve(path, &headers));
    match asset {
        Some(response) if matches!(method, Method::GET | Method::HEAD) => response,
        Some(_) => {
            let refusal = Refusal::new(Code::MethodNotAllowed, "a file of the dashboard can only be read");
            ([(header::ALLOW, "GET,HEAD")], refusal).into_response()
        }
        None => not_found(uri.path()).into_response(),
    }
}

fn serve(path: &str, headers: &HeaderMap) -> Option<Response> {
    let asset = larder_web_ui::get(path)?;
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|tag| tag.as_bytes() == asset.etag.as_bytes());
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Response::new(Body::from(asset.bytes.into_owned()))
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(header::ETAG, HeaderValue::from_str(&asset.etag).ok()?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    Some(response)
}

fn not_found(path: &str) -> Refusal {
    Refusal::new(Code::NotFound, format!("there is no {}", shown(path)))
}
