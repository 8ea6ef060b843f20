//! Pages of `docs/` that repeat what code says, held against the code.

use tackboard_logic::metadata::TOPIC_SETTINGS;

use crate::config::render::{self, TopicSettingRow};
use crate::config::settings;
use crate::control::metrics;
use crate::golden;

#[test]
fn the_configuration_page_is_as_rendered() {
    let allowed: Vec<String> = TOPIC_SETTINGS
        .iter()
        .map(|setting| setting.kind.to_string())
        .collect();
    let rows: Vec<TopicSettingRow<'_>> = TOPIC_SETTINGS
        .iter()
        .zip(&allowed)
        .map(|(setting, allowed)| TopicSettingRow {
            key: setting.name,
            allowed,
            default_from: setting.default_from,
            text: setting.text,
        })
        .collect();
    golden::check("docs/configuration.md", &render::page(&rows));
}

#[test]
fn what_a_topic_does_not_set_comes_from_a_setting_that_exists() {
    for setting in TOPIC_SETTINGS {
        let is_setting = settings::find(setting.default_from).is_some();
        assert!(
            is_setting || !setting.default_from.contains('.'),
            "{setting:?}"
        );
    }
}

#[test]
fn the_metrics_of_the_operations_page_are_those_that_are_exposed() {
    golden::check_section("docs/operations.md", "metrics", &metrics::table());
}
