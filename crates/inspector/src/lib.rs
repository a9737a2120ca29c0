//! The inspector: ES modules and a style sheet without a build step, embedded in the program.
//!
//! It is a client of the server's API and of nothing else. Its files are public and hold no data; the token comes with the link that a
//! person opens. Nothing that a model, a tool or a file says is ever read as HTML: elements are made by `assets/lib/dom.js`, and text
//! becomes text nodes.

/// A file of the inspector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    /// Its path on the server.
    pub path: &'static str,
    /// Its media type.
    pub content_type: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! assets {
    ($($path:literal, $content_type:expr;)*) => {
        /// All files.
        pub const ASSETS: &[Asset] = &[$(Asset {
            path: concat!("/", $path),
            content_type: $content_type,
            bytes: include_bytes!(concat!("../assets/", $path)),
        }),*];
    };
}

assets! {
    "index.html", "text/html; charset=utf-8";
    "style.css", "text/css; charset=utf-8";
    "icon.svg", "image/svg+xml";
    "app.js", SCRIPT;
    "lib/api.js", SCRIPT;
    "lib/budget.js", SCRIPT;
    "lib/dom.js", SCRIPT;
    "lib/format.js", SCRIPT;
    "lib/keys.js", SCRIPT;
    "lib/lines.js", SCRIPT;
    "lib/text.js", SCRIPT;
    "lib/virtual.js", SCRIPT;
    "views/call.js", SCRIPT;
    "views/changes.js", SCRIPT;
    "views/decide.js", SCRIPT;
    "views/files.js", SCRIPT;
    "views/find.js", SCRIPT;
    "views/graph.js", SCRIPT;
    "views/overview.js", SCRIPT;
    "views/query.js", SCRIPT;
    "views/records.js", SCRIPT;
    "views/request.js", SCRIPT;
    "views/session.js", SCRIPT;
    "views/sessions.js", SCRIPT;
    "views/state.js", SCRIPT;
    "views/steer.js", SCRIPT;
    "views/transcript.js", SCRIPT;
    "views/waterfall.js", SCRIPT;
}

/// Returns the file at a path of the server; `/` is the page itself.
pub fn asset(path: &str) -> Option<Asset> {
    let path = if path == "/" { "/index.html" } else { path };
    ASSETS.iter().find(|asset| asset.path == path).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn files_below(directory: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                files_below(&entry.path(), &name, found);
            } else {
                found.insert(name);
            }
        }
    }

    fn text(asset: &Asset) -> &'static str {
        std::str::from_utf8(asset.bytes).unwrap()
    }

    #[test]
    fn every_file_is_embedded() {
        let mut found = BTreeSet::new();
        files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"), "", &mut found);
        let embedded: BTreeSet<String> = ASSETS.iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(embedded, found);
        assert_eq!(asset("/"), asset("/index.html"));
        assert_eq!(asset("/../Cargo.toml"), None);
    }

    #[test]
    fn no_script_or_style_is_inline_and_no_text_becomes_html() {
        for asset in ASSETS {
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "DOMParser",
                "<style",
                "javascript:",
                "http://",
                "https://",
            ] {
                let allowed = word == "http://" && matches!(asset.path, "/lib/dom.js" | "/icon.svg");
                assert!(allowed || !text(asset).contains(word), "{} contains {word}", asset.path);
            }
        }
        let page = text(&ASSETS[0]);
        assert_eq!(page.matches("<script").count(), 1);
        assert!(page.contains(r#"<script type="module" src="app.js"></script>"#));
        assert!(!page.contains("onclick="));
    }

    #[test]
    fn every_import_names_a_file() {
        for asset in ASSETS.iter().filter(|asset| asset.content_type == SCRIPT) {
            let folder = Path::new(asset.path).parent().unwrap();
            let imports = text(asset).split("from \"").skip(1).chain(text(asset).split("import(\"").skip(1));
            for import in
                imports.map(|rest| rest.split('"').next().unwrap()).filter(|name| name.starts_with('.'))
            {
                let mut path = folder.to_path_buf();
                for part in import.split('/') {
                    match part {
                        "." => {}
                        ".." => assert!(path.pop(), "{} imports {import}", asset.path),
                        name => path.push(name),
                    }
                }
                assert!(super::asset(path.to_str().unwrap()).is_some(), "{} imports {import}", asset.path);
            }
        }
    }
}
