//! Style and icon. Their names carry a hash of their content, so that they may be cached for ever.

use florilegium_files::sha256_hex;
use include_dir::{Dir, include_dir};
use serde::Serialize;

static ASSETS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../site");

/// One asset.
pub(crate) struct Asset {
    /// Path in the site.
    pub(crate) path: String,
    pub(crate) bytes: &'static [u8],
}

/// Where the pages find their assets, from the root of the site.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Links {
    pub(crate) style: String,
    pub(crate) icon: String,
}

/// All assets, by name.
pub(crate) fn assets() -> Vec<Asset> {
    let mut assets: Vec<Asset> = ASSETS
        .files()
        .filter_map(|file| {
            let name = file.path().file_name()?.to_str()?;
            let bytes = file.contents();
            Some(Asset { path: format!("assets/{}", hashed(name, bytes)), bytes })
        })
        .collect();
    assets.sort_by(|a, b| a.path.cmp(&b.path));
    assets
}

/// Where the pages find their assets.
pub(crate) fn links() -> Links {
    let path = |name: &str| {
        let bytes = ASSETS.get_file(name).map(|file| file.contents()).unwrap_or_default();
        format!("assets/{}", hashed(name, bytes))
    };
    Links { style: path("style.css"), icon: path("icon.svg") }
}

fn hashed(name: &str, bytes: &[u8]) -> String {
    let hash = sha256_hex(bytes);
    let hash = hash.get(..8).unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, ending)) => format!("{stem}.{hash}.{ending}"),
        None => format!("{name}.{hash}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_lead_to_assets() {
        let paths: Vec<String> = assets().into_iter().map(|asset| asset.path).collect();
        let links = links();
        assert!(paths.contains(&links.style) && paths.contains(&links.icon), "{paths:?}");
    }

    #[test]
    fn the_style_asks_for_nothing() {
        for asset in assets() {
            let text =
                String::from_utf8_lossy(asset.bytes).replace("http://www.w3.org/2000/svg", "");
            for outside in ["http:", "https:", "url(", "@import", "<script"] {
                assert!(!text.contains(outside), "{}: {outside}", asset.path);
            }
        }
    }
}
