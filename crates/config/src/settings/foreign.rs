//! Keys that settings files of pi and oh-my-pi may have: those without an effect here, and old names of those with one.

/// Keys of relatives without an effect here, grouped by the reason.
pub const IGNORED: [(&str, &[&str]); 4] = [
    (
        "Terminal interface",
        &[
            "autocompleteMaxVisible",
            "collapseChangelog",
            "doubleEscapeAction",
            "editorPaddingX",
            "externalEditor",
            "fullscreenCopyOnSelect",
            "fullscreenExitOutput",
            "fullscreenScrollbar",
            "fullscreenWheelScrollLines",
            "hideThinkingBlock",
            "lastChangelogVersion",
            "markdown",
            "mouseScroll",
            "outputPad",
            "quietStartup",
            "scrollbar",
            "showCacheMissNotices",
            "showHardwareCursor",
            "terminal",
            "theme",
            "themes",
            "treeFilterMode",
            "tuiMode",
            "warnings",
            "wheelScrollLines",
        ],
    ),
    (
        "Telemetry, sharing and updates",
        &[
            "enableAnalytics",
            "enableInstallTelemetry",
            "deviceId",
            "trackingId",
            "sessionShareDestination",
            "shareViewerUrl",
            "selfUpdateCommand",
        ],
    ),
    ("Transports", &["transport", "websocketConnectTimeoutMs"]),
    (
        "Other features of pi and oh-my-pi",
        &[
            "branchSummary.skipPrompt",
            "codemode",
            "enableSkillCommands",
            "mcp",
            "todo.eager",
            "$schema",
        ],
    ),
];

/// Old names of keys and their current names.
pub const RENAMED: [(&str, &str); 3] = [
    ("queueMode", "steeringMode"),
    ("websockets", "transport"),
    ("retry.maxDelayMs", "retry.provider.maxRetryDelayMs"),
];
