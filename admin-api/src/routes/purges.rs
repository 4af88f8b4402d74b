//! Invalidation: ask for it, and read what became of it.

use axum::extract::State;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::{Extension, Json};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{App, Object, Page, name, now_ms, parse, shown};
use crate::appliance::{PurgeError, PurgeErrorKind};
use crate::guard::Caller;
use crate::problem::{Changing, Code, Guarded, Position, Problem, Refusal};
use crate::purges::{Purge, PurgeMode, PurgeState};

/// No URL that is longer can be a key: heads are smaller.
const URL_BYTES_MAX: usize = 8 << 10;
const REASON_BYTES_MAX: usize = 1 << 10;

/// What to invalidate. All members are part of the contract; those that this version cannot act on are refused with
/// `not-supported`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PurgeRequest {
    #[serde(rename = "match")]
    #[schema(value_type = PurgeMatch)]
    matching: Object<PurgeMatch>,
    #[serde(default)]
    mode: PurgeMode,
    /// Count only. Not supported yet.
    #[serde(default)]
    dry_run: bool,
    /// For the records; at most 1 KiB.
    #[schema(max_length = 1024)]
    reason: Option<String>,
    /// Narrows a match that names no host. Not supported yet.
    vhost: Option<String>,
    /// Fetch the hottest again. Not supported yet.
    #[schema(value_type = Option<Object>)]
    refresh: Option<Value>,
}

/// Exactly one of these.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PurgeMatch {
    /// One absolute URL with all its variants; at most 8 KiB.
    #[schema(max_length = 8192, example = "http://www.example.test/a?b=1")]
    url: Option<String>,
    /// Several absolute URLs. Not supported yet.
    #[schema(value_type = Option<Vec<String>>)]
    urls: Option<Value>,
    /// An absolute URL that others begin with. Not supported yet.
    #[schema(value_type = Option<String>)]
    prefix: Option<Value>,
    /// An absolute URL with `*`. Not supported yet.
    #[schema(value_type = Option<String>)]
    wildcard: Option<Value>,
    /// Matched against the absolute URL. Not supported yet.
    #[schema(value_type = Option<String>)]
    regex: Option<Value>,
    /// A host name. Not supported yet.
    #[schema(value_type = Option<String>)]
    host: Option<Value>,
    /// Not supported yet.
    #[schema(value_type = Option<String>)]
    tag: Option<Value>,
    /// Not supported yet.
    #[schema(value_type = Option<Vec<String>>)]
    tags: Option<Value>,
    /// Everything. Not supported yet.
    #[schema(value_type = Option<bool>)]
    all: Option<Value>,
}

/// The latest invalidations.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Purges {
    /// Newest first; at most 1000 are kept, until the process ends.
    purges: Vec<Purge>,
}

impl PurgeMatch {
    /// The one that this version can do.
    fn url(self) -> Result<String, Refusal> {
        let others = [
            ("urls", &self.urls),
            ("prefix", &self.prefix),
            ("wildcard", &self.wildcard),
            ("regex", &self.regex),
            ("host", &self.host),
            ("tag", &self.tag),
            ("tags", &self.tags),
            ("all", &self.all),
        ];
        let mut others = others
            .into_iter()
            .filter(|(_, value)| value.is_some())
            .map(|(member, _)| member);
        match (self.url, others.next(), others.next()) {
            (Some(url), None, _) => Ok(url),
            (None, Some(member), None) => Err(not_supported(&format!("/match/{member}"))),
            _ => Err(Refusal::new(Code::InvalidBody, "match takes exactly one member").at_member("/match")),
        }
    }
}

impl PurgeRequest {
    fn url(self) -> Result<(String, Option<String>), Refusal> {
        let url = self.matching.0.url()?;
        if self.mode == PurgeMode::Soft {
            return Err(not_supported("/mode"));
        }
        if self.dry_run {
            return Err(not_supported("/dry_run"));
        }
        if self.vhost.is_some() {
            return Err(not_supported("/vhost"));
        }
        if self.refresh.is_some() {
            return Err(not_supported("/refresh"));
        }
        if url.len() > URL_BYTES_MAX {
            return Err(Refusal::new(Code::InvalidBody, "a URL may have 8 KiB").at_member("/match/url"));
        }
        if self
            .reason
            .as_ref()
            .is_some_and(|reason| reason.len() > REASON_BYTES_MAX)
        {
            return Err(Refusal::new(Code::InvalidBody, "a reason may have 1 KiB").at_member("/reason"));
        }
        Ok((url, self.reason))
    }
}

