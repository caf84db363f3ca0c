//! The page names what the manifests have, and both name settings that there are.

use std::{collections::BTreeSet, fs};

use test_support::{config_map, manifest};

use crate::{FILES, is_setting, page, quoted, root, text, value};

#[test]
fn the_page_names_each_manifest_and_there_is_no_other() {
    let mut there: Vec<_> = fs::read_dir(root().join("deploy/kubernetes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    let mut files = FILES.map(str::to_owned).to_vec();
    files.sort();
    assert_eq!(there, files);
    let page = page();
    for file in FILES {
        assert!(page.contains(&format!("| `{file}` |")), "{file}");
    }
}

#[test]
fn every_setting_of_a_manifest_and_of_the_page_is_one() {
    let known = text("docs/OPERATIONS.md");
    let known: BTreeSet<_> = quoted(&known).filter(|name| is_setting(name)).collect();
    let mut named = BTreeSet::new();
    for file in FILES {
        let manifest = manifest(file);
        let names = manifest.lines().filter_map(|line| line.trim().strip_prefix("- name: "));
        named.extend(names.filter(|name| is_setting(name)).map(str::to_owned));
        named.extend(config_map(&manifest).into_keys().filter(|name| is_setting(name)));
    }
    assert!(named.len() > 12, "{named:?}");
    named.extend(quoted(&page()).filter(|name| is_setting(name)));
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "no settings: {unknown:?}");
}

#[test]
fn the_page_says_of_each_setting_what_the_manifest_has() {
    let page = page();
    let manifest = manifest("site-api.yaml");
    for name in ["SITE_API_GRANTS_JSON", "SITE_API_TOKEN_REVIEW_URL"] {
        let value = value(&manifest, name);
        assert!(page.contains(&format!("| `{name}` | `{value}` |")), "{name} is {value}");
    }
}
