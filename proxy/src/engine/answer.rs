//! What a client is to be sent, whoever made it: a stored object, a fill in progress, the origin, or Larder itself.

use std::sync::Arc;

use super::find::DiskPieces;
use super::head::RenderedHead;
use super::plan::{CachedObject, Reader};
use crate::clock::unix_secs;
use crate::engine::respond::has_no_body;
use crate::origin::{OriginBody, OriginTunnel};
use crate::outcome::Outcome;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Methods that are passed to origins; others that are not TRACE or CONNECT are too.
const ALLOWED: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: RenderedHead,
    /// Age to be sent, in seconds; the origin's own is in the head's private part.
    pub(crate) age: Option<u64>,
    pub(crate) outcome: Outcome,
    /// Length of the body, where it is known.
    pub(crate) length: Option<u64>,
    pub(crate) body: AnswerBody,
    /// Time the origin took to its head, where it was asked for this request.
    pub(crate) origin_us: Option<u64>,
    /// The connection must end with this answer.
    pub(crate) close: bool,
}

#[derive(Debug)]
pub(crate) enum AnswerBody {
    Whole(Option<Bytes>),
    Object {
        object: Arc<CachedObject>,
        next: usize,
    },
    Disk(Box<DiskPieces>),
    Fill(Box<Reader>),
    Origin(Box<OriginBody>),
    /// 101: the connection is a tunnel from here on.
    Tunnel(Box<OriginTunnel>),
}

/// The body will not come to its end. The client must see that: its message is broken off.
#[derive(Debug)]
pub(crate) struct BrokenOff;

impl AnswerBody {
    pub(crate) const EMPTY: Self = Self::Whole(None);

    /// The next piece; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, BrokenOff> {
        match self {
            Self::Whole(bytes) => Ok(bytes.take()),
            Self::Object { object, next } => {
                let chunk = object.body.chunks().and_then(|chunks| chunks.get(*next)).cloned();
                *next += 1;
                Ok(chunk)
            }
            Self::Disk(pieces) => pieces.next().await,
            Self::Fill(reader) => reader.next_chunk().await.transpose().map_err(|_| BrokenOff),
            Self::Origin(body) => body.chunk().await.map_err(|_| BrokenOff),
            Self::Tunnel(_) => Ok(None),
        }
    }
}

impl Answer {
    /// An answer of Larder itself: a line of text.
    pub(crate) fn local(status: StatusCode, text: &str, outcome: Outcome) -> Self {
        let body = Bytes::from(format!("{status}\n{text}\n").into_bytes());
        Self::document(
            status,
            HeaderValue::from_static("text/plain; charset=utf-8"),
            body,
            outcome,
        )
    }

    /// An answer of Larder itself, never to be stored.
    pub(crate) fn document(status: StatusCode, content_type: HeaderValue, body: Bytes, outcome: Outcome) -> Self {
        let mut fields = HeaderMap::new();
        fields.insert(header::CONTENT_TYPE, content_type);
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if matches!(status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NO_CONTENT) {
            fields.insert(header::ALLOW, HeaderValue::from_static(ALLOWED));
        }
        let body = if has_no_body(status) { Bytes::new() } else { body };
        Self {
            head: RenderedHead::new(status, &fields, false, unix_secs()),
            age: None,
            outcome,
            length: Some(body.len() as u64),
            body: AnswerBody::Whole((!body.is_empty()).then_some(body)),
            origin_us: None,
            close: false,
        }
    }
}
