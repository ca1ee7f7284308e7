//! Every number that bounds what resource files may cost. Nothing else lives here.

use std::time::Duration;

/// Bytes of one context file that reach the prompt; the rest is cut and reported.
pub const CONTEXT_FILE_BYTES: u64 = 256 * 1024;
/// Bytes of a system prompt file: that of the agent directory, of the project or of `--system-prompt`.
pub const PROMPT_FILE_BYTES: u64 = 1024 * 1024;
/// Bytes of a skill file that are searched for its front matter.
pub const SKILL_HEAD_BYTES: u64 = 64 * 1024;
/// Bytes of a skill file that `/skill:name` puts into a message.
pub const SKILL_BYTES: u64 = 1024 * 1024;
/// Bytes of a prompt template.
pub const TEMPLATE_BYTES: u64 = 256 * 1024;
/// Directory entries looked at in one directory of prompt templates and the directories below.
pub const TEMPLATE_ENTRIES: usize = 2_000;
/// Bytes of one `.gitignore` inside a skill tree.
pub const IGNORE_FILE_BYTES: u64 = 64 * 1024;
/// Bytes a template may grow to when its placeholders are filled in.
pub const EXPANSION_BYTES: usize = 4 * 1024 * 1024;
/// Time for searching everything that a project brings for skills. The rest is left out and reported.
pub const PROJECT_SKILL_TIME: Duration = Duration::from_secs(2);
/// Skills of a project that are loaded. Further ones are left out and reported.
pub const PROJECT_SKILLS: usize = 256;
/// Bytes that the skills of a project take in the system prompt. Further ones are left out of it and reported; the user can call
/// them by name.
pub const PROJECT_SKILL_PROMPT_BYTES: usize = 64 * 1024;
/// Bytes of a `package.json`.
pub const MANIFEST_BYTES: u64 = 1024 * 1024;
/// Directory levels below a skill directory that are searched.
pub const SKILL_DEPTH: usize = 16;
/// Directory entries looked at in one skill directory tree.
pub const SKILL_ENTRIES: usize = 20_000;
/// Characters of a skill name before a diagnostic (pi-core.md 6.3).
pub const SKILL_NAME_CHARS: usize = 64;
/// Characters of a skill description before a diagnostic (pi-core.md 6.3).
pub const SKILL_DESCRIPTION_CHARS: usize = 1024;
/// Characters of a template's first line that serve as its description (pi-core.md 6.4).
pub const TEMPLATE_DESCRIPTION_CHARS: usize = 60;
/// Parent directories of the working directory that are searched for context files and skills.
pub const ANCESTORS: usize = 256;
/// Bytes of a file with a rule.
pub const RULE_BYTES: u64 = 256 * 1024;
/// Directory entries looked at in one directory of rules.
pub const RULE_ENTRIES: usize = 2_000;
/// Bytes of a file with an agent.
pub const AGENT_BYTES: u64 = 256 * 1024;
/// Directory entries looked at in one directory of agents.
pub const AGENT_ENTRIES: usize = 2_000;
