//! The figures: read, reset, and the same for Prometheus.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{App, name, parse, shown};
use crate::appliance::{Scope, UnknownName};
use crate::metrics;
use crate::problem::{Changing, Code, Guarded, Problem, Refusal};
use crate::stats::{CacheStats, OriginStats, Stats, VhostStats};

/// The vhosts, with what dates the reading.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Vhosts {
    /// See `Stats`.
    epoch: u64,
    /// Unix time in milliseconds.
    now_ms: u64,
    vhosts: Vec<VhostStats>,
}

/// The origins, with what dates the reading.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Origins {
    /// See `Stats`.
    epoch: u64,
    /// Unix time in milliseconds.
    now_ms: u64,
    origins: Vec<OriginStats>,
}

/// What to reset.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reset {
    scope: ResetScope,
    /// Of the vhost or upstream; only with these two scopes.
    name: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ResetScope {
    All,
    Vhost,
    Origin,
    Cache,
}

impl TryFrom<Reset> for Scope {
    type Error = Refusal;

    fn try_from(reset: Reset) -> Result<Self, Refusal> {
        match (reset.scope, reset.name) {
            (ResetScope::All, None) => Ok(Self::All),
            (ResetScope::Cache, None) => Ok(Self::Cache),
            (ResetScope::Vhost, Some(name)) => Ok(Self::Vhost(name)),
            (ResetScope::Origin, Some(name)) => Ok(Self::Origin(name)),
            (ResetScope::All | ResetScope::Cache, Some(_)) => {
                Err(Refusal::new(Code::InvalidBody, "this scope takes no name").at_member("/name"))
            }
            (ResetScope::Vhost | ResetScope::Origin, None) => {
                Err(Refusal::new(Code::InvalidBody, "this scope needs a name").at_member("/name"))
            }
        }
    }
}

/// Every figure since the last reset
#[utoipa::path(get, path = "/api/v1/stats", tag = "statistics", operation_id = "get_stats",
    security(("token" = [])), responses(
    (status = 200, description = "Read at one moment", body = Stats), Guarded,
))]
pub(crate) async fn stats(State(app): State<App>) -> Json<Stats> {
    Json(read(&app))
}

/// Start figures from zero
///
/// Answers with the figures as they were at that moment, so that none is lost between reading and resetting. Gauges and
/// `/metrics` are not touched.
#[utoipa::path(post, path = "/api/v1/stats/reset", tag = "statistics", operation_id = "reset_stats",
    security(("token" = [])),
    request_body(content = Reset, example = json!({"scope": "vhost", "name": "www"})), responses(
    (status = 200, description = "As they were", body = Stats),
    (status = 404, description = "No such vhost or origin", body = Problem, content_type = "application/problem+json"),
    Changing,
))]
pub(crate) async fn reset(State(app): State<App>, body: Bytes) -> Result<Json<Stats>, Refusal> {
    let scope = Scope::try_from(parse::<Reset>(&body)?)?;
    match app.appliance().reset(scope) {
        Ok(snapshot) => Ok(Json(Stats::new(&snapshot, app.appliance().latency_bounds_us()))),
        Err(UnknownName(name)) => {
            let detail = format!("nothing of this scope is named {:?}", shown(&name));
            Err(Refusal::new(Code::UnknownName, detail).at_member("/name"))
        }
    }
}

/// Figures of all vhosts
#[utoipa::path(get, path = "/api/v1/vhosts", tag = "statistics", operation_id = "list_vhosts",
    security(("token" = [])), responses(
    (status = 200, description = "In the order of the configuration", body = Vhosts), Guarded,
))]
pub(crate) async fn vhosts(State(app): State<App>) -> Json<Vhosts> {
    let stats = read(&app);
    Json(Vhosts {
        epoch: stats.epoch,
        now_ms: stats.now_ms,
        vhosts: stats.vhosts,
    })
}

/// Figures of one vhost
#[utoipa::path(get, path = "/api/v1/vhosts/{name}", tag = "statistics", operation_id = "get_vhost",
    security(("token" = [])),
    params(("name" = String, Path, description = "As configured, or `_unknown`")), responses(
    (status = 200, description = "Its row", body = VhostStats),
    (status = 404, description = "No such vhost", body = Problem, content_type = "application/problem+json"),
    Guarded,
))]
pub(crate) async fn vhost(
    State(app): State<App>,
    path: Result<axum::extract::Path<String>, PathRejection>,
) -> Result<Json<VhostStats>, Refusal> {
    let name = name(path)?;
    match read(&app).vhosts.into_iter().find(|vhost| vhost.name == name) {
        Some(vhost) => Ok(Json(vhost)),
        None => Err(Refusal::new(
            Code::UnknownName,
            format!("no vhost is named {:?}", shown(&name)),
        )),
    }
}

/// Figures of all origin servers
#[utoipa::path(get, path = "/api/v1/origins", tag = "statistics", operation_id = "list_origins",
    security(("token" = [])), responses(
    (status = 200, description = "In the order of the configuration", body = Origins), Guarded,
))]
pub(crate) async fn origins(State(app): State<App>) -> Json<Origins> {
    let stats = read(&app);
    Json(Origins {
        epoch: stats.epoch,
        now_ms: stats.now_ms,
        origins: stats.origins,
    })
}

/// Figures of the cache zone
#[utoipa::path(get, path = "/api/v1/cache", tag = "statistics", operation_id = "get_cache",
    security(("token" = [])), responses(
    (status = 200, description = "Counters and gauges", body = CacheStats), Guarded,
))]
pub(crate) async fn cache(State(app): State<App>) -> Json<CacheStats> {
    Json(CacheStats::new(&app.appliance().snapshot().cache))
}

/// Every figure since the start, for Prometheus
///
/// The names are in docs/metrics.md. A reset does not touch them.
#[utoipa::path(get, path = "/metrics", tag = "statistics", operation_id = "get_metrics",
    security(("token" = [])), responses(
    (status = 200, description = "Text format 0.0.4", body = String, content_type = "text/plain"), Guarded,
))]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let text = metrics::render(&metrics::Reading {
        totals: &app.appliance().totals(),
        bounds_us: app.appliance().latency_bounds_us(),
        config: &app.appliance().config_version(),
        audit_errors: app.audit().errors(),
    });
    ([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], text).into_response()
}

fn read(app: &App) -> Stats {
    Stats::new(&app.appliance().snapshot(), app.appliance().latency_bounds_us())
}
