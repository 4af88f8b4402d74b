//! Every refusal as `application/problem+json` (RFC 9457). The codes are part of the contract; the texts are not.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoResponses, ToSchema};

pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// What went wrong, for programs. New codes may be added; none changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// 400: the body is not JSON.
    InvalidJson,
    /// 400: the path or the query cannot be understood.
    InvalidRequest,
    /// 401: no token, or one that is not known.
    Unauthorized,
    /// 403: the Host is none that this listener answers for.
    HostNotAllowed,
    /// 403: a change asked for by a page of another origin.
    CrossSite,
    /// 404: there is no such path.
    NotFound,
    /// 404: nothing is configured, or kept, under this name.
    UnknownName,
    /// 405: the path is known, the method is not for it.
    MethodNotAllowed,
    /// 408: the body did not arrive in time.
    BodyTimeout,
    /// 413: the body is larger than is taken.
    BodyTooLarge,
    /// 415: changes are asked for in `application/json`.
    UnsupportedMediaType,
    /// 422: JSON, but not what this call takes.
    InvalidBody,
    /// 422: not an absolute URL.
    InvalidUrl,
    /// 422: a URL that is neither `http` nor `https`.
    UnknownScheme,
    /// 422: no vhost answers for the host of the URL.
    NoVhost,
    /// 422: understood, but this version cannot do it.
    NotSupported,
    /// 503: in force, but not on disk.
    NotDurable,
}

impl Code {
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidJson | Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::HostNotAllowed | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::NotFound | Self::UnknownName => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidBody | Self::InvalidUrl | Self::UnknownScheme | Self::NoVhost | Self::NotSupported => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::NotDurable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// As it is written in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::InvalidJson => "invalid-json",
            Self::InvalidRequest => "invalid-request",
            Self::Unauthorized => "unauthorized",
            Self::HostNotAllowed => "host-not-allowed",
            Self::CrossSite => "cross-site",
            Self::NotFound => "not-found",
            Self::UnknownName => "unknown-name",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::BodyTimeout => "body-timeout",
            Self::BodyTooLarge => "body-too-large",
            Self::UnsupportedMediaType => "unsupported-media-type",
            Self::InvalidBody => "invalid-body",
            Self::InvalidUrl => "invalid-url",
            Self::UnknownScheme => "unknown-scheme",
            Self::NoVhost => "no-vhost",
            Self::NotSupported => "not-supported",
            Self::NotDurable => "not-durable",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::InvalidJson => "The body is not JSON",
            Self::InvalidRequest => "The request cannot be understood",
            Self::Unauthorized => "A valid token is needed",
            Self::HostNotAllowed => "Not a host of this listener",
            Self::CrossSite => "Changes are not taken from other sites",
            Self::NotFound => "No such path",
            Self::UnknownName => "Nothing has this name",
            Self::MethodNotAllowed => "Not a method of this path",
            Self::BodyTimeout => "The body did not arrive in time",
            Self::BodyTooLarge => "The body is too large",
            Self::UnsupportedMediaType => "The body has to be application/json",
            Self::InvalidBody => "The body is not what this call takes",
            Self::InvalidUrl => "Not an absolute URL",
            Self::UnknownScheme => "Not an http or https URL",
            Self::NoVhost => "No vhost answers for this host",
            Self::NotSupported => "Not possible in this version",
            Self::NotDurable => "In force, but not noted on disk",
        }
    }
}

/// A refusal (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:larder:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub code: Code,
    /// What is wrong with this request, for people.
    pub detail: String,
    /// Where in the request it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// Where in a request the fault is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Position {
    /// The member of the body (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Line of the body, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in that line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Bytes into the value of the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
}

/// A problem on its way out of a handler; boxed, since it is rare and `Result`s of it are everywhere.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Problem>);

impl Refusal {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem {
            kind: format!("urn:larder:problem:{}", code.word()),
            title: code.title().to_owned(),
            status: code.status().as_u16(),
            code,
            detail: detail.into(),
            position: None,
        }))
    }

    pub(crate) fn at(mut self, position: Position) -> Self {
        self.0.position = Some(position);
        self
    }

    /// At a member of the body.
    pub(crate) fn at_member(self, pointer: &str) -> Self {
        self.at(Position {
            pointer: Some(pointer.to_owned()),
            ..Position::default()
        })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = self.0.code;
        let mut response = (code.status(), axum::Json(&*self.0)).into_response();
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        // The audit line repeats the code.
        response.extensions_mut().insert(code);
        response
    }
}

/// What any call behind the token may answer instead.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it only describes; the document is made from its attributes")]
pub(crate) enum Guarded {
    #[response(
        status = 401,
        description = "No valid token",
        content_type = "application/problem+json"
    )]
    Unauthorized(Problem),
    #[response(
        status = 403,
        description = "Wrong host, or another site",
        content_type = "application/problem+json"
    )]
    Forbidden(Problem),
    #[response(
        status = "default",
        description = "Any other refusal",
        content_type = "application/problem+json"
    )]
    Other(Problem),
}

/// What any change may answer instead.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it only describes; the document is made from its attributes")]
pub(crate) enum Changing {
    #[response(status = 400, description = "Not JSON", content_type = "application/problem+json")]
    BadRequest(Problem),
    #[response(
        status = 401,
        description = "No valid token",
        content_type = "application/problem+json"
    )]
    Unauthorized(Problem),
    #[response(
        status = 403,
        description = "Wrong host, or another site",
        content_type = "application/problem+json"
    )]
    Forbidden(Problem),
    #[response(
        status = 413,
        description = "More than 64 KiB",
        content_type = "application/problem+json"
    )]
    TooLarge(Problem),
    #[response(
        status = 415,
        description = "Not application/json",
        content_type = "application/problem+json"
    )]
    MediaType(Problem),
    #[response(
        status = 422,
        description = "Not what this call takes",
        content_type = "application/problem+json"
    )]
    Unprocessable(Problem),
    #[response(
        status = "default",
        description = "Any other refusal",
        content_type = "application/problem+json"
    )]
    Other(Problem),
}
