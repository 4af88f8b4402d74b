//! What every request passes before a handler sees it, and every answer on its way out: host, token, origin of a change,
//! its media type and size, the audit line, and the headers that keep browsers strict.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::audit::AuditEntry;
use crate::problem::{Code, Refusal};
use crate::routes::App;

/// No call takes more than a few URLs.
const BODY_BYTES_MAX: usize = 64 << 10;
/// For the whole body.
const BODY_DEADLINE: Duration = Duration::from_secs(10);
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who calls: put into the request for the handlers.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// Without a token that is known; may only read what is open.
    Anonymous,
    Token(Arc<str>),
}

impl Caller {
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Token(id) => Some(id),
        }
    }
}

pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = if changes(request.method()) {
        let (parts, body) = request.into_parts();
        change(&app, parts, body, next).await
    } else {
        match admit(&app, request) {
            Ok(request) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        }
    };
    harden(&mut response);
    response
}

fn admit(app: &App, mut request: Request) -> Result<Request, Refusal> {
    let (parts, body) = request.into_parts();
    check_host(app, &parts)?;
    let caller = match authenticate(app, &parts.headers) {
        Err(_) if is_open(parts.uri.path()) => Caller::Anonymous,
        other => other?,
    };
    request = Request::from_parts(parts, body);
    request.extensions_mut().insert(caller);
    Ok(request)
}

/// A request that asks for a change: one audit line, whatever becomes of it.
async fn change(app: &App, parts: request::Parts, body: Body, next: Next) -> Response {
    let mut entry = AuditEntry {
        time: jiff::Timestamp::now().to_string(),
        token: None,
        remote: parts
            .extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map(|info| info.0.to_string()),
        action: format!("{} {}", parts.method, parts.uri.path()),
        parameters: Value::Null,
        status: 0,
        code: None,
        suppressed: 0,
    };
    let response = match admit_change(app, parts, body, &mut entry).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    entry.status = response.status().as_u16();
    entry.code = response.extensions().get::<Code>().map(|code| code.word().to_owned());
    app.audit().record(entry);
    response
}

async fn admit_change(
    app: &App,
    mut parts: request::Parts,
    body: Body,
    entry: &mut AuditEntry,
) -> Result<Request, Refusal> {
    check_host(app, &parts)?;
    let caller = authenticate(app, &parts.headers)?;
    entry.token = caller.name().map(str::to_owned);
    check_origin(&parts.headers)?;
    let body = read(body).await?;
    if !body.is_empty() || parts.method != Method::DELETE {
        check_media_type(&parts.headers)?;
    }
    entry.parameters =
        serde_json::from_slice(&body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    parts.extensions.insert(caller);
    Ok(Request::from_parts(parts, Body::from(body)))
}

/// Not open whatever the method: a change always needs the token.
fn is_open(path: &str) -> bool {
    matches!(
        path,
        "/healthz" | "/readyz" | "/api/openapi.json" | "/api/v1/version" | "/"
    ) || path.strip_prefix('/').is_some_and(larder_web_ui::contains)
}

const fn changes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

fn check_host(app: &App, parts: &request::Parts) -> Result<(), Refusal> {
    let mut fields = parts.headers.get_all(header::HOST).iter();
    let host = match (fields.next(), fields.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => "",
    };
    let target = parts.uri.authority().map_or(host, |authority| authority.as_str());
    if app.hosts().permits(host) && app.hosts().permits(target) {
        return Ok(());
    }
    let detail = "this listener answers for loopback names, its own address and the names in the configuration";
    Err(Refusal::new(Code::HostNotAllowed, detail))
}

fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let mut fields = headers.get_all(header::AUTHORIZATION).iter();
    let Some(field) = fields.next() else {
        return Err(Refusal::new(
            Code::Unauthorized,
            "send the token as `Authorization: Bearer TOKEN`",
        ));
    };
    let secret = field.to_str().ok().and_then(bearer);
    match secret.and_then(|secret| app.tokens().identify(secret)) {
        Some(id) if fields.next().is_none() => Ok(Caller::Token(id)),
        _ => Err(Refusal::new(Code::Unauthorized, "this token is not known")),
    }
}

/// RFC 6750 section 2.1; the scheme is case-insensitive (RFC 9110 section 11.1).
fn bearer(field: &str) -> Option<&str> {
    let (scheme, secret) = field.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim_matches(' '))
}

/// Browsers say where a request comes from. The token in a header already stops other sites; this holds also where a
/// browser is made to send it.
fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_foreign_site = headers
        .get_all(&SEC_FETCH_SITE)
        .iter()
        .any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let is_foreign_origin = headers.get_all(header::ORIGIN).iter().any(|origin| {
        let origin = origin.as_bytes();
        let authority = origin
            .strip_prefix(b"http://")
            .or_else(|| origin.strip_prefix(b"https://"));
        authority.is_none() || authority != host
    });
    if is_foreign_site || is_foreign_origin {
        return Err(Refusal::new(
            Code::CrossSite,
            "a page of another origin asked for this change",
        ));
    }
    Ok(())
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::new(
        Code::UnsupportedMediaType,
        "send the body with `Content-Type: application/json`",
    ))
}

async fn read(body: Body) -> Result<Bytes, Refusal> {
    let Ok(read) = tokio::time::timeout(BODY_DEADLINE, Limited::new(body, BODY_BYTES_MAX).collect()).await else {
        return Err(Refusal::new(
            Code::BodyTimeout,
            format!("the body has to arrive within {BODY_DEADLINE:?}"),
        ));
    };
    match read {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::new(
            Code::BodyTooLarge,
            format!("a body may have {BODY_BYTES_MAX} bytes"),
        )),
        Err(_) => Err(Refusal::new(
            Code::InvalidRequest,
            "the body ended early or was malformed",
        )),
    }
}

fn harden(response: &mut Response) {
    const API_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    if response.status() == Code::Unauthorized.status() {
        let challenge = HeaderValue::from_static("Bearer realm=\"larder\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(API_POLICY);
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}
