//! Changes to the list of packages: everything else in the file stays.

use std::fs;

use tempfile::TempDir;

use crate::settings::edit::{self, PackageEdit, SettingsFileLock, edit_packages, packages};

fn append(text: &str) -> String {
    edit_packages(text, &PackageEdit::Append("npm:new".to_owned())).unwrap()
}

#[test]
fn package_is_appended_as_the_list_is_written() {
    for (before, after) in [
        ("", "{\n  \"packages\": [\n    \"npm:new\"\n  ]\n}\n"),
        ("{}", "{\n  \"packages\": [\n    \"npm:new\"\n  ]\n}"),
        (
            "{\n  \"a\": 1 // one\n}",
            "{\n  \"a\": 1,\n  \"packages\": [\n    \"npm:new\"\n  ] // one\n}",
        ),
        ("{\"packages\": []}", "{\"packages\": [\"npm:new\"]}"),
        ("{\"packages\": [\"a\"]}", "{\"packages\": [\"a\", \"npm:new\"]}"),
        (
            "\u{feff}{\"packages\": [\n\t\"a\" /* ] */\n], \"z\": {\"packages\": 1}}",
            "\u{feff}{\"packages\": [\n\t\"a\",\n\t\"npm:new\" /* ] */\n], \"z\": {\"packages\": 1}}",
        ),
        (
            "{\"packages\": [{\"source\": \"x\", \"skills\": []},]}",
            "{\"packages\": [{\"source\": \"x\", \"skills\": []}, \"npm:new\",]}",
        ),
    ] {
        assert_eq!(append(before), after);
    }
}

#[test]
fn package_is_removed_with_its_line_and_comma() {
    for (before, index, after) in [
        ("{\"packages\": [\"a\", \"b\"]}", 0, "{\"packages\": [\"b\"]}"),
        ("{\"packages\": [\"a\", \"b\"]}", 1, "{\"packages\": [\"a\" ]}"),
        ("{\"packages\": [\"a\"]}", 0, "{\"packages\": []}"),
        (
            "{\n  // mine\n  \"packages\": [\n    \"a\", // first\n    {\"source\": \"b\"},\n    \"c\"\n  ]\n}",
            1,
            "{\n  // mine\n  \"packages\": [\n    \"a\", // first\n    \"c\"\n  ]\n}",
        ),
        (
            "{\"packages\": [\n  \"a\", // first\n  \"b\"\n]}",
            1,
            "{\"packages\": [\n  \"a\" // first\n]}",
        ),
    ] {
        assert_eq!(edit_packages(before, &PackageEdit::Remove(index)).unwrap(), after);
    }
    assert!(edit_packages("{}", &PackageEdit::Remove(0)).is_err());
}

#[test]
fn package_source_is_replaced_beside_its_filters() {
    let text = "{\"packages\": [\"a\", {\"skills\": [\"source\"], \"source\": \"b\" /* why */}]}";
    let replaced = |index| edit_packages(text, &PackageEdit::Replace(index, "c".to_owned())).unwrap();
    assert_eq!(replaced(0), text.replace("\"a\"", "\"c\""));
    assert_eq!(replaced(1), text.replace("\"b\"", "\"c\""));
    assert_eq!(
        packages(text).unwrap(),
        [("a".to_owned(), false), ("b".to_owned(), true)]
    );
}

#[test]
fn settings_that_are_not_understood_are_refused() {
    for text in ["{", "[]", "{\"packages\": {}}", "{\"packages\": \"npm:a\"}"] {
        assert!(
            edit_packages(text, &PackageEdit::Append("b".to_owned())).is_err(),
            "{text}"
        );
        assert!(packages(text).is_err(), "{text}");
    }
}

#[test]
fn locked_settings_file_is_replaced_in_place() {
    let root = TempDir::new().unwrap();
    let (path, real) = (
        root.path().join("new/settings.json"),
        root.path().join("real.json"),
    );
    fs::write(&real, "{}").unwrap();
    fs::create_dir(root.path().join("new")).unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    let lock = SettingsFileLock::take(&path).unwrap();
    assert!(root.path().join("new/settings.json.lock").is_dir());
    assert!(SettingsFileLock::take(&path).is_err());
    lock.replace("{\"a\": 1}").unwrap();
    drop(lock);
    assert_eq!(edit::read(&path).unwrap(), "{\"a\": 1}");
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\"a\": 1}");
    let left: Vec<_> = fs::read_dir(root.path().join("new")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
