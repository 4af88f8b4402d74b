//! Is it up, does it take requests, which version: open to all who reach the listener.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use crate::appliance::{Phase, Tier};
use crate::guard::Caller;
use crate::problem::Problem;

/// The process answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Alive {
    /// Always true.
    alive: bool,
}

/// Whether requests are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ready {
    pub ready: bool,
    pub phase: Phase,
    pub tiers: Vec<Tier>,
}

/// Which program runs with which configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Always `larder`.
    pub name: String,
    pub version: String,
    pub config: ConfigVersion,
}

/// Which configuration is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigVersion {
    /// Hash of the file's text, in hexadecimal.
    pub hash: String,
    /// Unix time in milliseconds.
    pub loaded_ms: u64,
    /// Reloads that took effect since the start.
    pub reloads: u64,
    /// Reloads that were refused since the start.
    pub reload_failures: u64,
    /// Whether the last reload took effect; true before the first.
    pub last_reload_ok: bool,
    /// Why it did not. Only for callers with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reload_error: Option<String>,
}

/// The process answers
///
/// Says nothing about whether requests are taken: see `/readyz`.
#[utoipa::path(get, path = "/healthz", tag = "health", operation_id = "get_health", responses(
    (status = 200, description = "It does", body = Alive),
    (status = 403, description = "Wrong host", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn healthz() -> Json<Alive> {
    Json(Alive { alive: true })
}

/// Requests are taken
#[utoipa::path(get, path = "/readyz", tag = "health", operation_id = "get_readiness", responses(
    (status = 200, description = "They are", body = Ready),
    (status = 403, description = "Wrong host", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "Not yet, or no longer", body = Ready),
))]
pub(crate) async fn readyz(State(app): State<App>) -> (StatusCode, Json<Ready>) {
    let readiness = app.appliance().readiness();
    let ready = readiness.phase == Phase::Ready;
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (
        status,
        Json(Ready {
            ready,
            phase: readiness.phase,
            tiers: readiness.tiers,
        }),
    )
}

/// Version of the program and of its configuration
#[utoipa::path(get, path = "/api/v1/version", tag = "health", operation_id = "get_version", responses(
    (status = 200, description = "Both", body = Version),
    (status = 403, description = "Wrong host", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn version(State(app): State<App>, Extension(caller): Extension<Caller>) -> Json<Version> {
    let config = app.appliance().config_version();
    let last_reload_ok = config.last_reload_error.is_none();
    // The text may quote the file.
    let last_reload_error = config.last_reload_error.filter(|_| caller.name().is_some());
    Json(Version {
        name: "larder".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        config: ConfigVersion {
            hash: config.hash,
            loaded_ms: config.loaded_ms,
            reloads: config.reloads,
            reload_failures: config.reload_failures,
            last_reload_ok,
            last_reload_error,
        },
    })
}

/// This document
#[utoipa::path(get, path = "/api/openapi.json", tag = "health", operation_id = "get_openapi", responses(
    (status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json"),
    (status = 403, description = "Wrong host", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn openapi(State(app): State<App>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], app.openapi()).into_response()
}