fn not_supported(pointer: &str) -> Refusal {
    let detail = concat!(
        "larder ",
        env!("CARGO_PKG_VERSION"),
        " invalidates one absolute URL with all its variants, at once: ",
        r#"{"match": {"url": "http://host/path"}, "mode": "hard"}"#
    );
    Refusal::new(Code::NotSupported, detail).at_member(pointer)
}

fn refused(error: PurgeError) -> Refusal {
    let code = match error.kind {
        PurgeErrorKind::BadUrl => Code::InvalidUrl,
        PurgeErrorKind::UnknownScheme => Code::UnknownScheme,
        PurgeErrorKind::NoVhost => Code::NoVhost,
        PurgeErrorKind::NotDurable => return Refusal::new(Code::NotDurable, error.reason),
    };
    let position = Position {
        pointer: Some("/match/url".to_owned()),
        offset: Some(error.position),
        ..Position::default()
    };
    Refusal::new(code, error.reason).at(position)
}

/// Invalidate
///
/// In force for every request that begins after the answer. That nothing was stored is no error: `matched` is 0 then, and
/// `hint` may say what was meant.
#[utoipa::path(post, path = "/api/v1/purges", tag = "invalidation", operation_id = "create_purge",
    security(("token" = [])),
    request_body(content = PurgeRequest, example = json!(
        {"match": {"url": "http://www.example.test/a?b=1"}, "mode": "hard", "reason": "deploy 42"}
    )), responses((status = 200, description = "Done, also for the time after a restart", body = Purge),
    (status = 503, description = "In force, but not noted on disk: a restart might undo it", body = Problem, content_type = "application/problem+json"),
    Changing)
)]
pub(crate) async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Json<Purge>, Refusal> {
    let (url, reason) = parse::<PurgeRequest>(&body)?.url()?;
    let report = app.appliance().purge_url(&url).await.map_err(refused)?;
    let samples = if report.matched > 0 {
        vec![url.clone()]
    } else {
        Vec::new()
    };
    let purge = Purge {
        id: app.purges().next_id(app.started_ms()),
        state: PurgeState::Done,
        mode: PurgeMode::Hard,
        url,
        matched: report.matched,
        bytes: report.bytes,
        vhosts: report.vhosts,
        samples,
        key: report.key,
        fence: report.fence,
        hint: report.hint,
        reason,
        token: caller.name().unwrap_or_default().to_owned(),
        created_ms: now_ms(),
    };
    app.purges().push(purge.clone());
    Ok(Json(purge))
}

/// The latest invalidations
#[utoipa::path(get, path = "/api/v1/purges", tag = "invalidation", operation_id = "list_purges",
    security(("token" = [])), params(Page), responses(
    (status = 200, description = "Newest first", body = Purges), Guarded,
))]
pub(crate) async fn list(
    State(app): State<App>,
    query: Result<axum::extract::Query<Page>, QueryRejection>,
) -> Result<Json<Purges>, Refusal> {
    Ok(Json(Purges {
        purges: app.purges().latest(Page::limit(query)?),
    }))
}

/// One invalidation
#[utoipa::path(get, path = "/api/v1/purges/{id}", tag = "invalidation", operation_id = "get_purge",
    security(("token" = [])),
    params(("id" = String, Path, description = "From the answer to its request")), responses(
    (status = 200, description = "What it did", body = Purge),
    (status = 404, description = "Not kept", body = Problem, content_type = "application/problem+json"),
    Guarded,
))]
pub(crate) async fn get(
    State(app): State<App>,
    path: Result<axum::extract::Path<String>, PathRejection>,
) -> Result<Json<Purge>, Refusal> {
    let id = name(path)?;
    match app.purges().get(&id) {
        Some(purge) => Ok(Json(purge)),
        None => Err(Refusal::new(
            Code::UnknownName,
            format!("no purge {:?} is kept", shown(&id)),
        )),
    }
}
