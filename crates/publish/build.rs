//! Templates and assets are compiled in; a file added to their folders must lead to a new build.

fn main() {
    for folder in ["templates/pages", "templates/messages", "site"] {
        println!("cargo:rerun-if-changed=../../{folder}");
    }
}
