//! The files of the dashboard, as they are built: `dist/`, embedded. It knows no server; whoever serves them sets the
//! headers.

use std::borrow::Cow;

use rust_embed::Embed;

#[derive(Debug, Embed)]
#[folder = "dist/"]
struct Dist;

/// One file.
#[derive(Debug, Clone)]
pub struct Asset {
    pub bytes: Cow<'static, [u8]>,
    pub media_type: &'static str,
    /// Strong, quotes included.
    pub etag: String,
}

/// The file at a path relative to the dashboard's root, without a leading slash.
#[must_use]
pub fn get(path: &str) -> Option<Asset> {
    // In debug builds the files are read from the disk: only what was listed at build time is asked for.
    if !contains(path) {
        return None;
    }
    let file = Dist::get(path)?;
    let mut etag = String::with_capacity(66);
    etag.push('"');
    for byte in file.metadata.sha256_hash() {
        etag.push_str(&format!("{byte:02x}"));
    }
    etag.push('"');
    Some(Asset {
        bytes: file.data,
        media_type: media_type(path),
        etag,
    })
}

/// Whether there is a file at this path.
#[must_use]
pub fn contains(path: &str) -> bool {
    Dist::iter().any(|known| known == path)
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "map" => "application/json",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_type_and_none_needs_inline_code() {
        let names: Vec<_> = Dist::iter().map(Cow::into_owned).collect();
        assert!(names.iter().any(|name| name == "index.html"), "{names:?}");
        for name in names {
            let asset = get(&name).unwrap();
            assert_ne!(asset.media_type, "application/octet-stream", "{name}");
            let text = String::from_utf8(asset.bytes.into_owned()).unwrap();
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "style=",
                "onclick=",
            ] {
                assert!(!text.contains(forbidden), "{name} has {forbidden}");
            }
        }
    }

    #[test]
    fn nothing_outside_is_reached() {
        for path in ["", "../Cargo.toml", "/index.html", "./index.html", "nothing.js"] {
            assert!(get(path).is_none(), "{path:?}");
        }
    }
}
